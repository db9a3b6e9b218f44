package config_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/collector/config"
)

func TestWatcherNoticesWhatChangesTheConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   int
	}{
		"nothing": {func(*testing.T, string) {}, 0},
		"the kubelet swaps a volume": {func(t *testing.T, dir string) {
			mount(t, filepath.Join(dir, "property"), "..2", map[string]string{"property.json": "two"})
		}, 1},
		"the kubelet swaps a volume for one with the same content": {func(t *testing.T, dir string) {
			mount(t, filepath.Join(dir, "property"), "..2", map[string]string{"property.json": "one"})
		}, 0},
		"a file is written": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "redis/url"), "redis://other:6379")
		}, 1},
		"a file's content moves to another file": {func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, "redis/url"), filepath.Join(dir, "redis/uri")); err != nil {
				t.Fatal(err)
			}
		}, 1},
		"a platform's Secret is mounted": {func(t *testing.T, dir string) {
			mount(t, filepath.Join(dir, "platforms/crm"), "..1", map[string]string{"signingSecret": "whsec_abc"})
		}, 1},
		"a directory goes away": {func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "redis")); err != nil {
				t.Fatal(err)
			}
		}, 1},
		"the ledger of erasures, which has a watcher of its own": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, config.LedgerFile), "two")
		}, 0},
		"only the kubelet's own links change": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "property", "..3", "property.json"), "three")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mount(t, filepath.Join(dir, "property"), "..1", map[string]string{"property.json": "one"})
			write(t, filepath.Join(dir, "redis/url"), "redis://redis:6379")

			watcher := config.NewWatcher(dir)
			c.change(t, dir) // between the making and the running: that is noticed too
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				changes := 0
				watcher.Run(ctx, 10*time.Second, func() { changes++ })
				if changes != c.want {
					t.Errorf("got %d changes, want %d", changes, c.want)
				}
			})
		})
	}
}

func TestTheLedgerOfErasuresHasAWatcherOfItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		change string
		want   int
	}{"the ledger": {config.LedgerFile, 1}, "a part of it": {config.LedgerFile + "-1", 1}, "anything else": {"redis/url", 0}} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t, map[string]string{config.LedgerFile: "one"})
			watcher := config.NewLedgerWatcher(dir)
			write(t, filepath.Join(dir, test.change), "two")
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				changes := 0
				watcher.Run(ctx, 10*time.Second, func() { changes++ })
				if changes != test.want {
					t.Errorf("got %d changes, want %d", changes, test.want)
				}
			})
		})
	}
}

func TestWatcherNoticesEveryFurtherChange(t *testing.T) {
	dir := directory(t, map[string]string{"redis/url": "0"})
	watcher := config.NewWatcher(dir)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var seen []time.Duration
		start := time.Now()
		go func() {
			for i := range 3 {
				<-time.After(13 * time.Second) // of the bubble's time
				if err := os.WriteFile(filepath.Join(dir, "redis/url"), []byte{'1' + byte(i)}, 0o600); err != nil {
					t.Error(err)
				}
			}
		}()
		watcher.Run(ctx, 10*time.Second, func() { seen = append(seen, time.Since(start)) })
		want := []time.Duration{20 * time.Second, 30 * time.Second, 40 * time.Second}
		if len(seen) != len(want) || seen[0] != want[0] || seen[1] != want[1] || seen[2] != want[2] {
			t.Errorf("changes were noticed after %v, want %v", seen, want)
		}
	})
}
