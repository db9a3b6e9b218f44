package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/ledger"
)

func TestALedgersFileIsReplacedWhole(t *testing.T) {
	file := ledgerFile{filepath.Join(t.TempDir(), "default", "shop", "ledger")}
	if l, err := file.Load(t.Context()); l != nil || err != nil {
		t.Errorf("before it was saved: %v, %v, want neither", l, err)
	}
	l := ledger.New()
	for digest := range byte(3) {
		l.Add(erasure.Entry{Digest: erasure.Digest{digest}, At: time.Now()})
		if err := file.Save(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		loaded, err := file.Load(t.Context())
		if err != nil || loaded.Salt != l.Salt || loaded.Len() != l.Len() {
			t.Errorf("loaded %d identifiers, error %v, want %d", loaded.Len(), err, l.Len())
		}
	}
	if info, err := os.Stat(file.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v, want that its owner alone may read it", info, err)
	}
	// What a run that was killed has left behind is not taken for a ledger, and not in the way.
	if err := os.WriteFile(file.path+".new", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if loaded, err := file.Load(t.Context()); err != nil || loaded.Len() != 3 {
		t.Errorf("loaded %d identifiers, error %v, want 3", loaded.Len(), err)
	}
	if err := file.Save(t.Context(), l); err != nil {
		t.Error(err)
	}
}

func TestALedgerThatIsNoneIsNotReplaced(t *testing.T) {
	file := ledgerFile{filepath.Join(t.TempDir(), "ledger")}
	if err := os.WriteFile(file.path, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := file.Load(t.Context()); err == nil {
		t.Errorf("loaded %v", l)
	}
}

func TestALedgerAsLargeAsItMayBeIsReadByPods(t *testing.T) {
	l := ledger.New()
	for i := range maxLedger {
		l.Add(erasure.Entry{Digest: erasure.Digest{byte(i), byte(i >> 8), byte(i >> 16)}, At: time.Now()})
	}
	pod := t.TempDir()
	if err := (ledgerFile{filepath.Join(pod, config.LedgerFile)}).Save(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if loaded, err := config.LoadLedger(pod); err != nil || loaded.Len() != maxLedger {
		t.Errorf("loaded %d identifiers, error %v, want %d", loaded.Len(), err, maxLedger)
	}
}
