package controllers

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/connect"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/controllers/resources"
)

// The keys of a role's Secret of the history that its pods do not mount, beside those of a Redis Secret. It holds where the history
// is, as the spec said it: who switches a history off has taken it out of the spec.
const historyKeyServer = "server"

// historyAccess is what the roles' pods reach the history with.
type historyAccess struct {
	urls map[access.Role]string
	tls  connect.TLS
	port int32
}

// history has the Property's history made and kept. Until it has been made the pods are told of none, so that one that cannot
// be made changes nothing. Passwords are made once and live in the roles' Secrets, as those of Redis do.
func (r *Reconciler) history(ctx context.Context, s *scope) error {
	if !s.property.Spec.HasHistory() {
		return nil
	}
	s.historyUnknown = true
	target, problem, err := r.historyTarget(ctx, s.property, s.property.Spec.History.ClickHouse)
	if err != nil {
		return err
	}
	s.historyProblem = problem
	made, err := r.historyMade(ctx, s)
	if err != nil {
		return err
	}
	base := (*url.URL)(nil)
	if problem == nil {
		if base, err = url.Parse(target.url); err != nil {
			return clickhouse.ErrURL // not one that has just been checked
		}
	}
	users, err := r.historyUsers(ctx, s, base, made)
	if err != nil || s.historyProblem != nil {
		s.historyUnknown = err != nil
		s.again(historyRetry)
		return err
	}
	if err := r.addFinalizer(ctx, s, HistoryFinalizer); err != nil {
		return err
	}
	state := r.History.keep(keyOf(s.property), target, placeOf(s.property), users)
	s.historyProblem = r.historyFound(s, target, state, made)
	if state.looked && state.err == nil {
		for _, user := range users {
			if err := r.giveHistory(ctx, s, user.Role, config.ClickHouse{URL: placeOf(s.property).URL(base, user), TLS: target.tls}); err != nil {
				return err
			}
		}
	}
	s.historyUnknown = false
	return nil
}

// historyFound is what is to be said of what was found. Where nobody has looked yet, that is what was said before.
func (r *Reconciler) historyFound(s *scope, target historyTarget, state historyState, made bool) *conditionReason {
	if state.looked {
		return historyProblemOf(target, state.err)
	}
	before := meta.FindStatusCondition(s.property.Status.Conditions, v1alpha1.ConditionHistoryReady)
	switch {
	case before != nil && before.Status == metav1.ConditionFalse && before.Reason != v1alpha1.ReasonArchiveLagging:
		return &conditionReason{before.Reason, before.Message}
	case made:
		return nil
	default:
		return reasonf(v1alpha1.ReasonProgressing, "database, users and tables are being made")
	}
}

// historyTarget returns the Property's own ClickHouse, or the operator's.
func (r *Reconciler) historyTarget(ctx context.Context, property *v1alpha1.Property, spec *v1alpha1.ClickHouse) (historyTarget, *conditionReason, error) {
	if spec == nil || spec.URLSecretKeyRef == nil {
		if r.Options.ClickHouseURL == "" {
			return historyTarget{}, reasonf(v1alpha1.ReasonHistoryServerMissing,
				"the operator has no ClickHouse: start it with --clickhouse-url-file, or name one in %s", resources.HistoryURLField), nil
		}
		target := historyTarget{url: r.Options.ClickHouseURL, own: true}
		var err error
		if target.tls, err = r.Options.ClickHouseTLS.Read(); err == nil {
			err = checkHistoryURL(target)
		}
		return target, historyProblemOf(target, err), nil
	}
	value, missing, err := r.secretValue(ctx, property, resources.HistoryURLField, *spec.URLSecretKeyRef)
	if err != nil || missing != nil {
		return historyTarget{}, missing, err
	}
	target := historyTarget{url: strings.TrimSpace(value)}
	missing, err = r.certificates(ctx, property, resources.HistoryCertificates(spec), &target.tls)
	if err != nil || missing != nil {
		return historyTarget{}, missing, err
	}
	return target, historyProblemOf(target, checkHistoryURL(target)), nil
}

// checkHistoryURL says whether the URL is one for a history, as far as can be told without connecting. What is behind a question mark
// would reach the pods.
func checkHistoryURL(target historyTarget) error {
	if err := clickhouse.CheckURL(target.url, target.tls); err != nil {
		return err
	}
	address, err := url.Parse(target.url)
	switch {
	case err != nil:
		return clickhouse.ErrURL
	case address.RawQuery != "" || address.ForceQuery:
		return &connect.Problem{Kind: clickhouse.ErrURL, Detail: "nothing may be behind a question mark; a private authority is trusted by caSecretRef"}
	case address.User.Username() == "":
		return &connect.Problem{Kind: clickhouse.ErrURL, Detail: "it must name a user, who may administer"}
	}
	return nil
}

// certificates reads what is trusted and shown in a server of the Property's own.
func (r *Reconciler) certificates(ctx context.Context, property *v1alpha1.Property, parts []resources.Certificate, into *connect.TLS) (*conditionReason, error) {
	for _, part := range parts {
		value, missing, err := r.secretValue(ctx, property, part.Field, part.Ref)
		if err != nil || missing != nil {
			return missing, err
		}
		if value == "" {
			return reasonf(v1alpha1.ReasonSecretInvalid, "%s: key %s of Secret %s must not be empty", part.Field, part.Ref.Key, part.Ref.Name), nil
		}
		*part.Of(into) = value
	}
	return nil, nil
}

// historyMade says whether the history has been made, as far as the cluster tells: where a role's Secret was deleted, the others
// and the archive's pods are still there.
func (r *Reconciler) historyMade(ctx context.Context, s *scope) (bool, error) {
	for _, role := range access.Roles() {
		secret, err := r.readSecret(ctx, s.property, resources.HistorySecretName(s.property, role))
		if err != nil {
			return false, err
		}
		if secret != nil && metav1.IsControlledBy(secret, s.property) && len(secret.Data[redisKeyURL]) > 0 {
			return true, nil
		}
	}
	deployment, err := r.deployment(ctx, s.property, resources.Archive)
	return deployment != nil && metav1.IsControlledBy(deployment, s.property), err
}

// historyUsers returns the roles' users, from Secrets that are made where they are missing. Without a base, which is not known, and
// before the history is made, a Secret gets no URL that it does not have.
func (r *Reconciler) historyUsers(ctx context.Context, s *scope, base *url.URL, made bool) ([]access.User, error) {
	server, err := json.Marshal(s.property.Spec.History.ClickHouse)
	if err != nil {
		return nil, err
	}
	var users []access.User
	var errs []error
	s.history = &historyAccess{urls: map[access.Role]string{}}
	for _, role := range access.Roles() {
		user, place := access.User{Role: role}, placeOf(s.property)
		secret, taken, err := r.createOnce(ctx, s, resources.HistorySecretName(s.property, role), func(data map[string][]byte) map[string][]byte {
			if user.Password = string(data[redisKeyPassword]); user.Password == "" {
				user.Password = rand.Text()
			}
			kept := historyIn(data)
			if kept.URL == "" && made && base != nil {
				kept.URL = place.URL(base, user)
			}
			return historySecret(kept, place.UserName(role), user.Password, server)
		})
		s.historyProblem = cmp.Or(s.historyProblem, taken)
		if err != nil || taken != nil {
			errs = append(errs, err)
			continue
		}
		s.history.add(role, historyIn(secret.Data))
		if age := s.now.Sub(secret.CreationTimestamp.Time); age < redisOverlap {
			user.KeepPasswords = true
			s.again(redisOverlap - age)
		}
		users = append(users, user)
	}
	return users, errors.Join(errs...)
}

// add notes what a role's Secret holds.
func (h *historyAccess) add(role access.Role, history config.ClickHouse) {
	if history.URL == "" {
		return
	}
	h.urls[role], h.tls, h.port = history.URL, history.TLS, historyPort(history.URL)
}

// giveHistory writes what a role's pods reach the history with.
func (r *Reconciler) giveHistory(ctx context.Context, s *scope, role access.Role, history config.ClickHouse) error {
	_, taken, err := r.createOnce(ctx, s, resources.HistorySecretName(s.property, role), func(data map[string][]byte) map[string][]byte {
		return historySecret(history, string(data[redisKeyUser]), string(data[redisKeyPassword]), data[historyKeyServer])
	})
	if err == nil && taken == nil {
		s.history.add(role, history)
	}
	return err
}

// historySecret is the data of a role's Secret, historyIn what of it the pods mount.
func historySecret(history config.ClickHouse, user, password string, server []byte) map[string][]byte {
	data := resources.HistorySecretData(history)
	data[redisKeyUser], data[redisKeyPassword], data[historyKeyServer] = []byte(user), []byte(password), server
	return data
}

func historyIn(data map[string][]byte) config.ClickHouse {
	return config.ClickHouse{URL: string(data[redisKeyURL]), TLS: connect.TLS{
		CA: string(data["ca.crt"]), Certificate: string(data["tls.crt"]), Key: string(data["tls.key"]),
	}}
}

// historyPort is where the pods may go.
func historyPort(address string) int32 {
	parsed, err := url.Parse(address)
	if err != nil {
		return 0
	}
	if port, err := strconv.ParseInt(parsed.Port(), 10, 32); err == nil {
		return int32(port)
	}
	if parsed.Scheme == "https" {
		return 8443
	}
	return 8123
}

func placeOf(property *v1alpha1.Property) access.Place {
	return access.Place{Namespace: property.Namespace, Name: property.Name, Cluster: property.Spec.History.Cluster()}
}
