package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// The tests of this file hold the whole program to what it promises about an erased person, each point a sentence.

// privacyFile writes a Property whose first token is an admin's: with a webhook, and with one at an address where nobody
// answers. more are further members of its spec.
func privacyFile(t *testing.T, hook, silent, more string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "shop.yaml")
	manifest := `
apiVersion: weir.dev/v1alpha1
kind: Property
metadata: {name: shop}
spec:
  currency: EUR
  ` + more + `
  accessTokens:
  - {name: dpo, scope: admin}
  platforms:
  - {name: crm, type: Webhook, webhook: {url: "` + hook + `"}, credentialsSecretRef: {name: shop-crm}}
  - {name: silent, type: Webhook, webhook: {url: "` + silent + `"}, credentialsSecretRef: {name: shop-crm}}
---
apiVersion: v1
kind: Secret
metadata: {name: shop-crm}
stringData: {signingSecret: ` + webhookSecret + `}
`
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// noAddress is one at which nobody answers.
func noAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return "http://" + listener.Addr().String() + "/hook"
}

// startPrivacy runs a weir dev with that file.
func startPrivacy(t *testing.T, state, file string, args ...string) *weirDev {
	t.Helper()
	weir := startWeirDev(t, state, append([]string{"-f", file, "--egress-allow-cidr", "127.0.0.0/8"}, args...)...)
	await(t, "the view answers", func() bool { return weir.read("/events").status == http.StatusOK })
	return weir
}

// janes and joes are events of two persons. Jane has a browser, an account, an address and a number, one after the other.
var (
	janes = []string{
		`{"event": "pageview", "event_id": "jane-1", "client_id": "jane-client", "context": {"utm_source": "google", "utm_medium": "cpc"}}`,
		`{"event": "purchase", "event_id": "jane-2", "client_id": "jane-client", "user_id": "jane-user", "user": {"email": "Jane.Roe@Example.com", "phone": "+4915112345678"},
			"data": {"value": 100, "currency": "EUR", "order_id": "jane-order"}}`,
		`{"event": "refund", "event_id": "jane-3", "user": {"email": "jane.roe@example.com"}, "data": {"value": 10, "currency": "EUR", "order_id": "jane-order"}}`,
	}
	joes = []string{
		`{"event": "pageview", "event_id": "joe-1", "client_id": "joe-client"}`,
		`{"event": "purchase", "event_id": "joe-2", "client_id": "joe-client", "user": {"email": "joe@example.com"}, "data": {"value": 7, "currency": "EUR", "order_id": "joe-order"}}`,
	}
)

// traces are what tells of Jane in a file: her ids, and the hashes of her address and number as text and as bytes.
func traces() []string {
	all := []string{"jane-1", "jane-2", "jane-3", "jane-client", "jane-user", "jane-order"}
	for _, text := range []string{"jane.roe@example.com", "4915112345678", "+4915112345678"} {
		hash := sha256Hex(text)
		raw, _ := hex.DecodeString(hash) // which is what it was made by
		all = append(all, hash, string(raw))
	}
	return all
}

// found lists which of some texts the files below a directory have.
func found(t *testing.T, directory string, texts []string) []string {
	t.Helper()
	var has []string
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, text := range texts {
			if strings.Contains(string(content), text) {
				has = append(has, filepath.Base(path)+": "+text)
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return found(t, directory, texts) // Redis has put another file in its place meanwhile
	}
	if err != nil {
		t.Fatal(err)
	}
	return has
}

// send has events taken in.
func (w *weirDev) send(events ...string) {
	w.t.Helper()
	for _, body := range events {
		if got := w.collect(body); got.status != http.StatusAccepted {
			w.t.Fatalf("collect %s: %d %s", body, got.status, got.body)
		}
	}
}

// listed are the ids of the events in the listing, in order of their arrival.
func (w *weirDev) listed() string {
	w.t.Helper()
	var ids []string
	for _, record := range w.listing() {
		ids = append(ids, record.EventID)
	}
	slices.Reverse(ids)
	return strings.Join(ids, " ")
}

// awaitListed waits until the listing has these events and no others.
func (w *weirDev) awaitListed(want string) {
	w.t.Helper()
	got := ""
	await(w.t, "the listing has "+want, func() bool { got = w.listed(); return got == want })
}

// erased is an erasure's state as the read API tells it.
type erased struct {
	ID        string `json:"id"`
	Status    string `json:"status"`
	PurgeBy   string `json:"purge_by"`
	Events    int    `json:"events"`
	Linked    int    `json:"linked_identifiers"`
	Unpurged  string `json:"unpurged_reason"`
	Platforms []struct {
		Platform    string `json:"platform"`
		Sent        bool   `json:"sent"`
		Instruction string `json:"instruction"`
	} `json:"platforms"`
}

// erase has a subject erased, and returns what the request was answered.
func (w *weirDev) erase(subject string) erased {
	w.t.Helper()
	got := do(w.t, http.MethodPost, w.BaseURL+"/properties/"+w.ID+"/erasures", subject, map[string]string{
		"Authorization": "Bearer " + w.AccessTokens[0].Token, "Content-Type": "application/json",
	})
	if got.status != http.StatusAccepted {
		w.t.Fatalf("erase: %d %s", got.status, got.body)
	}
	return w.state(got)
}

func (w *weirDev) state(got answer) erased {
	w.t.Helper()
	var told struct{ Data erased }
	if err := json.Unmarshal([]byte(got.body), &told); err != nil {
		w.t.Fatalf("%v: %s", err, got.body)
	}
	return told.Data
}

// awaitErasure waits until an erasure has come so far.
func (w *weirDev) awaitErasure(id, status string) erased {
	w.t.Helper()
	var state erased
	await(w.t, "the erasure is "+status, func() bool {
		state = w.state(w.read("/erasures/" + id))
		return state.Status == status || state.Status == "purged"
	})
	return state
}

func TestAPersonIsErased(t *testing.T) {
	receiver := newWebhookReceiver(t)
	silent := noAddress(t)
	state := filepath.Join(t.TempDir(), "state")
	file := privacyFile(t, receiver.URL+"/hook", silent, "")
	weir := startPrivacy(t, state, file)
	weir.send(slices.Concat(janes[:2], joes, janes[2:])...)
	await(t, "one webhook has all events, and the other one waits", func() bool {
		waits := 0
		for _, record := range weir.listing() {
			if statuses := record.statuses(); statuses["crm"] == "delivered" && statuses["silent"] != "delivered" {
				waits++
			}
		}
		return waits == 5
	})
	if has := found(t, filepath.Join(state, "redis"), traces()); len(has) == 0 {
		t.Fatal("Redis's files have nothing of the person before: the test looks in the wrong place")
	}

	answered := weir.erase(`{"email": " JANE.ROE@example.com", "linked": true, "suppress": true}`)
	if answered.Status == "" || answered.PurgeBy == "" || len(answered.Platforms) != 2 || answered.Platforms[0].Instruction == "" {
		t.Errorf("the request was answered %+v", answered)
	}
	hidden := weir.awaitErasure(answered.ID, "hidden")
	weir.awaitListed("joe-1 joe-2")

	for sentence, path := range map[string]string{
		"the listing":        "/events?limit=1000",
		"an export in CSV":   "/events?format=csv",
		"the rejections":     "/rejections",
		"daily figures":      "/analytics/daily",
		"a series":           "/analytics/series?interval=hour&period=24h",
		"pages":              "/analytics/breakdown?by=page",
		"products":           "/analytics/breakdown?by=product",
		"real time":          "/analytics/realtime",
		"event statistics":   "/events/stats?period=24h",
		"a funnel":           "/analytics/funnel?steps[]=pageview&steps[]=purchase",
		"attribution":        "/analytics/attribution",
		"the erasure itself": "/erasures/" + answered.ID,
	} {
		t.Run("nothing of the person is in "+sentence, func(t *testing.T) {
			got := weir.read(path)
			if got.status >= 500 || strings.Contains(got.body, "jane") {
				t.Errorf("got %d %s", got.status, got.body)
			}
		})
	}
	t.Run("nothing of the person is in an export of whole events", func(t *testing.T) {
		got := do(t, http.MethodGet, weir.BaseURL+"/properties/shop/events", "", map[string]string{
			"Authorization": "Bearer " + weir.AccessTokens[0].Token, "Accept": "application/x-ndjson",
		})
		if got.status != http.StatusOK || strings.Contains(got.body, "jane") || strings.Count(got.body, "\n") != 2 {
			t.Errorf("got %d %s", got.status, got.body)
		}
	})
	t.Run("numbers are those of the rest", func(t *testing.T) {
		if got := weir.read("/analytics/summary"); !strings.Contains(got.body, `"kpis":{"events":2,"unique_visitors":1,"purchases":1,"add_to_carts":0,"pageviews":1,"refunds":0,"revenue":7,`) {
			t.Errorf("got %s", got.body)
		}
	})
	t.Run("the state counts what is gone, and says at which platforms the owner has to see to it", func(t *testing.T) {
		if hidden.Events != 3 || hidden.Linked == 0 || !hidden.Platforms[0].Sent {
			t.Errorf("state %+v", hidden)
		}
	})
	t.Run("events to come count, and are nobody's and no platform's", func(t *testing.T) {
		before := len(receiver.received())
		weir.send(strings.Replace(janes[1], "jane-2", "jane-4", 1), `{"event": "lead", "event_id": "jane-5", "client_id": "jane-client"}`, `{"event": "lead", "event_id": "joe-3", "client_id": "joe-client"}`)
		await(t, "joe's event is delivered", func() bool { return len(receiver.received()) > before })
		await(t, "the purchase counts", func() bool { return strings.Contains(weir.read("/analytics/summary").body, `"purchases":2,`) })
		if got := weir.read("/analytics/summary"); !strings.Contains(got.body, `"unique_visitors":1,`) {
			t.Errorf("got %s", got.body)
		}
		for _, body := range receiver.received()[before:] {
			if !strings.Contains(body, "joe-3") {
				t.Errorf("delivered: %s", body)
			}
		}
	})
	t.Run("within a day Redis's files have nothing of the person, and all of others", func(t *testing.T) {
		if purged := weir.awaitErasure(answered.ID, "purged"); purged.Unpurged != "" {
			t.Errorf("state %+v", purged)
		}
		await(t, "the old files are gone", func() bool { return len(found(t, filepath.Join(state, "redis"), traces())) == 0 })
		if has := found(t, filepath.Join(state, "redis"), []string{"joe-client", "joe-2"}); len(has) < 2 {
			t.Errorf("of joe the files have %v", has)
		}
	})
	t.Run("what waits for a platform that comes back is not of the person", func(t *testing.T) {
		weir.stop()
		back := newWebhookReceiver(t)
		again := startPrivacy(t, state, privacyFile(t, receiver.URL+"/hook", back.URL+"/hook", ""))
		await(t, "joe's events are delivered there", func() bool { return len(back.received()) >= 3 })
		if text := strings.Join(back.received(), "\n"); strings.Contains(text, "jane") {
			t.Errorf("delivered: %s", text)
		}
		again.stop()
		for name, log := range map[string]string{"first": weir.stderr.String(), "second": again.stderr.String()} {
			if strings.Contains(strings.ToLower(log), "jane") {
				t.Errorf("the %s log tells of the person: %s", name, log)
			}
		}
	})
}

func TestAPropertyRefusesEventsOfWhoeverIsToStayErased(t *testing.T) {
	receiver := newWebhookReceiver(t)
	weir := startPrivacy(t, filepath.Join(t.TempDir(), "state"), privacyFile(t, receiver.URL, receiver.URL, "suppression: Refuse"))
	weir.erase(`{"phone": "+4915112345678", "suppress": true}`)
	await(t, "an event is refused", func() bool {
		got := weir.collect(`{"event": "lead", "user": {"phone": "+4915112345678"}}`)
		return got.status == http.StatusUnprocessableEntity && strings.Contains(got.body, "refuses such events")
	})
	weir.send(`{"event": "lead", "user": {"phone": "+4915112345679"}}`)
	await(t, "the refusal is listed", func() bool { return strings.Contains(weir.read("/rejections").body, "refuses such events") })
}

func TestAnOlderBackupBringsNobodyBack(t *testing.T) {
	receiver := newWebhookReceiver(t)
	folder := t.TempDir()
	state, backup := filepath.Join(folder, "state"), filepath.Join(folder, "backup")
	silent := noAddress(t)
	file := privacyFile(t, receiver.URL+"/hook", silent, "")
	weir := startPrivacy(t, state, file)
	weir.send(slices.Concat(janes, joes)...)
	weir.awaitListed("jane-1 jane-2 jane-3 joe-1 joe-2")
	weir.stop()
	if err := os.CopyFS(backup, os.DirFS(filepath.Join(state, "redis"))); err != nil {
		t.Fatal(err)
	}
	weir = startPrivacy(t, state, file)
	request := weir.erase(`{"client_id": "jane-client", "linked": true}`)
	weir.awaitErasure(request.ID, "hidden")
	weir.awaitListed("joe-1 joe-2")
	weir.stop()

	if err := os.RemoveAll(filepath.Join(state, "redis")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(state, "redis"), os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	back := newWebhookReceiver(t)
	weir = startWeirDev(t, state, "-f", privacyFile(t, receiver.URL+"/hook", back.URL+"/hook", ""), "--egress-allow-cidr", "127.0.0.0/8")
	first := answer{status: http.StatusServiceUnavailable}
	await(t, "the view answers", func() bool { first = weir.read("/events"); return first.status == http.StatusOK })
	if strings.Contains(first.body, "jane") || !strings.Contains(first.body, "joe-2") {
		t.Errorf("the first answer after the restore: %s", first.body)
	}
	await(t, "joe's events are delivered", func() bool { return len(back.received()) >= 2 })
	if text := strings.Join(back.received(), "\n"); strings.Contains(text, "jane") {
		t.Errorf("delivered after the restore: %s", text)
	}
	await(t, "Redis is rid of the person again", func() bool { return len(found(t, filepath.Join(state, "redis"), traces())) == 0 })
}

func TestAnEmptiedRedisForgetsNobody(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{})
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	receiver := newWebhookReceiver(t)
	state := filepath.Join(t.TempDir(), "state")
	file := privacyFile(t, receiver.URL, receiver.URL, "suppression: Refuse")
	refused := func(weir *weirDev) func() bool {
		return func() bool { return weir.collect(janes[0]).status == http.StatusUnprocessableEntity }
	}
	ledgered := func() bool {
		length, err := client.XLen(t.Context(), "weir:{default/shop}:erasure:ledger").Result()
		return err == nil && length > 0
	}
	weir := startPrivacy(t, state, file, "--redis", server.URL())
	weir.erase(`{"client_id": "jane-client", "suppress": true}`)
	await(t, "an event is refused", refused(weir))
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	await(t, "the ledger stream has the person again, while weir dev runs", ledgered)
	if !refused(weir)() {
		t.Error("an event is taken after Redis was emptied")
	}
	weir.stop()
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	again := startPrivacy(t, state, file, "--redis", server.URL())
	if !ledgered() {
		t.Error("the ledger stream lacks the person after a start")
	}
	if !refused(again)() {
		t.Error("an event is taken after a start")
	}
}

func TestAThousandCallersEraseAtOnce(t *testing.T) {
	receiver := newWebhookReceiver(t)
	weir := startPrivacy(t, filepath.Join(t.TempDir(), "state"), privacyFile(t, receiver.URL, receiver.URL, ""))
	weir.send(joes...)
	var all sync.WaitGroup
	statuses := make([]int, 1000)
	for i := range statuses {
		all.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, weir.BaseURL+"/properties/shop/erasures", strings.NewReader(fmt.Sprintf(`{"client_id": "jane-%d"}`, i)))
			if err != nil {
				t.Error(err)
				return
			}
			request.Header.Set("Authorization", "Bearer "+weir.AccessTokens[0].Token)
			request.Header.Set("Content-Type", "application/json")
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Error(err)
				return
			}
			statuses[i] = response.StatusCode
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if got := weir.read("/analytics/summary"); got.status != http.StatusOK {
		t.Errorf("a query meanwhile: %d %s", got.status, got.body)
	}
	all.Wait()
	for i, status := range statuses {
		if status != http.StatusAccepted {
			t.Fatalf("erasure %d was answered %d", i, status)
		}
	}
	weir.awaitListed("joe-1 joe-2")
}
