package controllers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// consoleKeysIn returns the keys in the console's Secret, none where there are none.
func consoleKeysIn(t *testing.T, name types.NamespacedName) []auth.SigningKey {
	t.Helper()
	text := get(t, &corev1.Secret{}, name.Namespace, name.Name).Data[controllers.ConsoleKeysKey]
	if len(text) == 0 {
		return nil
	}
	keys, err := auth.ParseSigningKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestThePodsTrustTheConsolesKeysAndNoOthers goes through what becomes of the Secret from which the console signs.
func TestThePodsTrustTheConsolesKeysAndNoOthers(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	name := types.NamespacedName{Namespace: namespace, Name: "weir-console-keys"}
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name.Name}, StringData: map[string]string{"other": "theirs"}})
	began := time.Now()
	var ahead atomic.Int64 // of the clock, in nanoseconds
	now := func() time.Time { return began.Add(time.Duration(ahead.Load())) }
	var log bytes.Buffer
	console := &controllers.ConsoleKeys{Client: server.client, Secret: name, Now: now, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	operator := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t), Console: console}})
	shop := property(namespace, "shop")
	create(t, shop)
	uid := string(shop.UID)

	// trusted waits until the pods are told to trust the keys, in that order.
	trusted := func(want ...auth.SigningKey) {
		t.Helper()
		eventuallyWithin(t, 20*time.Second, func() error {
			var told auth.Verifier
			if err := json.Unmarshal([]byte(get(t, &corev1.ConfigMap{}, namespace, "shop-config").Data["console.json"]), &told); err != nil {
				return err
			}
			same := slices.EqualFunc(told.Keys, want, func(public auth.PublicKey, key auth.SigningKey) bool { return public.ID() == key.ID })
			if !same || len(want) > 0 && told.Audience != uid {
				return fmt.Errorf("they trust %d keys for %q, want %d for %q", len(told.Keys), told.Audience, len(want), uid)
			}
			return nil
		})
	}
	keys := func(count int) (list []auth.SigningKey) {
		t.Helper()
		eventuallyWithin(t, 20*time.Second, func() error {
			if list = consoleKeysIn(t, name); len(list) != count {
				return fmt.Errorf("the Secret has %d keys, want %d", len(list), count)
			}
			return nil
		})
		return list
	}

	settled(t, namespace, "shop")
	first := keys(1)[0]
	trusted(first)
	if string(get(t, &corev1.Secret{}, namespace, name.Name).Data["other"]) != "theirs" {
		t.Error("what else was in the Secret is gone")
	}
	ahead.Store(int64(31 * 24 * time.Hour))
	pair := keys(2)
	if pair[1].ID != first.ID || pair[0].ID == first.ID {
		t.Fatalf("after a month there are %s and %s, want another and then %s", pair[0].ID, pair[1].ID, first.ID)
	}
	trusted(pair...)
	ahead.Store(int64(32*24*time.Hour + time.Minute))
	if alone := keys(1)[0]; alone.ID != pair[0].ID {
		t.Errorf("a day later the key that is left is %s, want the newer %s", alone.ID, pair[0].ID)
	}
	trusted(pair[0])

	change(t, &corev1.Secret{}, namespace, name.Name, func(s *corev1.Secret) { s.Data[controllers.ConsoleKeysKey] = []byte("guessable") })
	trusted()
	change(t, &corev1.Secret{}, namespace, name.Name, func(s *corev1.Secret) { delete(s.Data, controllers.ConsoleKeysKey) })
	anew := keys(1)[0]
	trusted(anew)
	if anew.ID == pair[0].ID {
		t.Error("the key that was taken away is back")
	}
	if err := server.client.Delete(t.Context(), get(t, &corev1.Secret{}, namespace, name.Name)); err != nil {
		t.Fatal(err)
	}
	trusted()
	operator.stop()
	for _, secret := range []auth.SigningKey{first, pair[0], anew} {
		seed, _ := json.Marshal(secret.Seed)
		if bytes.Contains(log.Bytes(), bytes.Trim(seed, `"`)) {
			t.Error("the log has a private key")
		}
	}
	if bytes.Contains(log.Bytes(), []byte("guessable")) {
		t.Error("the log has what was in the place of the keys")
	}
}
