package role_test

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/stream"
)

// erasing is a pod's property in a Redis that the test writes to.
type erasing struct {
	*pod
	server *redisserver.Server
	stream *stream.Stream
	redis  *redis.Client
	ledger erasure.Ledger
}

func newErasing(t *testing.T, property config.Property) *erasing {
	t.Helper()
	e := &erasing{pod: &pod{t: t, directory: t.TempDir(), property: property, log: &logBuffer{}}, server: redistest.Start(t, redisserver.Options{Persist: true})}
	e.ledger.Salt = erasure.Salt{1}
	client := dial(t, e.server.URL(), stream.TLS{})
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	options, err := redis.ParseURL(e.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	e.stream, e.redis = client.Stream(property.Namespace, property.Name), redis.NewClient(options)
	t.Cleanup(func() {
		if err := e.redis.Close(); err != nil {
			t.Error(err)
		}
	})
	e.write(config.PropertyFile, property)
	e.write(config.APIKeysFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("key-1")}})
	e.write(config.AccessTokensFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("token-1"), Scope: auth.ScopeRead}})
	e.writeText(config.RedisURLFile, e.server.URL())
	return e
}

// entry is a ledger's about a client.
func (e *erasing) entry(client string, suppress bool) erasure.Entry {
	named := event.Event{ClientID: client}
	id := named.Identifiers(e.property.Namespace+"/"+e.property.Name, nil).List[0]
	return erasure.Entry{Digest: e.ledger.Salt.Digest(id), At: time.Now(), Suppress: suppress}
}

// save writes the ledger's file, with somebody beside those who were in it.
func (e *erasing) save(entries ...erasure.Entry) {
	e.t.Helper()
	for _, entry := range entries {
		e.ledger.Add(entry)
	}
	e.writeText(config.LedgerFile, string(e.ledger.Encode()))
}

// tell has the ledger stream tell of somebody.
func (e *erasing) tell(entry erasure.Entry) {
	e.t.Helper()
	e.tellAs(uuid.NewString(), entry)
}

// tellAs does so by an erasure with an id.
func (e *erasing) tellAs(id string, entry erasure.Entry) {
	e.t.Helper()
	if err := e.stream.Ledgered(e.t.Context(), stream.ErasureRequest{ID: id}, []erasure.Entry{entry}); err != nil {
		e.t.Fatal(err)
	}
}

// stored puts events of clients into the stream.
func (e *erasing) stored(clients ...string) {
	e.t.Helper()
	for _, client := range clients {
		stored := event.Event{ID: client, ClientID: client, Name: "purchase", DeliveryID: uuid.New()}
		if err := e.redis.XAdd(e.t.Context(), &redis.XAddArgs{
			Stream: "weir:{" + e.property.Namespace + "/" + e.property.Name + "}:events", Values: []any{"e", wire.Encode(&stored)},
		}).Err(); err != nil {
			e.t.Fatal(err)
		}
	}
}

func (e *erasing) ready() bool {
	return e.request(http.MethodGet, e.metrics+"/readyz", "", nil) == http.StatusOK
}

// sendOf sends an event of a client, and returns the status.
func (e *erasing) sendOf(client string) int {
	return e.request(http.MethodPost, e.collect+"/collect/key-1", `{"event": "lead", "client_id": "`+client+`"}`, http.Header{"Content-Type": {"application/json"}})
}

func (e *erasing) end() {
	e.t.Helper()
	if err := e.stop(); err != nil {
		e.t.Errorf("stop: %v", err)
	}
}

func TestAViewNeverHasWhoeverWasErased(t *testing.T) {
	for sentence, known := range map[string]func(e *erasing){
		"by the file": func(e *erasing) { e.save(e.entry("jane", false)) },
		"by a part of the file": func(e *erasing) {
			e.save()
			e.ledger.Add(e.entry("jane", false))
			e.writeText(config.LedgerFile+"-1", string(e.ledger.Encode()))
		},
		"by the ledger stream": func(e *erasing) { e.save(); e.tell(e.entry("jane", false)) },
		"by the file, where an older backup has no ledger stream": func(e *erasing) { e.save(e.entry("jane", true)) },
	} {
		t.Run(sentence, func(t *testing.T) {
			e := newErasing(t, shop("reader"))
			e.stored("jane", "joe")
			known(e)
			e.run(role.Query)
			e.await("ready", e.ready)
			if count, _, status := e.purchases(); status != http.StatusOK || count != 1 {
				t.Errorf("%d purchases, status %d, want joe's alone", count, status)
			}
			e.end()
		})
	}
}

// rejected notes a rejection of a while ago.
func (e *erasing) rejected(id string, ago time.Duration) {
	e.t.Helper()
	list := stream.NewRejections(e.stream, slog.New(slog.DiscardHandler))
	list.Add(stream.Rejection{ID: uuid.NewString(), At: time.Now().Add(-ago), EventID: id, Answer: []byte(`{"message":"x"}`)})
	if err := list.Close(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
}

func TestAfterARestoreNoRejectionOfBeforeIsListed(t *testing.T) {
	for sentence, test := range map[string]struct {
		before, meanwhile func(e *erasing)
		want              []string
	}{
		"the backup has no erasure at all": {before: func(e *erasing) { e.save(e.entry("jane", false)) }},
		"the backup has another one": {before: func(e *erasing) {
			e.tell(e.entry("joe", false))
			e.save(e.entry("jane", false))
		}},
		"the erasure has been put back, and is not done yet": {before: func(e *erasing) {
			jane := e.entry("jane", false)
			e.save(jane)
			e.tellAs(stream.RestoredErasure+uuid.NewString(), jane)
		}},
		"the backup is put back while a reader runs": {
			before: func(e *erasing) {
				jane := e.entry("jane", false)
				e.save(jane)
				e.tell(jane)
			},
			meanwhile: func(e *erasing) {
				if err := e.redis.Del(e.t.Context(), "weir:{default/reader}:erasure:ledger").Err(); err != nil {
					e.t.Fatal(err)
				}
			},
		},
		"what was erased before stays as it is": {
			before: func(e *erasing) {
				jane := e.entry("jane", false)
				e.save(jane)
				e.tell(jane)
			},
			want: []string{"of-jane"},
		},
		"nobody was erased": {before: func(e *erasing) { e.save() }, want: []string{"of-jane"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			e := newErasing(t, shop("reader"))
			test.before(e)
			e.rejected("of-jane", time.Minute)
			e.run(role.Query)
			e.await("ready", e.ready)
			if test.meanwhile != nil {
				test.meanwhile(e)
			}
			e.rejected("since", -2*time.Minute)
			var answer struct {
				Data []struct {
					EventID string `json:"event_id"`
				}
			}
			if response := e.read("rejections", &answer); response.StatusCode != http.StatusOK {
				t.Fatalf("status %d", response.StatusCode)
			}
			got := []string{}
			for _, one := range answer.Data {
				got = append(got, one.EventID)
			}
			if want := append([]string{"since"}, test.want...); !slices.Equal(got, want) {
				t.Errorf("rejections of %v are listed, want %v", got, want)
			}
			e.end()
		})
	}
}

func TestNobodyIsReadyBeforeTheLedgerIsRead(t *testing.T) {
	for sentence, roles := range map[string][]role.Name{"a collector": {role.Collect}, "a deliverer": {role.Deliver}, "a reader": {role.Query}} {
		t.Run(sentence, func(t *testing.T) {
			e := newErasing(t, shop("reader"))
			e.tell(e.entry("jane", true)) // of whom nobody can tell without the file's salt
			e.run(roles...)
			e.await("it says what it waits for", func() bool {
				return e.request(http.MethodGet, e.metrics+"/readyz", "", nil) == http.StatusServiceUnavailable
			})
			if e.ready() {
				t.Error("it is ready without the ledger's file")
			}
			e.save()
			e.await("ready", e.ready)
			e.end()
		})
	}
}

func TestALedgerThatCannotBeReadIsAnErrorAtTheStart(t *testing.T) {
	e := newErasing(t, shop("reader"))
	e.writeText(config.LedgerFile, "hush")
	e.run(role.Query)
	err := e.stop()
	if err == nil || !strings.Contains(err.Error(), config.LedgerFile) || strings.Contains(err.Error(), "hush") {
		t.Errorf("error %v, want one that names the file", err)
	}
}

func TestCollectorsLearnWhoIsSuppressedWhileTheyRun(t *testing.T) {
	property := shop("suppressing")
	property.Suppression = config.Refuse
	e := newErasing(t, property)
	e.save()
	e.run(role.Collect)
	e.await("ready", e.ready)
	refused := func(client string) func() bool {
		return func() bool { return e.sendOf(client) == http.StatusUnprocessableEntity }
	}
	if got := e.sendOf("jane"); got != http.StatusAccepted {
		t.Fatalf("before: %d", got)
	}
	t.Run("by the ledger stream", func(t *testing.T) {
		e.tell(e.entry("jane", true))
		e.await("jane is refused", refused("jane"))
	})
	t.Run("by the file", func(t *testing.T) {
		e.save(e.entry("ann", true))
		e.await("ann is refused", refused("ann"))
	})
	t.Run("and do not forget it where the ledger stream is lost", func(t *testing.T) {
		if err := e.redis.Del(t.Context(), "weir:{default/suppressing}:erasure:ledger").Err(); err != nil {
			t.Fatal(err)
		}
		e.tell(e.entry("bob", true)) // in the new one
		e.await("bob is refused", refused("bob"))
		if !refused("jane")() {
			t.Error("jane is taken again")
		}
	})
	t.Run("nor where the file breaks or goes", func(t *testing.T) {
		e.writeText(config.LedgerFile, "broken")
		e.await("the error is logged", func() bool { return strings.Contains(e.log.String(), "ledger of erasures cannot be read") })
		if !refused("ann")() {
			t.Error("ann is taken again")
		}
	})
	if got := e.sendOf("joe"); got != http.StatusAccepted {
		t.Errorf("somebody else: %d", got)
	}
	if strings.Contains(e.log.String(), "configuration reloaded") {
		t.Error("the ledger has the whole configuration loaded again")
	}
	e.end()
}
