package console

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/go-json-experiment/json"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

// credentialKind is one of the kinds of what people make for themselves.
type credentialKind struct {
	// path is below access/, resource the API server's, noun what people are told.
	path, resource, noun string
	// scoped says that it has a scope, which is bounded by its maker's.
	scoped bool
	audit  audit.Kind
	// object makes one, or an empty one to be read.
	object func(namespace string, asked asked) client.Object
	// record renders one.
	record func(*Console, client.Object) any
	// of returns the Property's name in one, and its scope.
	of func(client.Object) (property, scope string)
}

// The two kinds.
var (
	accessTokens = credentialKind{
		path: "tokens", resource: "accesstokens", noun: "access token", scoped: true, audit: audit.AccessToken,
		object: func(namespace string, a asked) client.Object {
			return &v1alpha1.AccessToken{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: a.Name}, Spec: v1alpha1.AccessTokenSpec{
				PropertyRef: v1alpha1.PropertyReference{Name: a.property}, SHA256: a.SHA256, Scope: v1alpha1.AccessTokenScope(a.Scope),
				ExpirationTime: a.ends, CreatedBy: a.by,
			}}
		},
		record: func(c *Console, object client.Object) any { return c.tokenRecord(object.(*v1alpha1.AccessToken)) },
		of: func(object client.Object) (property, scope string) {
			token := object.(*v1alpha1.AccessToken)
			return token.Spec.PropertyRef.Name, string(token.GrantedScope())
		},
	}
	apiKeys = credentialKind{
		path: "keys", resource: "apikeys", noun: "API key", audit: audit.APIKey,
		object: func(namespace string, a asked) client.Object {
			return &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: a.Name}, Spec: v1alpha1.APIKeySpec{
				PropertyRef: v1alpha1.PropertyReference{Name: a.property}, SHA256: a.SHA256, ExpirationTime: a.ends, CreatedBy: a.by,
			}}
		},
		record: func(c *Console, object client.Object) any { return c.keyRecord(object.(*v1alpha1.APIKey)) },
		of: func(object client.Object) (property, scope string) {
			return object.(*v1alpha1.APIKey).Spec.PropertyRef.Name, ""
		},
	}
	credentialKinds = []credentialKind{accessTokens, apiKeys}
)

// right is what it takes to do something with objects of the kind, all of a namespace where name is "".
func (k credentialKind) right(verb, namespace, name string) right {
	return right{verb, k.resource, "", namespace, name}
}

// asked is a key or token that somebody wants to make. The secret itself is made in the browser, and never comes here.
type asked struct {
	Name      string  `json:"name"`
	SHA256    string  `json:"sha256"`
	Scope     string  `json:"scope"`
	ExpiresAt *string `json:"expires_at"`

	property, by string
	ends         *metav1.Time
}

const (
	// maxAskedBytes bounds the body by which something is made.
	maxAskedBytes = 4 << 10
	// apiTimeout is how long the API server may take to write.
	apiTimeout = 10 * time.Second
)

var (
	credentialName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	sha256Digits   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// readAsked reads the body of a request. Where it is false the request has been answered.
func (k credentialKind) readAsked(w http.ResponseWriter, r *http.Request, now time.Time) (a asked, ok bool) {
	body, ok := readJSON(w, r, maxAskedBytes)
	if !ok {
		return asked{}, false
	}
	if err := json.Unmarshal(body, &a, json.RejectUnknownMembers(true)); err != nil {
		server.Message(w, http.StatusBadRequest, "The body must be a JSON object with name, sha256, expires_at and, for an access token, scope.")
		return asked{}, false
	}
	if errs := k.check(&a, now); len(errs) > 0 {
		server.Invalid(w, errs)
		return asked{}, false
	}
	return a, true
}

// check looks at what is asked, and completes it.
func (k credentialKind) check(a *asked, now time.Time) (errs event.Errors) {
	if !credentialName.MatchString(a.Name) {
		errs.Add("name", "The name field must be at most 63 lower-case letters, digits and '-', with no '-' at either end.")
	}
	if !sha256Digits.MatchString(a.SHA256) {
		errs.Add("sha256", "The sha256 field must be the SHA-256 of the secret, as 64 lower-case hexadecimal digits.")
	}
	switch {
	case k.scoped && !auth.Scope(a.Scope).Valid():
		errs.Add("scope", "The scope field must be read, write or admin.")
	case !k.scoped && a.Scope != "":
		errs.Add("scope", "The scope field must be absent: API keys have none.")
	}
	if a.ExpiresAt != nil {
		ends, err := time.Parse(time.RFC3339, *a.ExpiresAt)
		if err != nil || ends.Year() > 9999 || !ends.After(now) {
			errs.Add("expires_at", "The expires_at field must be a time to come, as in RFC 3339, or null.")
		}
		a.ends = &metav1.Time{Time: ends.UTC().Truncate(time.Second)}
	}
	return errs
}

// createdAnswer is the answer to what was made.
type createdAnswer struct {
	Data any `json:"data"`
}

// makeCredential answers POST access/tokens and access/keys. The API server is asked whether the user may make one; the object is made
// in the console's own name, and says whom it is for.
func (c *Console) makeCredential(kind credentialKind) func(http.ResponseWriter, *http.Request, *visit) {
	return func(w http.ResponseWriter, r *http.Request, v *visit) {
		allowed, err := c.authoriser.may(r.Context(), v.user, kind.right("create", v.property.Namespace, ""))
		if err != nil {
			c.unavailable(w, r, err)
			return
		}
		if !allowed {
			server.Message(w, http.StatusForbidden, fmt.Sprintf("You may not make an %s here: RBAC's verb create on %s is missing.", kind.noun, kind.resource))
			return
		}
		a, ok := kind.readAsked(w, r, c.now())
		if !ok {
			return
		}
		if kind.scoped && !v.scope.Allows(auth.Scope(a.Scope)) {
			server.Message(w, http.StatusForbidden, "You may not make an access token that may do more than you.")
			return
		}
		a.property, a.by = v.property.Name, v.user.name
		object := kind.object(v.property.Namespace, a)
		ctx, cancel := context.WithTimeout(r.Context(), apiTimeout)
		defer cancel()
		if err := c.client.Create(ctx, object); err != nil {
			c.failWrite(w, r, kind, err)
			return
		}
		c.act(r.Context(), audit.CredentialMade, kind, v, object)
		server.JSON(w, http.StatusCreated, createdAnswer{kind.record(c, object)})
	}
}

// failWrite answers what the API server has not written.
func (c *Console) failWrite(w http.ResponseWriter, r *http.Request, kind credentialKind, err error) {
	switch {
	case apierrors.IsAlreadyExists(err):
		server.Message(w, http.StatusConflict, fmt.Sprintf("There is an %s of that name in the namespace already.", kind.noun))
	case apierrors.IsInvalid(err):
		server.Message(w, http.StatusUnprocessableEntity, "The API server does not take it.")
	case apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, "NamespaceTerminating"):
		server.Message(w, http.StatusConflict, "The namespace is being deleted.")
	case apierrors.IsForbidden(err):
		c.logger.ErrorContext(r.Context(), "the console may not do what its role is for", "resource", kind.resource, "error", err)
		server.Message(w, http.StatusForbidden, "The API server does not let the console do this; the console's log says more.")
	default:
		c.unavailable(w, r, err)
	}
}

// revokeCredential answers DELETE access/tokens/NAME and access/keys/NAME.
func (c *Console) revokeCredential(kind credentialKind) func(http.ResponseWriter, *http.Request, *visit) {
	return func(w http.ResponseWriter, r *http.Request, v *visit) {
		name := server.PathParameter(r, credentialParameter)
		if !credentialName.MatchString(name) {
			server.NotFound(w, r)
			return
		}
		allowed, err := c.authoriser.may(r.Context(), v.user, kind.right("delete", v.property.Namespace, name))
		if err != nil {
			c.unavailable(w, r, err)
			return
		}
		if !allowed {
			server.Message(w, http.StatusForbidden, fmt.Sprintf("You may not revoke this %s: RBAC's verb delete on %s is missing.", kind.noun, kind.resource))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), apiTimeout)
		defer cancel()
		object := kind.object(v.property.Namespace, asked{Name: name})
		err = c.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if property, _ := kind.of(object); apierrors.IsNotFound(err) || err == nil && property != v.property.Name {
			server.Message(w, http.StatusNotFound, fmt.Sprintf("The Property has no %s of that name.", kind.noun))
			return
		}
		if err == nil { // this one, and none that has its name meanwhile
			err = c.client.Delete(ctx, object, client.Preconditions{UID: new(object.GetUID())})
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			c.failWrite(w, r, kind, err)
			return
		}
		c.act(r.Context(), audit.CredentialDeleted, kind, v, object)
		w.WriteHeader(http.StatusNoContent)
	}
}

// act writes down what somebody has made or revoked, by the name that the operator has for it.
func (c *Console) act(ctx context.Context, act audit.Act, kind credentialKind, v *visit, object client.Object) {
	_, scope := kind.of(object)
	c.audit.Write(ctx, audit.Entry{
		Act: act, Property: v.property.Namespace + "/" + v.property.Name, Actor: audit.Party{Kind: audit.User, Name: v.user.name},
		Object: audit.Party{Kind: kind.audit, Name: kind.objectPrefix() + object.GetName(), Scope: scope}, Outcome: audit.Success,
	})
}

// objectPrefix stands before an object's name where one of the Property's spec could have the same.
func (k credentialKind) objectPrefix() string {
	if k.scoped {
		return "accesstoken/"
	}
	return "apikey/"
}
