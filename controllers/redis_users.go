package controllers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers/resources"
)

// The keys of a role's Redis Secret that its pods do not mount, and the URL's, which they do.
const (
	redisKeyURL      = "url"
	redisKeyPassword = "password"
	redisKeyUser     = "username"
)

// redisURLField is where a Property says which Redis is its own.
const redisURLField = "spec.redis.urlSecretKeyRef"

// roleAccess is what the roles' pods reach Redis with.
type roleAccess struct {
	urls map[resources.Role]string
	tls  stream.TLS
	port int32
}

// redisOverlap is for how long a role's old password holds beside a new one. The kubelet brings the new one to running
// pods well within it.
const redisOverlap = 5 * time.Minute

// redisAccess gives each role a user of its own in the Property's Redis. A password is made once and lives in the
// role's Secret; whoever deletes that Secret gets a new one, and the old password holds until the pods have it.
func (r *Reconciler) redisAccess(ctx context.Context, s *scope) error {
	target, missing, err := r.preparedTarget(ctx, s)
	if err != nil || missing != nil {
		s.redisProblem = missing
		if s.property.Spec.Redis == nil {
			s.again(redisInterval) // nobody tells of files
		}
		return err
	}
	if err := r.Redis.check(target); err != nil {
		s.redisProblem = redisProblemOf(target, err)
		return nil
	}
	base, err := url.Parse(target.url)
	if err != nil {
		return explainRedis(err) // not one that has just been checked
	}
	s.access = &roleAccess{urls: map[resources.Role]string{}, tls: target.tls, port: redisPort(base)}
	users, foreign, errs := r.redisUsers(ctx, s, base, target)
	state, err := r.Redis.reach(ctx, target, s.property)
	if err == nil && state.reachable() {
		if failed := r.addFinalizer(ctx, s, Finalizer); failed != nil {
			return errors.Join(append(errs, failed)...)
		}
		err = r.Redis.ensure(ctx, target, s.property, users)
	}
	shared := deniedByRedis(err) && target.brought()
	if shared {
		if err = r.Redis.share(target, s.property); err == nil {
			s.redisNote = reasonf(v1alpha1.ReasonSharedUser,
				"the user of spec.redis may not make users, so all roles share it: nothing but the network keeps one from the others' commands (see docs/operate/redis.md)")
		}
	}
	for _, problem := range []error{err, state.fitness, state.library} {
		if s.redisProblem == nil {
			s.redisProblem = redisProblemOf(target, problem)
		}
	}
	if target.dedicated != "" {
		errs = append(errs, r.observeDedicated(ctx, s))
	}
	if s.redisProblem != nil {
		s.again(redisInterval)
	}
	s.redisProblem = cmp.Or(s.redisProblem, foreign)
	if err != nil || !state.reachable() {
		return errors.Join(errs...) // whether the roles have users, or share the URL's, is as it was
	}
	for _, user := range users {
		roleURL := target.url // as managed ones have it, whose user may not make users
		if !shared {
			roleURL = withUser(base, user.name, user.password)
		}
		errs = append(errs, r.giveAccess(ctx, s, user.role, config.Redis{URL: roleURL, TLS: target.tls}))
	}
	return errors.Join(errs...)
}

// preparedTarget returns the Property's Redis, with the Secrets of one that is made for it.
func (r *Reconciler) preparedTarget(ctx context.Context, s *scope) (redisTarget, *conditionReason, error) {
	if s.property.Spec.DedicatedRedis() != nil {
		if problem, err := r.dedicatedSecrets(ctx, s); err != nil || problem != nil {
			return redisTarget{}, problem, err
		}
	}
	return r.redisTarget(ctx, s.property)
}

// redisUsers returns the users of the roles. Where one cannot be had, the other roles go on, and so does looking at Redis.
func (r *Reconciler) redisUsers(ctx context.Context, s *scope, base *url.URL, target redisTarget) (users []roleUser, foreign *conditionReason, errs []error) {
	for _, role := range resources.RolesOf(s.property) {
		user, kept, taken, err := r.redisUser(ctx, s, role, base, target)
		if err != nil || taken != nil {
			errs, foreign = append(errs, err), cmp.Or(foreign, taken)
			continue
		}
		users = append(users, user)
		s.access.urls[role] = kept
	}
	return users, foreign, errs
}

// giveAccess writes what a role's pods reach Redis with.
func (r *Reconciler) giveAccess(ctx context.Context, s *scope, role resources.Role, access config.Redis) error {
	if err := r.writeRole(ctx, s, role, access); err != nil {
		delete(s.access.urls, role)
		return err
	}
	s.access.urls[role] = access.URL
	return nil
}

// redisTarget returns the Property's own Redis, which it has brought or which is made for it, or the operator's.
func (r *Reconciler) redisTarget(ctx context.Context, property *v1alpha1.Property) (redisTarget, *conditionReason, error) {
	if property.Spec.Redis == nil {
		if r.Options.RedisURL == "" {
			return redisTarget{}, reasonf(v1alpha1.ReasonRedisUnreachable,
				"the operator has no Redis: start it with --redis-url-file, or give the Property one in spec.redis"), nil
		}
		certificates, err := r.Options.redisTLS().Read()
		if err == nil {
			err = stream.CheckTLS(r.Options.RedisURL, certificates)
		}
		if resources.RedisCertificateField(err) != "" {
			return redisTarget{}, reasonf(v1alpha1.ReasonSecretInvalid, "the operator's Redis: %v", stream.Explain(err)), nil
		}
		return redisTarget{url: r.Options.RedisURL, tls: certificates, own: true}, nil, nil
	}
	if property.Spec.DedicatedRedis() != nil {
		return r.dedicatedTarget(ctx, property)
	}
	value, missing, err := r.secretValue(ctx, property, redisURLField, *property.Spec.Redis.URLSecretKeyRef)
	if err != nil || missing != nil {
		return redisTarget{}, missing, err
	}
	target := redisTarget{url: strings.TrimSpace(value)}
	problem, err := r.redisCertificates(ctx, property, &target)
	return target, problem, err
}

// redisCertificates reads what is trusted and shown in the Property's own Redis. The error names the field that is wrong.
func (r *Reconciler) redisCertificates(ctx context.Context, property *v1alpha1.Property, target *redisTarget) (*conditionReason, error) {
	missing, err := r.certificates(ctx, property, resources.RedisCertificates(property.Spec.Redis), &target.tls)
	if err != nil || missing != nil {
		return missing, err
	}
	err = stream.CheckTLS(target.url, target.tls)
	if blamed := resources.RedisCertificateField(err); blamed != "" {
		return reasonf(v1alpha1.ReasonSecretInvalid, "%s: %v", blamed, err), nil
	}
	return nil, nil
}

// redisUser returns the role's user, and the URL that stands in the role's Secret. The error says that the name of its Secret is taken.
func (r *Reconciler) redisUser(ctx context.Context, s *scope, role resources.Role, base *url.URL, target redisTarget) (roleUser, string, *conditionReason, error) {
	user := roleUser{role: role, name: redisUserName(s.property, role)}
	kept := ""
	secret, taken, err := r.createOnce(ctx, s, resources.RedisSecretName(s.property, role), func(data map[string][]byte) map[string][]byte {
		user.password = string(data[redisKeyPassword])
		if user.password == "" {
			user.password = rand.Text()
		}
		kept = withUser(base, user.name, user.password)
		if target.brought() && string(data[redisKeyURL]) == target.url {
			kept = target.url // what was found before; only Redis tells whether it is still so
		}
		return roleSecret(config.Redis{URL: kept, TLS: target.tls}, []byte(user.name), []byte(user.password))
	})
	if err != nil || taken != nil {
		return roleUser{}, "", taken, err
	}
	if age := s.now.Sub(secret.CreationTimestamp.Time); age < redisOverlap {
		user.rolling = true
		s.again(redisOverlap - age)
	}
	return user, kept, nil, nil
}

// writeRole makes a role's Secret hold how Redis is reached, which may be as another user than the role's own.
func (r *Reconciler) writeRole(ctx context.Context, s *scope, role resources.Role, redis config.Redis) error {
	_, _, err := r.createOnce(ctx, s, resources.RedisSecretName(s.property, role), func(data map[string][]byte) map[string][]byte {
		return roleSecret(redis, data[redisKeyUser], data[redisKeyPassword])
	})
	return err
}

// roleSecret is the data of a role's Secret.
func roleSecret(redis config.Redis, user, password []byte) map[string][]byte {
	data := resources.RedisSecretData(redis)
	data[redisKeyUser], data[redisKeyPassword] = user, password
	return data
}

// withUser returns the URL with another user.
func withUser(base *url.URL, name, password string) string {
	own := *base
	own.User = url.UserPassword(name, password)
	return own.String()
}

// redisUserName cannot be taken for another's: neither names nor namespaces have colons or slashes.
func redisUserName(property *v1alpha1.Property, role resources.Role) string {
	return "weir:" + property.Namespace + "/" + property.Name + ":" + string(role)
}

// redisPort is where the pods may go; 0 for anywhere, where a URL names several nodes.
func redisPort(address *url.URL) int32 {
	if query := address.Query(); query.Has("addr") || query.Has("master_name") {
		return 0
	}
	if port, err := strconv.ParseInt(address.Port(), 10, 32); err == nil {
		return int32(port)
	}
	if address.Scheme == "unix" {
		return 0
	}
	return 6379
}

func keyOf(property *v1alpha1.Property) types.NamespacedName {
	return types.NamespacedName{Namespace: property.Namespace, Name: property.Name}
}

// roleUser is a role's user as its Secret has it.
type roleUser struct {
	role           resources.Role
	name, password string
	// rolling says that pods with another password may still run.
	rolling bool
}

func platformNames(property *v1alpha1.Property) []string {
	names := make([]string, len(property.Spec.Platforms))
	for i, platform := range property.Spec.Platforms {
		names[i] = platform.Name
	}
	return names
}

// sourceNames are those by which deliverers tell of sources.
func sourceNames(property *v1alpha1.Property) []string {
	var names []string
	for _, source := range property.Spec.Sources {
		if readsOrders(source) {
			names = append(names, sourceName(source.Name))
		}
	}
	return names
}

func sourceName(source string) string { return stream.SourceName(source) }
