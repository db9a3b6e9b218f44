package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/session"
)

// stateDir is the directory in which `weir dev` keeps what outlives it:
//
//	credentials.json     the keys and tokens of every property, for the person who runs it
//	sessions             what seals the sessions of people who are signed in to a property's page
//	redis/               the data of its own Redis
//	clickhouse/          the data of its own ClickHouse
//	history              what the passwords of the histories' users are made of
//	erasures/NAMESPACE/NAME/ledger
//	                     who of each property's persons has been erased, as digests: whatever Redis comes back with, they stay so
//	pods/NAMESPACE/NAME  each property's configuration, as its pods would see it; written again at every start
//	audit.jsonl          who did what, a line for each act; only ever appended to
//	lock                 held while it runs
type stateDir struct {
	path string
	lock *os.File
}

// openStateDir makes the directory and takes its lock, so that two of us never share a Redis's data.
func openStateDir(path string) (*stateDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("--state-dir: %w; pass a directory that can be written", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--state-dir: %w; pass a directory that can be written", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("--state-dir: %s is in use by another weir dev; stop that one or pass another directory", path)
	}
	return &stateDir{path: path, lock: lock}, nil
}

// Close gives the directory back.
func (s *stateDir) Close() error { return s.lock.Close() }

func (s *stateDir) redisDir() string { return filepath.Join(s.path, "redis") }

func (s *stateDir) clickHouseDir() string { return filepath.Join(s.path, "clickhouse") }

// openAudit opens the audit log to append to it.
func (s *stateDir) openAudit() (*os.File, error) {
	return os.OpenFile(filepath.Join(s.path, "audit.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

func (s *stateDir) credentialsFile() string { return filepath.Join(s.path, "credentials.json") }

// ledgerFile returns where a property's ledger of erasures lies.
func (s *stateDir) ledgerFile(namespace, name string) ledgerFile {
	return ledgerFile{filepath.Join(s.path, "erasures", namespace, name, path.Base(config.LedgerFile))}
}

// podDir returns where a property's configuration is written.
func (s *stateDir) podDir(namespace, name string) string {
	return filepath.Join(s.path, "pods", namespace, name)
}

// removePods removes every property's configuration, and with it the Secrets of properties that are served no more.
func (s *stateDir) removePods() error { return os.RemoveAll(filepath.Join(s.path, "pods")) }

// writePod writes a property's configuration. Paths in files are relative to its directory.
func (s *stateDir) writePod(namespace, name string, files map[string][]byte) (string, error) {
	directory := s.podDir(namespace, name)
	for path, content := range files {
		file := filepath.Join(directory, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return "", err
		}
	}
	return directory, nil
}

// sessionKeys returns what seals people's sessions: what an earlier run made, or a new key.
func (s *stateDir) sessionKeys() (string, error) {
	file := filepath.Join(s.path, "sessions")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(session.NewKey() + "\n")
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return "", err
	}
	if _, err := session.ParseKeys(string(text)); err != nil {
		return "", fmt.Errorf("%s %w; remove it, and whoever is signed in signs in again", file, err)
	}
	return string(text), nil
}

// readCredentials returns what an earlier run wrote, or nothing where there was none.
func (s *stateDir) readCredentials() (devCredentials, error) {
	var c devCredentials
	text, err := os.ReadFile(s.credentialsFile())
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		// The decoder's message could repeat a part of a key.
		return c, fmt.Errorf("%s is not what weir dev writes; fix it, or remove it to get new keys", s.credentialsFile())
	}
	return c, nil
}

// writeCredentials replaces credentials.json in one step, readable for its owner alone.
func (s *stateDir) writeCredentials(c devCredentials) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	temporary := s.credentialsFile() + ".new"
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, s.credentialsFile())
}
