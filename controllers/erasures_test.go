package controllers_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
)

// erasing is a Property in a Redis of the test's own, whose persons are to be erased.
type erasing struct {
	t         testing.TB
	namespace string
	address   string
	redis     *redis.Client
	stream    *stream.Stream
}

// newErasing prepares one; there is neither a Property nor an operator yet. The lines are further ones of redis.conf.
func newErasing(t testing.TB, lines ...string) *erasing {
	t.Helper()
	server := redistest.Start(t, redisserver.Options{Persist: true, Loopback: true, Extra: append([]string{"aof-use-rdb-preamble no"}, lines...)})
	connection, err := stream.Dial(server.URL(), stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	namespace := newNamespace(t)
	return &erasing{t, namespace, server.URL(), dial(t, server.URL()), connection.Stream(namespace, "shop")}
}

// serve starts an operator; calls pass through wrap.
func (e *erasing) serve(wrap func(client.Client) client.Client) *operator {
	return startOperator(e.t, operatorOptions{namespaces: []string{e.namespace}, Options: controllers.Options{RedisURL: e.address}, wrap: wrap})
}

// begin makes the Property and waits until its persons can be erased.
func (e *erasing) begin(edit ...func(*v1alpha1.Property)) {
	e.t.Helper()
	create(e.t, property(e.namespace, "shop", edit...))
	waitFor(e.t, e.namespace, "shop", v1alpha1.ConditionErasuresReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

// person returns the identifier of a client.
func (e *erasing) person(name string) event.Identifier {
	one := event.Event{ClientID: name}
	return one.Identifiers(e.namespace+"/shop", nil).List[0]
}

// request asks for somebody's erasure, and returns its id.
func (e *erasing) request(name string, suppress bool) string {
	e.t.Helper()
	id := uuid.NewString()
	err := e.stream.RequestErasure(context.Background(), stream.ErasureRequest{
		ID: id, Identifiers: []event.Identifier{e.person(name)}, Suppress: suppress, Origin: "api:test",
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return id
}

// ledgered waits until an erasure stands in the ledger.
func (e *erasing) ledgered(id string) {
	e.t.Helper()
	eventually(e.t, func() error {
		state, err := e.stream.Erasure(context.Background(), id)
		if err == nil && state.Ledgered.IsZero() {
			err = errors.New("it is not ledgered")
		}
		return err
	})
}

// secret is a part of the ledger, nil where there is none.
func (e *erasing) secret(part string) *corev1.Secret {
	e.t.Helper()
	found := &corev1.Secret{}
	err := server.client.Get(context.Background(), client.ObjectKey{Namespace: e.namespace, Name: "shop-erasures" + part}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return found
}

// ledger is what a part of the ledger holds.
func (e *erasing) ledger(part string) *erasure.Ledger {
	e.t.Helper()
	l, err := erasure.Decode(e.secret(part).Data["ledger"])
	if err != nil {
		e.t.Fatal(err)
	}
	return l
}

// knows says whether the ledger in the cluster has somebody.
func (e *erasing) knows(name string) bool {
	e.t.Helper()
	return e.ledger("").Erased(event.Identifiers{List: []event.Identifier{e.person(name)}}, time.Now().Add(-time.Minute))
}

// told are the ids of the erasures in the ledger stream that name somebody.
func (e *erasing) told(name string) []string {
	e.t.Helper()
	salt := e.ledger("").Salt
	list, _, err := e.stream.ReadLedger(context.Background(), 0, 10_000)
	if err != nil {
		e.t.Fatal(err)
	}
	var ids []string
	for _, read := range list {
		for _, entry := range read.Entries {
			if entry.Digest == salt.Digest(e.person(name)) {
				ids = append(ids, read.ErasureID)
			}
		}
	}
	return ids
}

// hide plays the deliverer that has hidden an erasure, and returns its id.
func (e *erasing) hide() string {
	e.t.Helper()
	id, now, keys := uuid.NewString(), time.Now().UnixMilli(), "weir:{"+e.namespace+"/shop}:erasure:"
	pipe := e.redis.TxPipeline()
	pipe.HSet(context.Background(), keys+"state:"+id, "ledgered", now, "hidden", now)
	pipe.ZAdd(context.Background(), keys+"hidden", redis.Z{Score: float64(now), Member: id})
	if _, err := pipe.Exec(context.Background()); err != nil {
		e.t.Fatal(err)
	}
	return id
}

func (e *erasing) state(id string) stream.ErasureState {
	e.t.Helper()
	state, err := e.stream.Erasure(context.Background(), id)
	if err != nil {
		e.t.Fatal(err)
	}
	return state
}

func TestARequestStandsInTheSecretBeforeTheStreamIsTold(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	var id atomic.Value
	e.serve(func(c client.Client) client.Client {
		return &watchedClient{Client: c, before: func(call string) error {
			if asked, _ := id.Load().(string); asked != "" && strings.HasSuffix(call, "shop-erasures") && !e.state(asked).Ledgered.IsZero() {
				t.Error("the stream was told before the Secret was written")
			}
			return nil
		}}
	})
	e.begin()
	if before := e.secret(""); !metav1.IsControlledBy(before, get(t, &v1alpha1.Property{}, e.namespace, "shop")) {
		t.Error("a ledger without anybody in it outlives its Property")
	}
	asked := e.request("ann", false)
	e.ledgered(asked)
	id.Store(asked)
	if !e.knows("ann") || e.knows("bob") {
		t.Errorf("the Secret knows ann: %t, bob: %t", e.knows("ann"), e.knows("bob"))
	}
	if diff := cmp.Diff([]string{asked}, e.told("ann")); diff != "" {
		t.Errorf("the ledger stream (-want +got):\n%s", diff)
	}
	eventually(t, func() error {
		secret := e.secret("")
		if len(secret.OwnerReferences) > 0 || secret.Annotations["weir.dev/erasures"] != "1" || secret.Labels["app.kubernetes.io/instance"] != "shop" {
			return fmt.Errorf("the Secret has the metadata %+v", secret.ObjectMeta)
		}
		return nil
	})
}

func TestAnOperatorKilledBetweenSecretAndStreamWritesNobodyTwice(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	var kills atomic.Int64
	e.serve(func(c client.Client) client.Client {
		none := func(string) error { return nil }
		return &watchedClient{Client: c, before: none, after: func(call string) error {
			if strings.HasPrefix(call, "update") && strings.HasSuffix(call, "shop-erasures") && kills.Add(1) == 1 {
				return errors.New("the connection ended before the answer came")
			}
			return nil
		}}
	})
	e.begin()
	id := e.request("ann", false)
	eventuallyWithin(t, time.Minute, func() error {
		if state, err := e.stream.Erasure(t.Context(), id); err != nil || state.Ledgered.IsZero() {
			return fmt.Errorf("not ledgered yet: %w", err)
		}
		return nil
	})
	if kills.Load() == 0 {
		t.Error("nobody was killed")
	}
	if n := e.ledger("").Len(); n != 1 || !e.knows("ann") {
		t.Errorf("the ledger has %d identifiers, want that of ann", n)
	}
	if diff := cmp.Diff([]string{id}, e.told("ann")); diff != "" {
		t.Errorf("the ledger stream (-want +got):\n%s", diff)
	}
	if left, err := e.stream.ErasureRequests(t.Context(), 10); err != nil || len(left) > 0 {
		t.Errorf("%d requests are left, error %v", len(left), err)
	}
}

func TestALostRedisIsToldAgainWhoWasErased(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	running := e.serve(nil)
	e.begin()
	e.ledgered(e.request("ann", false))
	at := e.ledger("").Entries()[0].At
	// What a backup from before the erasure has: nothing of it.
	older := func() {
		if err := e.redis.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	again := func() {
		t.Helper()
		eventually(t, func() error {
			told := e.told("ann")
			if len(told) != 1 || !strings.HasPrefix(told[0], "restored-") {
				return fmt.Errorf("the ledger stream tells of %v", told)
			}
			return nil
		})
		if now := e.ledger("").Entries()[0].At; !now.Equal(at) {
			t.Errorf("erased at %v, want %v as before", now, at)
		}
	}
	t.Run("while the operator runs", func(t *testing.T) {
		older()
		again()
	})
	t.Run("while none runs", func(t *testing.T) {
		running.stop()
		older()
		e.serve(nil)
		again()
	})
}

func TestWhatBecomesOfALedgerWhenItsPropertyIsDeleted(t *testing.T) {
	for sentence, row := range map[string]struct {
		policy v1alpha1.DeletionPolicy
		erased bool
		want   bool
	}{
		"Retain keeps it, for a Property of the same name":     {v1alpha1.DeletionPolicyRetain, true, true},
		"Retain keeps none in which nobody stands":             {v1alpha1.DeletionPolicyRetain, false, false},
		"Delete removes it":                                    {v1alpha1.DeletionPolicyDelete, true, false},
		"Delete removes one in which nobody stands, of course": {v1alpha1.DeletionPolicyDelete, false, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			e := newErasing(t)
			e.serve(nil)
			policy := func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = row.policy }
			e.begin(policy)
			if row.erased {
				e.ledgered(e.request("ann", true))
			}
			salt := e.ledger("").Salt
			deleted(t, e.namespace, "shop")
			if kept := e.secret("") != nil; kept != row.want {
				t.Fatalf("it is kept: %t, want %t", kept, row.want)
			}
			e.begin(policy)
			if same := e.ledger("").Salt == salt; same != row.want || e.knows("ann") != row.want {
				t.Errorf("the next Property has the same: %t, and knows ann: %t, want %t", same, e.knows("ann"), row.want)
			}
			p := get(t, &v1alpha1.Property{}, e.namespace, "shop")
			if text := message(p, v1alpha1.ConditionErasuresReady); text != "persons can be erased" {
				t.Errorf("the condition says %q", text)
			}
		})
	}
}

func TestALedgerFollowsThePolicyUntilTheEnd(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	e.serve(nil)
	e.begin(func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete })
	e.ledgered(e.request("ann", false))
	for _, step := range []struct {
		policy v1alpha1.DeletionPolicy
		owners int
	}{{v1alpha1.DeletionPolicyRetain, 0}, {v1alpha1.DeletionPolicyDelete, 1}, {v1alpha1.DeletionPolicyRetain, 0}} {
		change(t, &v1alpha1.Property{}, e.namespace, "shop", func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = step.policy })
		eventually(t, func() error {
			if n := len(e.secret("").OwnerReferences); n != step.owners {
				return fmt.Errorf("with %s it has %d owners, want %d", step.policy, n, step.owners)
			}
			return nil
		})
	}
}

func TestTwoOperatorsLoseNobody(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	e.serve(nil)
	e.serve(nil)
	e.begin()
	var ids []string
	for round := range 3 {
		for i := range 10 {
			ids = append(ids, e.request(fmt.Sprintf("person-%d-%d", round, i), i%2 == 0))
		}
		e.ledgered(ids[len(ids)-10]) // others may come meanwhile
	}
	for _, id := range ids {
		e.ledgered(id)
	}
	for round := range 3 {
		for i := range 10 {
			if name := fmt.Sprintf("person-%d-%d", round, i); !e.knows(name) {
				t.Errorf("%s is not in the ledger", name)
			}
		}
	}
	if n := e.ledger("").Len(); n != 30 {
		t.Errorf("the ledger has %d identifiers, want 30", n)
	}
}

// crowd makes a part of a ledger with so many persons as fit who stay erased, beside the Property.
func (e *erasing) crowd(part int, salt erasure.Salt) {
	e.t.Helper()
	l := &erasure.Ledger{Salt: salt}
	for i := range erasure.Capacity(corev1.MaxSecretSize) {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(part)<<32+uint64(i)))
		l.Add(erasure.Entry{Digest: erasure.Digest(sum[:]), At: time.Now().Add(-time.Hour).Truncate(time.Millisecond).UTC(), Suppress: true})
	}
	name := "shop-erasures"
	if part > 0 {
		name += fmt.Sprint("-", part)
	}
	create(e.t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: e.namespace, Name: name,
		Labels: map[string]string{"app.kubernetes.io/name": "weir", "app.kubernetes.io/instance": "shop", "app.kubernetes.io/managed-by": "weir"},
	}, Data: map[string][]byte{"ledger": l.Encode()}})
}

func TestALedgerThatOutgrowsItsSecretGoesOnInAnother(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	e.crowd(0, erasure.Salt{1})
	first := e.secret("").ResourceVersion
	e.serve(nil)
	e.begin() // a restored Secret is taken over
	id := e.request("ann", false)
	e.ledgered(id)
	if n := e.ledger("-1").Len(); n != 1 {
		t.Errorf("the second Secret has %d identifiers, want 1", n)
	}
	if now := e.secret("").ResourceVersion; now != first {
		t.Error("the first Secret was written, though nothing in it has changed")
	}
	eventually(t, func() error {
		for _, role := range []string{"collector", "deliverer", "query"} {
			volumes := get(t, &appsv1.Deployment{}, e.namespace, "shop-"+role).Spec.Template.Spec.Volumes
			i := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == "erasures" })
			if n := len(volumes[i].Projected.Sources); n != 2 {
				return fmt.Errorf("%s mounts %d parts of the ledger, want 2", role, n)
			}
		}
		return nil
	})
}

func TestAFullLedgerSaysSo(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	for part := range 16 {
		e.crowd(part, erasure.Salt{1})
	}
	e.serve(nil)
	create(t, property(e.namespace, "shop"))
	settled(t, e.namespace, "shop")
	id := e.request("ann", false)
	p := waitFor(t, e.namespace, "shop", v1alpha1.ConditionErasuresReady, metav1.ConditionFalse, v1alpha1.ReasonLedgerFull)
	if text := message(p, v1alpha1.ConditionErasuresReady); !strings.Contains(text, "1118432 identifiers") {
		t.Errorf("the condition says %q", text)
	}
	if _, err := e.stream.Erasure(t.Context(), id); !errors.Is(err, stream.ErrNoErasure) {
		t.Errorf("the erasure has a state: %v", err)
	}
	if waiting, err := e.stream.ErasureRequests(t.Context(), 10); err != nil || len(waiting) != 1 {
		t.Errorf("%d requests wait, error %v, want 1", len(waiting), err)
	}
}

func TestALedgerThatIsLostOrSpoilt(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	e.serve(nil)
	e.begin()
	e.ledgered(e.request("ann", true))
	backup := e.secret("")

	// replace does what kubectl replace does with the backup.
	replace := func() {
		eventually(t, func() error {
			now := e.secret("")
			if now == nil {
				return errors.New("there is no Secret")
			}
			restored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: e.namespace, Name: now.Name, Labels: backup.Labels, Annotations: backup.Annotations, ResourceVersion: now.ResourceVersion,
			}, Data: backup.Data}
			return server.client.Update(t.Context(), restored)
		})
		waitFor(t, e.namespace, "shop", v1alpha1.ConditionErasuresReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		if !e.knows("ann") {
			t.Error("ann is not known")
		}
	}
	if err := server.client.Delete(t.Context(), e.secret("")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, e.namespace, "shop", v1alpha1.ConditionErasuresReady, metav1.ConditionFalse, v1alpha1.ReasonLedgerLost)
	if e.knows("ann") {
		t.Error("the new ledger knows somebody")
	}
	replace()

	change(t, &corev1.Secret{}, e.namespace, "shop-erasures", func(s *corev1.Secret) { s.Data["ledger"] = []byte("spoilt") })
	waitFor(t, e.namespace, "shop", v1alpha1.ConditionErasuresReady, metav1.ConditionFalse, v1alpha1.ReasonSecretInvalid)
	replace()
	e.ledgered(e.request("bob", false))
	if !e.knows("ann") || !e.knows("bob") {
		t.Errorf("known: ann %t, bob %t", e.knows("ann"), e.knows("bob"))
	}
}

func TestRedisFilesAreRidOfWhatWasErased(t *testing.T) {
	page, err := os.ReadFile("../docs/operate/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, documented, _ := strings.Cut(string(page), "ACL SETUSER weir on >PASSWORD ")
	documented, _, _ = strings.Cut(documented, "\n")
	for sentence, row := range map[string]struct {
		lines []string
		// rules are those of the operator's user.
		rules string
		// reason is that of the condition, "" where it stays True; state that in the erasure's state.
		reason, state string
	}{
		"with the documented rights": {rules: documented},
		"a user who may not have them rewritten is told": {
			rules: documented + " -bgrewriteaof", reason: v1alpha1.ReasonRedisRewriteDenied, state: stream.UnpurgedDenied,
		},
		"a Redis that keeps snapshots is told": {
			lines: []string{"aof-use-rdb-preamble yes"}, rules: documented, reason: v1alpha1.ReasonRedisKeepsErased, state: stream.UnpurgedSnapshots,
		},
		"a user who may do nothing of all this is told": {
			rules: strings.ReplaceAll(documented, ":erasure:", ":another:"), reason: v1alpha1.ReasonRedisAdminDenied,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			e := newErasing(t, row.lines...)
			arguments := []any{"acl", "setuser", "weir", "on", ">secret"}
			for rule := range strings.FieldsSeq(row.rules) {
				arguments = append(arguments, rule)
			}
			if err := e.redis.Do(t.Context(), arguments...).Err(); err != nil {
				t.Fatal(err)
			}
			e.address = withUser(t, e.address, "weir", "secret")
			e.serve(nil)
			create(t, property(e.namespace, "shop"))
			settled(t, e.namespace, "shop")
			asked, hidden := e.request("ann", false), e.hide()
			if row.reason == v1alpha1.ReasonRedisAdminDenied {
				waitFor(t, e.namespace, "shop", v1alpha1.ConditionErasuresReady, metav1.ConditionFalse, row.reason)
				return
			}
			e.ledgered(asked)
			if row.reason == "" {
				eventually(t, func() error {
					if e.state(hidden).Purged.IsZero() {
						return errors.New("it is not purged")
					}
					return nil
				})
				waitFor(t, e.namespace, "shop", v1alpha1.ConditionErasuresReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
				return
			}
			waitFor(t, e.namespace, "shop", v1alpha1.ConditionErasuresReady, metav1.ConditionFalse, row.reason)
			if state := e.state(hidden); state.Unpurged != row.state || !state.Purged.IsZero() {
				t.Errorf("the state is %+v, want %q", state, row.state)
			}
		})
	}
}
