package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
)

// What the API server is asked may be as old as decisionAge; a right that is taken away ends that much later.
const decisionAge = 5 * time.Second

const (
	// reviewTimeout is how long the API server may take for an answer, turnTimeout how long a question may wait to be asked.
	reviewTimeout = 5 * time.Second
	turnTimeout   = 15 * time.Second
	// maxReviews is how many questions are under way at a time.
	maxReviews = 32
	// maxDecisions bounds the answers that are remembered.
	maxDecisions = 64 << 10
)

// authenticatedGroup is the group that the API server adds to all whom it knows.
const authenticatedGroup = "system:authenticated"

// errReview is that the API server does not say whether somebody may do something. Nobody is let through then.
var errReview = errors.New("the API server does not say what the user may do")

// right is what somebody may do, as an authorizer of the API server's is asked: "" of a namespace stands for all, of a name likewise.
type right struct{ verb, resource, subresource, namespace, name string }

// The rights that the scopes of a Property follow, and that show it.
func mayRead(namespace, name string) right {
	return right{"get", "properties", "events", namespace, name}
}
func mayWrite(namespace, name string) right {
	return right{"create", "properties", "replay", namespace, name}
}
func mayAdminister(namespace, name string) right {
	return right{"create", "properties", "erasures", namespace, name}
}
func maySee(namespace, name string) right { return right{"get", "properties", "", namespace, name} }

// question is a right that somebody has or not.
type question struct {
	user [32]byte
	right
}

type decision struct {
	allowed bool
	ends    time.Time
}

// authoriser asks the API server what people may do, by SubjectAccessReviews. It is safe for concurrent use.
type authoriser struct {
	client client.Client
	now    func() time.Time
	// free has an element for each question that may be under way.
	free   chan struct{}
	asking singleflight.Group

	mu    sync.Mutex
	known map[question]decision
}

func newAuthoriser(c client.Client, now func() time.Time) *authoriser {
	return &authoriser{client: c, now: now, free: make(chan struct{}, maxReviews), known: map[question]decision{}}
}

// may says whether somebody has a right. The error is [errReview].
func (a *authoriser) may(ctx context.Context, u *user, r right) (bool, error) {
	q := question{u.digest, r}
	a.mu.Lock()
	found, known := a.known[q]
	a.mu.Unlock()
	if known && a.now().Before(found.ends) {
		return found.allowed, nil
	}
	// Whoever asks the same meanwhile gets the same answer, so it does not end with the one who asked first.
	answer := a.asking.DoChan(fmt.Sprintf("%x%q", q.user, []string{r.verb, r.resource, r.subresource, r.namespace, r.name}), func() (any, error) {
		return a.ask(context.WithoutCancel(ctx), u, q)
	})
	select {
	case <-ctx.Done():
		return false, errors.Join(errReview, ctx.Err())
	case result := <-answer:
		allowed, _ := result.Val.(bool)
		return allowed && result.Err == nil, result.Err
	}
}

// ask asks the API server, and remembers what it says.
func (a *authoriser) ask(ctx context.Context, u *user, q question) (bool, error) {
	turn := time.NewTimer(turnTimeout)
	defer turn.Stop()
	select {
	case <-turn.C:
		return false, errors.Join(errReview, errors.New("too many questions are under way"))
	case a.free <- struct{}{}:
	}
	defer func() { <-a.free }()
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	asked := a.now()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: u.name, Groups: slices.Concat(u.groups, []string{authenticatedGroup}),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version,
			Verb: q.verb, Resource: q.resource, Subresource: q.subresource, Namespace: q.namespace, Name: q.name,
		},
	}}
	if err := a.client.Create(ctx, review); err != nil {
		return false, errors.Join(errReview, err)
	}
	allowed := review.Status.Allowed && !review.Status.Denied
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxDecisions {
		clear(a.known)
	}
	a.known[q] = decision{allowed, asked.Add(decisionAge)}
	return allowed, nil
}

// mayWidely is [authoriser.may] for somebody who asks for many Properties: the same right in all namespaces, or in all of one, is
// asked first, for it answers for many.
func (a *authoriser) mayWidely(ctx context.Context, u *user, r right) (bool, error) {
	everywhere, inNamespace := r, r
	everywhere.namespace, everywhere.name, inNamespace.name = "", "", ""
	for _, one := range []right{everywhere, inNamespace, r} {
		if allowed, err := a.may(ctx, u, one); allowed || err != nil {
			return allowed, err
		}
	}
	return false, nil
}

// asks is [authoriser.may] or [authoriser.mayWidely].
type asks func(context.Context, *user, right) (bool, error)

// scope returns what somebody may do with a Property's events, "" for nothing. Each scope includes the ones before it.
func scope(ctx context.Context, ask asks, u *user, namespace, name string) (auth.Scope, error) {
	highest := auth.Scope("")
	for _, step := range []struct {
		scope auth.Scope
		right right
	}{
		{auth.ScopeRead, mayRead(namespace, name)}, {auth.ScopeWrite, mayWrite(namespace, name)}, {auth.ScopeAdmin, mayAdminister(namespace, name)},
	} {
		allowed, err := ask(ctx, u, step.right)
		if err != nil {
			return "", err
		}
		if !allowed {
			break
		}
		highest = step.scope
	}
	return highest, nil
}

// view returns what somebody may do with a Property's events, and whether they are to know of the Property at all.
func view(ctx context.Context, ask asks, u *user, namespace, name string) (scoped auth.Scope, visible bool, err error) {
	scoped, err = scope(ctx, ask, u, namespace, name)
	if err != nil || scoped != "" {
		return scoped, scoped != "", err
	}
	visible, err = ask(ctx, u, maySee(namespace, name))
	return "", visible, err
}
