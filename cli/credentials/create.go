package credentials

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/cluster"
	"github.com/weir-dev/weir/collector/auth"
)

const (
	// lookAgain is how often the API server is asked whether what was made is in force.
	lookAgain = 200 * time.Millisecond
	// longestUser is how long a user's name may be in an object.
	longestUser = 512
)

// create makes what is asked for. What was made is printed in any case, also where nobody can say yet whether it is in force:
// nobody has it otherwise.
func create(ctx context.Context, asked request, stdout, stderr io.Writer) error {
	reached, err := cluster.Connect(asked.Flags, stderr)
	if err != nil {
		return err
	}
	asked.namespace = reached.Namespace
	if err := propertyIsThere(ctx, reached, asked); err != nil {
		return err
	}
	secret := asked.generate()
	object := objectOf(asked, secret, whoAmI(ctx, reached))
	if err := reached.Create(ctx, object); err != nil {
		return explain(asked, err)
	}
	ready, err := inForce(ctx, reached, asked, object)
	fmt.Fprintf(stderr, "%s %s in namespace %s: %s\n", asked.object, asked.name, asked.namespace, sayOf(asked, ready))
	fmt.Fprintf(stderr, "The %s, which nobody can show again:\n", asked.what)
	if _, unwritten := fmt.Fprintln(stdout, secret); unwritten != nil {
		return errors.Join(err, revoke(ctx, reached, asked, object, unwritten))
	}
	return err
}

// revoke deletes what could not be printed, and so is in nobody's hands.
func revoke(ctx context.Context, reached client.Client, asked request, object client.Object, unwritten error) error {
	if err := reached.Delete(ctx, object); err != nil {
		return fmt.Errorf("the %s could not be printed (%w) and not be revoked either: kubectl -n %s delete %s %s: %w",
			asked.what, unwritten, asked.namespace, strings.ToLower(asked.object), asked.name, explain(asked, err))
	}
	return fmt.Errorf("the %s could not be printed, and is revoked: %w", asked.what, unwritten)
}

// propertyIsThere fails where the Property is known not to be there. Who may not look may make a key all the same.
func propertyIsThere(ctx context.Context, reached client.Client, asked request) error {
	property := &v1alpha1.Property{}
	err := reached.Get(ctx, client.ObjectKey{Namespace: asked.namespace, Name: asked.property}, property)
	switch {
	case err == nil || apierrors.IsForbidden(err):
		return nil
	case apierrors.IsNotFound(err) && property.Name == "" && !cluster.DefinitionMissing(err):
		return fmt.Errorf("there is no Property %s in namespace %s; kubectl get properties -A lists those that there are", asked.property, asked.namespace)
	}
	return explain(asked, err)
}

// whoAmI is who the object says has made it, "" where the API server does not say or the name is longer than an object may have it.
func whoAmI(ctx context.Context, reached *cluster.Cluster) string {
	name := reached.WhoAmI(ctx)
	if len([]rune(name)) > longestUser {
		return ""
	}
	return name
}

// objectOf is the object of a key or token: its hash, and never itself.
func objectOf(asked request, secret, createdBy string) client.Object {
	hash := auth.HashOf(secret)
	digits := hex.EncodeToString(hash[:])
	named := metav1.ObjectMeta{Namespace: asked.namespace, Name: asked.name}
	var expires *metav1.Time
	if asked.expires != nil {
		expires = &metav1.Time{Time: *asked.expires}
	}
	property := v1alpha1.PropertyReference{Name: asked.property}
	if asked.scoped {
		return &v1alpha1.AccessToken{ObjectMeta: named, Spec: v1alpha1.AccessTokenSpec{
			PropertyRef: property, SHA256: digits, Scope: asked.scope, ExpirationTime: expires, CreatedBy: createdBy,
		}}
	}
	return &v1alpha1.APIKey{ObjectMeta: named, Spec: v1alpha1.APIKeySpec{PropertyRef: property, SHA256: digits, ExpirationTime: expires, CreatedBy: createdBy}}
}

// inForce waits until the object says whether it is in force, and returns what it says: nil where it does not in time, or nobody
// may look. The error says why it is refused.
func inForce(ctx context.Context, reached client.Client, asked request, object client.Object) (*metav1.Condition, error) {
	ctx, cancel := context.WithTimeout(ctx, asked.wait)
	defer cancel()
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	var last *metav1.Condition
	for {
		select {
		case <-ctx.Done():
			return last, nil
		case <-ticker.C:
		}
		if err := reached.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			if ctx.Err() != nil || apierrors.IsForbidden(err) {
				return last, nil
			}
			continue
		}
		last = readyOf(object)
		switch {
		case last == nil || last.Reason == v1alpha1.ReasonPending || last.Reason == v1alpha1.ReasonPropertyMissing: // both may pass
		case last.Status == metav1.ConditionTrue:
			return last, nil
		default:
			return last, fmt.Errorf("it is not accepted (%s): %s", last.Reason, last.Message)
		}
	}
}

func readyOf(object client.Object) *metav1.Condition {
	switch object := object.(type) {
	case *v1alpha1.AccessToken:
		return meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
	case *v1alpha1.APIKey:
		return meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
	}
	return nil
}

// sayOf words what is known of whether it is in force.
func sayOf(asked request, ready *metav1.Condition) string {
	until := "until it is deleted"
	if asked.expires != nil {
		until = "until " + asked.expires.Format(time.RFC3339)
	}
	look := fmt.Sprintf("kubectl get %s %s -n %s", strings.ToLower(asked.object), asked.name, asked.namespace)
	switch {
	case ready == nil:
		return "made; whether it is in force is not known yet, " + look + " says so"
	case ready.Status == metav1.ConditionTrue:
		return "in force within seconds, " + until
	}
	return fmt.Sprintf("made, and not in force yet (%s): %s; %s says when it is", ready.Reason, ready.Message, look)
}

// explain words what the API server says to the making of an object.
func explain(asked request, err error) error {
	status := apierrors.APIStatus(nil)
	errors.As(err, &status)
	words := cluster.Words(err)
	where := fmt.Sprintf("%s %s in namespace %s", asked.object, asked.name, asked.namespace)
	switch {
	case cluster.DefinitionMissing(err):
		return fmt.Errorf("the cluster does not know the kind %s: install Weir there, or upgrade it", asked.object)
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("there is %s already; take another name, or revoke that one first: kubectl delete %s %s -n %s",
			where, strings.ToLower(asked.object), asked.name, asked.namespace)
	case apierrors.IsForbidden(err) && strings.Contains(words, "ValidatingAdmissionPolicy"):
		_, rule, _ := strings.Cut(words, "denied request: ")
		return fmt.Errorf("%s is not yours to make: %s", where, rule)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s is not yours to make: %s; ask for the right to create %s there", where, words, asked.resource)
	case apierrors.IsInvalid(err):
		return fmt.Errorf("%s is refused: %s", where, causes(status, words))
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster does not know you: %s; sign in as for kubectl", words)
	}
	return fmt.Errorf("make %s: %s", where, words)
}

// causes are the fields that are wrong, a line each.
func causes(status apierrors.APIStatus, otherwise string) string {
	if status == nil || status.Status().Details == nil {
		return otherwise
	}
	var lines []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "" && cause.Field != "<nil>" { // which stands where the message names the field
			cause.Message = cause.Field + ": " + cause.Message
		}
		lines = append(lines, cause.Message)
	}
	if len(lines) == 0 {
		return otherwise
	}
	return strings.Join(lines, "; ")
}
