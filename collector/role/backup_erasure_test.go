package role_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/backup"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/stream"
)

// clientsIn are the client ids of the events that a property has.
func clientsIn(t *testing.T, s *stream.Stream) map[string]bool {
	t.Helper()
	entries, err := s.ReadEvents(t.Context(), 0, 1000, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, entry := range entries {
		e, err := wire.Decode(entry.Data)
		if err != nil {
			t.Fatal(err)
		}
		found[e.ClientID] = true
	}
	return found
}

// Persons are erased by a deliverer before and while a backup runs. Who was erased before is not in it; the others wait.
func TestErasuresWaitForABackupAndItHasNobodyWhoWasErased(t *testing.T) {
	t.Parallel()
	e := newErasing(t, shop("shop"))
	e.save()
	e.stored("anna", "ben", "jane")
	e.run(role.Deliver)
	defer e.end()
	e.await("ready", e.ready)
	early := e.entry("ben", false)
	e.save(early)
	e.tell(early)
	e.await("ben is erased", func() bool { return !clientsIn(t, e.stream)["ben"] })
	e.await("that is done", func() bool {
		open, err := e.stream.OpenErasures(t.Context(), 10)
		return err == nil && len(open) == 0
	})

	told := false
	var pieces []stream.Piece
	err := e.stream.Backup(t.Context(), &stream.BackupProgress{}, func(p *stream.Piece) error {
		pieces = append(pieces, *p)
		if told || p.Kind != stream.PieceCut {
			return nil
		}
		told = true
		late := e.entry("jane", false)
		e.save(late)
		e.tell(late)
		<-time.After(6 * time.Second) // twice as long as a deliverer waits before it erases
		if !clientsIn(t, e.stream)["jane"] {
			t.Error("jane was erased while the backup ran")
		}
		return nil
	})
	if err != nil || !told {
		t.Fatalf("told %t, %v", told, err)
	}
	e.await("jane is erased once it is done", func() bool { return !clientsIn(t, e.stream)["jane"] })
	for _, piece := range pieces {
		if text := fmt.Sprint(piece); strings.Contains(text, "ben") {
			t.Errorf("ben is in a piece of %s", piece.Key)
		}
	}

	// A backup of now has anna alone, and so has whoever restores it.
	var file, said bytes.Buffer
	surroundings := backup.Environment{Stdout: &file, Stderr: &said, Getenv: func(string) string { return "" }, Version: "test"}
	if code := backup.Command(t.Context(), "weir backup", []string{"--redis-url", e.server.URL(), "--property", "default/shop", "--to", "-"}, surroundings); code != 0 {
		t.Fatal(said.String())
	}
	other := redistest.URL(t)
	surroundings.Stdin, surroundings.Stdout = &file, &said
	if code := backup.RestoreCommand(t.Context(), "weir restore", []string{"--redis-url", other, "--property", "default/shop", "-"}, surroundings); code != 0 {
		t.Fatal(said.String())
	}
	if found := clientsIn(t, dial(t, other, stream.TLS{}).Stream("default", "shop")); len(found) != 1 || !found["anna"] {
		t.Errorf("restored are %v", found)
	}
}
