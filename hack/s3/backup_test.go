package s3

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-dev/weir/collector/backup"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// A server of others' takes a backup in several parts, and gives it back.
func TestABackupGoesThroughABucket(t *testing.T) {
	const events = 120_000
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "backups"), 0o755); err != nil {
		t.Fatal(err)
	}
	endpoint := serve(t, folder)
	s := newShop(t, endpoint, 100_000)
	s.store(events)
	var said bytes.Buffer
	environment := backup.Environment{Stdout: &said, Stderr: &said, Version: "test", Getenv: func(name string) string {
		return map[string]string{"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey}[name]
	}}
	where := []string{"--property", "default/shop", "--s3-endpoint", endpoint, "--s3-path-style", "--s3-region", "eu-central-1"}
	args := append([]string{"--redis-url", s.url, "--to", "s3://backups/weir/"}, where...)
	if code := backup.Command(t.Context(), "weir backup", args, environment); code != 0 {
		t.Fatalf("exit code %d: %s", code, &said)
	}
	found, err := filepath.Glob(filepath.Join(folder, "backups", "weir", "default", "shop", "*.weir"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the bucket has %v, %v", found, err)
	}
	if info, err := os.Stat(found[0]); err != nil || info.Size() < 1<<20 {
		t.Errorf("the backup has %d bytes, %v", info.Size(), err)
	}
	url := redistest.URL(t)
	args = append(append([]string{"--redis-url", url}, where...), "s3://backups/weir/default/shop/"+filepath.Base(found[0]))
	if code := backup.RestoreCommand(t.Context(), "weir restore", args, environment); code != 0 {
		t.Fatalf("exit code %d: %s", code, &said)
	}
	client, err := stream.Dial(url, stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	bounds, err := client.Stream("default", "shop").Bounds(context.Background())
	if err != nil || bounds.Length != events {
		t.Errorf("%d events are there, want %d, %v", bounds.Length, events, err)
	}
	t.Log(said.String())
}
