package operator

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestTheLogFollowsItsFile, as a ConfigMap is written anew while the operator runs.
func TestTheLogFollowsItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "level")
	write := func(word string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(word+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("warn")
	log, level := &logBuffer{}, new(slog.LevelVar)
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))
	ctx, end := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { followLogLevel(ctx, file, level, logger) })
	t.Cleanup(func() { end(); following.Wait() })
	await(t, "it is taken from the file", func() bool { return level.Level() == slog.LevelWarn })
	write("debug")
	await(t, "it follows", func() bool { return level.Level() == slog.LevelDebug })
	logger.Debug("a detail")
	write("loud")
	await(t, "a word that is none is said", func() bool { return strings.Contains(log.String(), "must hold debug, info, warn or error") })
	if level.Level() != slog.LevelDebug {
		t.Errorf("it is %s for a word that is none", level.Level())
	}
	write("info")
	await(t, "it follows again", func() bool { return level.Level() == slog.LevelInfo })
	logger.Debug("another detail")
	if text := log.String(); !strings.Contains(text, "a detail") || strings.Contains(text, "another detail") || !strings.Contains(text, "level=WARN") {
		t.Errorf("the log is\n%s", text)
	}
}
