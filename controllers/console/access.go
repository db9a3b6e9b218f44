package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/server"
)

type accessAnswer struct {
	Data accessRecord `json:"data"`
}

// accessRecord are a Property's access tokens and API keys, null where somebody may not list them.
type accessRecord struct {
	Tokens *[]tokenRecord `json:"tokens"`
	Keys   *[]keyRecord   `json:"keys"`
	May    mayAccess      `json:"may"`
}

// mayAccess says what somebody may do with them.
type mayAccess struct {
	Tokens mayTokens `json:"tokens"`
	Keys   mayKeys   `json:"keys"`
}

type mayTokens struct {
	Create bool         `json:"create"`
	Delete bool         `json:"delete"`
	Scopes []auth.Scope `json:"scopes"`
}

type mayKeys struct {
	Create bool `json:"create"`
	Delete bool `json:"delete"`
}

// State is how it stands with a key or token.
type state string

const (
	stateReady   state = "ready"
	statePending state = "pending"
	stateRefused state = "refused"
	stateExpired state = "expired"
)

// Where a key or token is written down: in an object of its own, or in the Property.
const (
	fromObject   = "object"
	fromProperty = "property"
)

// tokenRecord is an access token.
type tokenRecord struct {
	Name      string     `json:"name"`
	Scope     auth.Scope `json:"scope"`
	ExpiresAt *string    `json:"expires_at"`
	CreatedAt *string    `json:"created_at"`
	CreatedBy *string    `json:"created_by"`
	State     state      `json:"state"`
	Reason    string     `json:"reason"`
	Message   string     `json:"message"`
	From      string     `json:"from"`
}

// keyRecord is an API key.
type keyRecord struct {
	Name string `json:"name"`
	// Publishable says that the key stands in web pages.
	Publishable bool    `json:"publishable"`
	ExpiresAt   *string `json:"expires_at"`
	CreatedAt   *string `json:"created_at"`
	CreatedBy   *string `json:"created_by"`
	State       state   `json:"state"`
	Reason      string  `json:"reason"`
	Message     string  `json:"message"`
	From        string  `json:"from"`
}

// access answers GET access: the Property's keys and tokens, and what somebody may do with them.
func (c *Console) access(w http.ResponseWriter, r *http.Request, v *visit) {
	may := map[right]bool{}
	for _, kind := range credentialKinds {
		for _, verb := range []string{"list", "create", "delete"} {
			asked := kind.right(verb, v.property.Namespace, "")
			allowed, err := c.authoriser.may(r.Context(), v.user, asked)
			if err != nil {
				c.unavailable(w, r, err)
				return
			}
			may[asked] = allowed
		}
	}
	allowed := func(kind credentialKind, verb string) bool { return may[kind.right(verb, v.property.Namespace, "")] }
	var answer accessAnswer
	answer.Data.May = mayAccess{
		Tokens: mayTokens{allowed(accessTokens, "create"), allowed(accessTokens, "delete"), scopesWithin(v.scope)},
		Keys:   mayKeys{allowed(apiKeys, "create"), allowed(apiKeys, "delete")},
	}
	if allowed(accessTokens, "list") {
		found, err := c.tokens(r.Context(), v.property)
		if err != nil {
			c.unavailable(w, r, err)
			return
		}
		answer.Data.Tokens = &found
	}
	if allowed(apiKeys, "list") {
		found, err := c.keys(r.Context(), v.property)
		if err != nil {
			c.unavailable(w, r, err)
			return
		}
		answer.Data.Keys = &found
	}
	server.JSON(w, http.StatusOK, answer)
}

// scopesWithin lists the scopes that a scope includes.
func scopesWithin(scope auth.Scope) []auth.Scope {
	return slices.DeleteFunc([]auth.Scope{auth.ScopeRead, auth.ScopeWrite, auth.ScopeAdmin}, func(one auth.Scope) bool { return !scope.Allows(one) })
}

// tokens are a Property's access tokens: those of its spec, then the objects, the oldest first.
func (c *Console) tokens(ctx context.Context, p *v1alpha1.Property) ([]tokenRecord, error) {
	all := &v1alpha1.AccessTokenList{}
	if err := c.cached.List(ctx, all, client.InNamespace(p.Namespace)); err != nil {
		return nil, err
	}
	found := []tokenRecord{}
	for _, token := range p.Spec.AccessTokens {
		state, reason, message := c.stateOf(p.Status.Conditions, v1alpha1.ConditionCredentialsReady, token.ExpirationTime)
		found = append(found, tokenRecord{
			Name: token.Name, Scope: auth.Scope(token.GrantedScope()), ExpiresAt: timeOrNull(token.ExpirationTime),
			State: state, Reason: reason, Message: message, From: fromProperty,
		})
	}
	items := slices.DeleteFunc(all.Items, func(t v1alpha1.AccessToken) bool { return t.Spec.PropertyRef.Name != p.Name })
	slices.SortFunc(items, func(a, b v1alpha1.AccessToken) int { return older(&a, &b) })
	for i := range items {
		found = append(found, c.tokenRecord(&items[i]))
	}
	return found, nil
}

// keys are a Property's API keys, likewise.
func (c *Console) keys(ctx context.Context, p *v1alpha1.Property) ([]keyRecord, error) {
	all := &v1alpha1.APIKeyList{}
	if err := c.cached.List(ctx, all, client.InNamespace(p.Namespace)); err != nil {
		return nil, err
	}
	found := []keyRecord{}
	for _, key := range p.Spec.APIKeys {
		state, reason, message := c.stateOf(p.Status.Conditions, v1alpha1.ConditionCredentialsReady, nil)
		found = append(found, keyRecord{
			Name: key.Name, Publishable: key.Type == v1alpha1.APIKeyPublishable, State: state, Reason: reason, Message: message, From: fromProperty,
		})
	}
	items := slices.DeleteFunc(all.Items, func(k v1alpha1.APIKey) bool { return k.Spec.PropertyRef.Name != p.Name })
	slices.SortFunc(items, func(a, b v1alpha1.APIKey) int { return older(&a, &b) })
	for i := range items {
		found = append(found, c.keyRecord(&items[i]))
	}
	return found, nil
}

func (c *Console) tokenRecord(t *v1alpha1.AccessToken) tokenRecord {
	state, reason, message := c.stateOf(t.Status.Conditions, v1alpha1.ConditionReady, t.Spec.ExpirationTime)
	return tokenRecord{
		Name: t.Name, Scope: auth.Scope(t.GrantedScope()), ExpiresAt: timeOrNull(t.Spec.ExpirationTime), CreatedAt: timeOrNull(&t.CreationTimestamp),
		CreatedBy: textOrNull(t.Spec.CreatedBy), State: state, Reason: reason, Message: message, From: fromObject,
	}
}

func (c *Console) keyRecord(k *v1alpha1.APIKey) keyRecord {
	state, reason, message := c.stateOf(k.Status.Conditions, v1alpha1.ConditionReady, k.Spec.ExpirationTime)
	return keyRecord{
		Name: k.Name, ExpiresAt: timeOrNull(k.Spec.ExpirationTime), CreatedAt: timeOrNull(&k.CreationTimestamp),
		CreatedBy: textOrNull(k.Spec.CreatedBy), State: state, Reason: reason, Message: message, From: fromObject,
	}
}

// older orders objects by age, and those of one second by name.
func older(a, b client.Object) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
}

// refusals are the reasons for which an object's key or token is not accepted, and will not be by waiting.
var refusals = []string{"PropertyMissing", "LimitReached", "Duplicate"}

// stateOf says how it stands with a key or token by a condition and its end.
func (c *Console) stateOf(conditions []metav1.Condition, name string, ends *metav1.Time) (how state, reason, message string) {
	how = statePending
	if found := meta.FindStatusCondition(conditions, name); found != nil {
		reason, message = found.Reason, found.Message
		switch {
		case found.Status == metav1.ConditionTrue:
			how = stateReady
		case slices.Contains(refusals, reason):
			how = stateRefused
		}
	}
	if reason == "Expired" || ends != nil && !c.now().Before(ends.Time) {
		how = stateExpired
	}
	return how, reason, message
}

// timeOrNull renders a time that is not there as null.
func timeOrNull(t *metav1.Time) *string {
	if t == nil || t.IsZero() {
		return nil
	}
	return textOrNull(t.UTC().Format(time.RFC3339))
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
