package config

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Watcher notices that the content of a configuration directory has changed. It compares contents rather than
// waiting for file events: the kubelet swaps links instead of writing files, and volumes of one directory
// change one after the other.
type Watcher struct {
	dir  string
	seen [sha256.Size]byte
}

// NewWatcher remembers what dir holds now, but for the ledger of erasures: that changes while everything else stays. Make it
// before loading the configuration, so that no change between the two is missed.
func NewWatcher(dir string) *Watcher { return &Watcher{dir: dir, seen: fingerprint(dir)} }

// NewLedgerWatcher is [NewWatcher] for the ledger of erasures below dir.
func NewLedgerWatcher(dir string) *Watcher { return NewWatcher(filepath.Join(dir, ledgerDir)) }

// ledgerDir holds the ledger of erasures.
var ledgerDir = path.Dir(LedgerFile)

// Run looks at the directory every interval and calls onChange when its content is another than at the last
// look, until ctx ends. It waits for onChange; a change in the meantime is noticed at the next look.
func (w *Watcher) Run(ctx context.Context, interval time.Duration, onChange func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if now := fingerprint(w.dir); now != w.seen {
			w.seen = now
			onChange()
		}
	}
}

// maxDepth bounds how deep a fingerprint looks; the layout needs three.
const maxDepth = 5

// fingerprint hashes the paths and contents of all files below dir, as seen through links. What cannot be read
// counts as absent: whoever loads it gets the error.
func fingerprint(dir string) [sha256.Size]byte {
	sum := sha256.New()
	addDirectory(sum, dir, "", maxDepth)
	return [sha256.Size]byte(sum.Sum(nil))
}

func addDirectory(sum hash.Hash, dir, name string, depth int) {
	entries, err := os.ReadDir(filepath.Join(dir, name)) // sorted by name
	if err != nil || depth == 0 {
		return
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") {
			continue // the kubelet's own directories; their files are seen by their proper names
		}
		path := filepath.Join(name, entry.Name())
		if path == ledgerDir {
			continue // it has a watcher of its own
		}
		info, err := os.Stat(filepath.Join(dir, path))
		switch {
		case err != nil:
			continue
		case info.IsDir():
			addDirectory(sum, dir, path, depth-1)
		case info.Mode().IsRegular():
			if content, err := readBounded(filepath.Join(dir, path)); err == nil {
				addPart(sum, []byte(path))
				addPart(sum, content)
			}
		}
	}
}

// addPart adds a part with its length, so that no two lists of parts make the same hash.
func addPart(sum hash.Hash, part []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(part)))
	sum.Write(length[:]) // a hash takes everything
	sum.Write(part)
}
