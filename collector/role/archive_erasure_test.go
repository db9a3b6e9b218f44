package role_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/stream"
)

// TestTheArchiveErasesPersons has it do so with the users that it has in both systems, and nothing more.
func TestTheArchiveErasesPersons(t *testing.T) {
	redis, keeper, user, history := emptyHistory(t)
	admin := dial(t, redis.URL(), stream.TLS{})
	if err := admin.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	own := stream.User{Name: "archive", Password: "own", Access: stream.ArchiveAccess, Namespace: "default", Property: "kept"}
	if err := stream.NewUsers(admin).Set(t.Context(), []stream.User{own}); err != nil {
		t.Fatal(err)
	}
	clients := func() string {
		list, err := clickhouse.Select[string](t.Context(), history, clickhouse.Query{SQL: "SELECT client_id FROM events ORDER BY at"})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(list, " ")
	}

	property := shop("kept")
	property.History = &config.History{RetentionDays: 100}
	collect := &pod{t: t, directory: t.TempDir(), property: property, log: &logBuffer{}}
	collect.write(config.PropertyFile, property)
	collect.write(config.APIKeysFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("key-1")}})
	collect.writeText(config.RedisURLFile, redis.URL())
	collect.run(role.Collect)
	for _, client := range []string{"ada.1", "bob.2", "ada.1"} {
		collect.await("collecting", func() bool {
			return collect.request(http.MethodPost, collect.collect+"/collect/key-1", `{"event": "lead", "client_id": "`+client+`"}`, http.Header{"Content-Type": {"application/json"}}) == http.StatusAccepted
		})
	}
	ledger := erasure.Ledger{Salt: erasure.Salt{1}}
	p := &pod{t: t, directory: t.TempDir(), property: property, log: &logBuffer{}}
	p.write(config.PropertyFile, property)
	p.writeText(config.LedgerFile, string(ledger.Encode()))
	p.writeText(config.RedisURLFile, "redis://archive:own@"+redis.URL()[strings.Index(redis.URL(), "@")+1:])
	p.writeText(config.HistoryURLFile, keeper.URL(user))
	p.run(role.Archive)
	p.await("what was there is archived", func() bool { return clients() == "ada.1 bob.2 ada.1" })

	ada := event.Event{ClientID: "ada.1"}
	entry := erasure.Entry{Digest: ledger.Salt.Digest(ada.Identifiers("default/kept", nil).List[0]), At: time.Now()}
	id, s := uuid.NewString(), admin.Stream("default", "kept")
	if err := s.Ledgered(t.Context(), stream.ErasureRequest{ID: id}, []erasure.Entry{entry}); err != nil {
		t.Fatal(err)
	}
	p.await("nothing of Ada is in the history", func() bool { return clients() == "bob.2" })
	p.await("it is noted", func() bool {
		state, err := s.Erasure(t.Context(), id)
		return err == nil && state.History.Hidden
	})
	for _, secret := range []string{"ada", "own@", "cannot forget"} {
		if strings.Contains(p.log.String(), secret) {
			t.Errorf("the log has %q:\n%s", secret, p.log)
		}
	}
	for _, one := range []*pod{p, collect} {
		if err := one.stop(); err != nil {
			t.Error(err)
		}
	}
}
