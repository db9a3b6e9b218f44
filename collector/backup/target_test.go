package backup

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

func TestOnlyOneBackupWritesToAFile(t *testing.T) {
	t.Parallel()
	from := redistest.URL(t)
	fill(t, dialled(t, from).Stream("default", "shop"), 500)
	const refused = "another backup writes "
	for name, more := range map[string][]string{"anew": nil, "one that was broken off is gone on with": {"--resume"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "shop.weir")
			args := append([]string{"backup", "--redis-url", from, "--property", "default/shop", "--to", path}, more...)
			first := &file{path: path}
			w, err := first.begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte("what the first has written")); err != nil {
				t.Fatal(err)
			}
			if code, _, said := run(t, nil, nil, args...); code != 1 || !strings.Contains(said, refused+path+partial) {
				t.Errorf("while another is at it: exit code %d: %s", code, said)
			}
			if content, err := os.ReadFile(path + partial); err != nil || string(content) != "what the first has written" {
				t.Errorf("of the first there is %q, %v", content, err)
			}
			if err := first.discard(context.Background()); err != nil {
				t.Fatal(err)
			}
			var wait sync.WaitGroup
			codes, all := make([]int, 6), make([]string, 6)
			for i := range codes {
				wait.Go(func() { codes[i], _, all[i] = run(t, nil, nil, args...) })
			}
			wait.Wait()
			done := 0
			for i, code := range codes {
				if code == 0 {
					done++
				} else if !strings.Contains(all[i], refused) && !strings.Contains(all[i], "is there already") {
					t.Errorf("exit code %d: %s", code, all[i])
				}
			}
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if report, err := Verify(bytes.NewReader(content)); done != 1 || err != nil || report.Events != 500 {
				t.Errorf("%d of 6 at once say that they have backed up; the file: %v, %v", done, report, err)
			}
			if left, err := filepath.Glob(path + ".*"); len(left) > 0 || err != nil {
				t.Errorf("%v is left", left)
			}
		})
	}
}

func TestWhatIsThereInPlaceOfAPartIsLeftAlone(t *testing.T) {
	t.Parallel()
	from := redistest.URL(t)
	fill(t, dialled(t, from).Stream("default", "shop"), 10)
	link := func(linked func(string, string) error) func(t *testing.T, victim, path string) {
		return func(t *testing.T, victim, path string) {
			if err := linked(victim, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	const refused = " is not a file that a backup has left"
	tests := map[string]struct {
		// put puts something there; victim is a file beside it.
		put  func(t *testing.T, victim, path string)
		code int
		want string
	}{
		"a link":                 {link(os.Symlink), 1, refused},
		"a link to nothing":      {link(func(victim, path string) error { return os.Symlink(victim+"-none", path) }), 1, refused},
		"a pipe":                 {link(func(_, path string) error { return syscall.Mkfifo(path, 0o600) }), 1, refused},
		"a folder":               {link(func(_, path string) error { return os.Mkdir(path, 0o700) }), 1, refused},
		"another name of a file": {link(os.Link), 0, "backed up"},
		"what others may read":   {link(func(_, path string) error { return os.WriteFile(path, []byte("x"), 0o644) }), 0, "backed up"},
	}
	for name, tt := range tests {
		for how, more := range map[string][]string{"anew": nil, "gone on with": {"--resume"}} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "shop.weir")
				if err := os.WriteFile(victim, []byte("precious"), 0o644); err != nil {
					t.Fatal(err)
				}
				tt.put(t, victim, path+partial)
				code, _, said := run(t, nil, nil, append([]string{"backup", "--redis-url", from, "--property", "default/shop", "--to", path}, more...)...)
				if code != tt.code || !strings.Contains(said, tt.want) || code != 0 && !strings.Contains(said, path+partial) {
					t.Errorf("exit code %d, %q; want %d and %q", code, said, tt.code, tt.want)
				}
				info, err := os.Stat(victim)
				if content, also := os.ReadFile(victim); err != nil || also != nil || string(content) != "precious" || info.Mode().Perm() != 0o644 {
					t.Errorf("the file beside it has %q and the mode %v", content, info.Mode())
				}
				if info, err := os.Stat(path); code == 0 && (err != nil || info.Mode().Perm() != 0o600) {
					t.Errorf("the backup: %v, %v", info, err)
				}
				if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
					t.Errorf("%v are there", files)
				}
			})
		}
	}
}

func TestAPartThatOthersMayReadIsGoneOnWithForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	from := redistest.URL(t)
	fill(t, dialled(t, from).Stream("default", "shop"), 10)
	path := filepath.Join(t.TempDir(), "shop.weir")
	args := []string{"backup", "--redis-url", from, "--property", "default/shop", "--resume", "--to", path}
	if code, _, said := run(t, nil, nil, args...); code != 0 {
		t.Fatal(said)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+partial, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path+partial, 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path + partial)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, said := run(t, nil, nil, args...); code != 0 {
		t.Fatal(said)
	}
	if after, err := os.Stat(path); err != nil || after.Mode().Perm() != 0o600 || !os.SameFile(before, after) {
		t.Errorf("the backup: %v, %v", after, err)
	}
}
