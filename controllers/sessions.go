package controllers

import (
	"cmp"
	"context"
	"path"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/session"
	"github.com/weir-dev/weir/controllers/resources"
)

// sessionKeys makes what seals the sessions of people who are signed in to the Property's page, where nobody has made it yet.
// What there is is never overwritten: deleting the Secret ends all sessions, and a further line in front changes the key without
// ending any.
func (r *Reconciler) sessionKeys(ctx context.Context, s *scope) error {
	name, key := resources.SessionsSecretName(s.property), path.Base(config.SessionKeysFile)
	secret, taken, err := r.createOnce(ctx, s, name, func(data map[string][]byte) map[string][]byte {
		if len(data[key]) > 0 {
			return map[string][]byte{key: data[key]}
		}
		return map[string][]byte{key: []byte(session.NewKey())}
	})
	s.credentialsProblem = cmp.Or(s.credentialsProblem, taken)
	if secret == nil {
		return err
	}
	if _, unfit := session.ParseKeys(string(secret.Data[key])); unfit != nil {
		s.credentialsProblem = cmp.Or(s.credentialsProblem, reasonf(v1alpha1.ReasonSecretInvalid,
			"Secret %s: key %s %v: nobody can sign in to the page; delete the Secret, and Weir makes another", name, key, unfit))
	}
	return err
}
