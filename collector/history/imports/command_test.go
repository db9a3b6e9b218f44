package imports_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/history/imports"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// directory is a Property's configuration, of whose persons nobody was erased.
func directory(t *testing.T, address string, change func(*config.Property)) string {
	t.Helper()
	p := shop()
	p.DeduplicationWindowHours, p.Limits.MaxBodyBytes, p.Retention.MaxEvents = 24, 65536, 1_000_000
	if change != nil {
		change(&p)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{config.PropertyFile: text, config.HistoryURLFile: []byte(address), config.LedgerFile: (&erasure.Ledger{}).Encode()} {
		put(t, dir, name, content)
	}
	return dir
}

// put writes a file of a directory.
func put(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// recent is a message of some hours ago, by the clock that the command goes by.
func recent(id string, rest string) string {
	at := time.Now().UTC().Add(-3 * time.Hour).Format("2006-01-02T15:04:05.000Z")
	return fmt.Sprintf(`{"type":"track","event":"Seen","messageId":%q,"receivedAt":%q%s}`, id, at, rest)
}

func TestTheCommand(t *testing.T) {
	good, wrong := recent("a", ""), `{"type":"track","messageId":"b","receivedAt":"2026-10-01T00:00:00Z"}`
	tests := map[string]struct {
		lines  []string
		flags  []string
		change func(*config.Property)
		code   int
		// stdout and stderr must stand in the output; events is how many the history has then.
		stdout, stderr string
		events         string
	}{
		"it says what it has done":         {lines: []string{good, recent("b", "")}, stdout: "imported:              2\n", events: "2"},
		"a line that is bad is named":      {lines: []string{good, wrong}, code: 1, stderr: ":2: event: The event field is required.\n", events: "0"},
		"and says what would help":         {lines: []string{good, wrong}, code: 1, stderr: "--skip-bad leaves out bad lines", events: "0"},
		"some may be bad":                  {lines: []string{good, wrong}, flags: []string{"--skip-bad", "1"}, stdout: "left out:              1 bad lines\n", events: "1"},
		"but not more":                     {lines: []string{good, wrong, wrong}, flags: []string{"--skip-bad", "1"}, code: 1, stderr: "2 lines are bad, and nothing was imported", events: "0"},
		"a dry run changes nothing":        {lines: []string{good}, flags: []string{"--dry-run"}, stdout: "would be imported:     1\n", events: "0"},
		"what came after a time stays out": {lines: []string{good}, flags: []string{"--before", "2020-01-01T00:00:00Z"}, stdout: "1 not before --before", events: "0"},
		"what is no event is told":         {lines: []string{strings.Replace(good, "track", "identify", 1)}, stdout: "no events:             1 (identify, group, alias)", events: "0"},
		"a flag that there is not":         {flags: []string{"--fast"}, code: 2, stderr: `"weir import -h" lists the flags`, events: "0"},
		"a time that is none":              {flags: []string{"--before", "yesterday"}, code: 2, stderr: "--before: must be a time as in", events: "0"},
		"a format that there is not":       {flags: []string{"--format", "csv"}, code: 2, stderr: "--format: must be weir, segment or rudderstack", events: "0"},
		"help":                             {flags: []string{"-h"}, stdout: "Usage: weir import --config DIR [flags] FILE…", events: "0"},
		"a Property without a history":     {lines: []string{good}, change: func(p *config.Property) { p.History = nil }, code: 2, stderr: "the Property has no history", events: "0"},
		"a server that is not there":       {lines: []string{good}, flags: []string{"--url", "http://u:hidden@127.0.0.1:1/db"}, code: 1, stderr: "weir import: ", events: "0"},
		"an address that is none":          {lines: []string{good}, flags: []string{"--url", "u:hidden@host"}, code: 2, stderr: "--url: must be a URL", events: "0"},
		"by their own times events are where they happened": {
			lines: []string{recent("a", `,"timestamp":"2026-01-02T03:04:05Z"`)}, flags: []string{"--times", "happened"}, stdout: "2026-01-02T03:04:05Z to 2026-01-02T03:04:05Z", events: "1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			address := clickhousetest.Shared(t)
			placeAt(t, address)
			args := append([]string{"--config", directory(t, address, test.change)}, test.flags...)
			args = append(args, file(t, "a.json", test.lines...))
			var stdout, stderr bytes.Buffer
			code := imports.Command(context.Background(), "weir import", args, nil, &stdout, &stderr)
			if code != test.code || !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("exit code %d, %q and %q; want %d, %q and %q", code, stdout.String(), stderr.String(), test.code, test.stdout, test.stderr)
			}
			if strings.Contains(stderr.String(), "hidden") {
				t.Errorf("it tells a password: %s", stderr.String())
			}
			if got := clickhousetest.Exec(t, address, "SELECT count() FROM events"); got != test.events {
				t.Errorf("the history has %s events, want %s", got, test.events)
			}
		})
	}
}

// TestFilesAreFound: as Segment and RudderStack lay them out in a bucket, compressed or not, and each once.
func TestFilesAreFound(t *testing.T) {
	dir, lines := t.TempDir(), many(0, 6)
	compressed := func(text string) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(text + "\n"))
		_ = w.Close()
		return b.Bytes()
	}
	for name, content := range map[string][]byte{
		"segment-logs/SOURCE/1759276800000/20261001.abc.def-1.gz":           compressed(lines[0] + "\n" + lines[1]),
		"segment-logs/SOURCE/1759363200000/20261002.abc.gz":                 append(compressed(lines[2]), compressed(lines[3])...),
		"rudder-logs/SOURCE/10-01-2026/1759276800.SOURCE.uuid.json.gz":      compressed(lines[4]),
		"rudder-logs/SOURCE/10-01-2026/_SUCCESS":                            nil,
		"plain.ndjson":                                                      []byte(lines[5]),
		"segment-logs/SOURCE/1759363200000/called-gz-and-not-compressed.gz": []byte(lines[5]),
	} {
		put(t, dir, name, content)
	}
	// As a pod sees a ConfigMap.
	mounted := t.TempDir()
	put(t, mounted, "..2026_11_28/past.ndjson", []byte(lines[0]+"\n"+lines[1]))
	for link, to := range map[string]string{"..data": "..2026_11_28", "past.ndjson": "..data/past.ndjson", "linked": dir} {
		if err := os.Symlink(to, filepath.Join(mounted, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		paths []string
		files int
		want  int64
	}{
		"in a folder":              {[]string{dir}, 5, 6},
		"in a volume":              {[]string{mounted}, 1, 2},
		"in a folder by a link":    {[]string{filepath.Join(mounted, "linked")}, 5, 6},
		"by a pattern":             {[]string{filepath.Join(dir, "segment-logs", "*", "*", "2026*.gz")}, 2, 4},
		"a folder and files in it": {[]string{filepath.Join(dir, "plain.ndjson"), dir}, 5, 6},
		"from the standard input":  {[]string{"-"}, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.Input = bytes.NewReader(compressed(lines[0] + "\n" + lines[1]))
			if report := p.run(test.paths...); report.Imported != test.want || report.Files != test.files {
				t.Errorf("report %+v, %v", report, p.bad)
			}
		})
	}
}

// TestAMarkOfTheByteOrderIsReadOver, as programs of Windows' put it before UTF-8.
func TestAMarkOfTheByteOrderIsReadOver(t *testing.T) {
	const mark = "\ufeff"
	lines := many(0, 3)
	plain := mark + strings.Join(lines, "\n") + "\n"
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, _ = w.Write([]byte(plain))
	_ = w.Close()
	for name, content := range map[string][]byte{"in a plain file": []byte(plain), "in a compressed one": compressed.Bytes()} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.Input = bytes.NewReader(content)
			if report := p.run("-"); report.Imported != 3 {
				t.Errorf("report %+v, %v", report, p.bad)
			}
		})
	}
	t.Run("but within a file it is none", func(t *testing.T) {
		p := newPlace(t)
		p.SkipBad = 1
		if report := p.run(file(t, "a.json", lines[0], mark+lines[1])); report.Imported != 1 || report.Bad != 1 {
			t.Errorf("report %+v, %v", report, p.bad)
		}
	})
}

// TestTheReportSaysWhereAFileBreaksOff: as many lines as the error tells are read and judged.
func TestTheReportSaysWhereAFileBreaksOff(t *testing.T) {
	lines := many(0, 700)
	lines[650] = "{}"
	text := []byte(strings.Join(lines, "\n"))
	p := newPlace(t)
	p.Input, p.Paths = io.MultiReader(bytes.NewReader(text), iotest.ErrReader(io.ErrUnexpectedEOF)), []string{"-"}
	report, err := imports.Run(context.Background(), p.Options)
	if err == nil || !strings.HasSuffix(err.Error(), "it breaks off behind line 699") || report.Lines != 699 || report.Bad != 1 {
		t.Errorf("it ends with %v, and reports %+v", err, report)
	}
}

func TestBlankLinesAreCountedAndNothingElse(t *testing.T) {
	lines := many(0, 2)
	p := newPlace(t)
	p.SkipBad = 1
	p.Input = io.MultiReader(
		strings.NewReader(strings.Repeat("\n", 1_000_000)+lines[0]+"\r\n"), strings.NewReader(strings.Repeat("\r\n", 500_000)+"\r"),
		strings.NewReader("\n\r"+lines[1]+"\n\n{}\n\n"))
	report := p.run("-")
	if report.Lines != 1_500_006 || report.Imported != 2 || len(p.bad) != 1 || p.bad[0].Line != 1_500_005 {
		t.Errorf("report %+v, %v", report, p.bad)
	}
}

func TestAFileThatBreaksOffImportsNothing(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(strings.Join(many(0, 500), "\n")))
	_ = w.Close()
	path := filepath.Join(t.TempDir(), "a.gz")
	if err := os.WriteFile(path, b.Bytes()[:b.Len()-20], 0o600); err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]string{"in the middle": path, "a file that is not there": path + "x"} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.Paths = []string{one}
			if _, err := imports.Run(context.Background(), p.Options); err == nil || len(p.events()) > 0 {
				t.Errorf("it ends with %v, and %d events are there", err, len(p.events()))
			}
		})
	}
}

// TestTheCommandKnowsWhoWasErased by the file, and by what Redis has been told since.
func TestTheCommandKnowsWhoWasErased(t *testing.T) {
	address, redis := clickhousetest.Shared(t), redistest.URL(t)
	placeAt(t, address)
	dir := directory(t, address, nil)
	ledger := erasure.Ledger{Salt: erasure.Salt{1, 2, 3}}
	entry := func(client string) erasure.Entry {
		e := event.Event{ClientID: client}
		return erasure.Entry{Digest: ledger.Salt.Digest(e.Identifiers(property, nil).List[0]), At: time.Now()}
	}
	ledger.Add(entry("in the file"))
	for name, content := range map[string][]byte{config.LedgerFile: ledger.Encode(), config.RedisURLFile: []byte(redis)} {
		put(t, dir, name, content)
	}
	client, err := stream.Dial(redis, stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := client.Stream("default", "shop").Ledgered(t.Context(), stream.ErasureRequest{ID: "e-1"}, []erasure.Entry{entry("in Redis")}); err != nil {
		t.Fatal(err)
	}
	path := file(t, "a.json", recent("a", `,"anonymousId":"in the file"`), recent("b", `,"anonymousId":"in Redis"`), recent("c", `,"anonymousId":"somebody"`))
	var stdout, stderr bytes.Buffer
	code := imports.Command(context.Background(), "weir import", []string{"--config", dir, path}, nil, &stdout, &stderr)
	if code != 0 || !strings.Contains(stdout.String(), "2 of persons who were erased") {
		t.Errorf("exit code %d, %q and %q", code, stdout.String(), stderr.String())
	}
	if got := clickhousetest.Exec(t, address, "SELECT event_id FROM events"); got != "c" {
		t.Errorf("the history has the events %q, want c alone", got)
	}
	if err := os.Remove(filepath.Join(dir, config.LedgerFile)); err != nil {
		t.Fatal(err)
	}
	if code := imports.Command(context.Background(), "weir import", []string{"--config", dir, path}, nil, &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(), "erasures/ledger is missing") {
		t.Errorf("without the file: exit code %d, %q", code, stderr.String())
	}
}

// TestTheCommandDoesNotImportWhereItCannotTellWhoWasErased: without the ledger, and without a Redis that knows of it.
func TestTheCommandDoesNotImportWhereItCannotTellWhoWasErased(t *testing.T) {
	for name, test := range map[string]struct {
		redis bool
		flags []string
		code  int
		// stderr must stand in the output, and is all of it where it is "".
		stderr, events string
	}{
		"there is no ledger":                       {code: 1, stderr: "--nobody-erased", events: "0"},
		"nor in a dry run":                         {flags: []string{"--dry-run"}, code: 1, stderr: "erasures/ledger is missing", events: "0"},
		"somebody says that nobody was erased":     {flags: []string{"--nobody-erased"}, events: "1"},
		"a Redis says that nobody was erased":      {redis: true, events: "1"},
		"a Redis, and somebody who says it anyway": {redis: true, flags: []string{"--nobody-erased"}, events: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			address := clickhousetest.Shared(t)
			placeAt(t, address)
			dir := directory(t, address, nil)
			if err := os.Remove(filepath.Join(dir, config.LedgerFile)); err != nil {
				t.Fatal(err)
			}
			if test.redis {
				put(t, dir, config.RedisURLFile, []byte(redistest.URL(t)))
			}
			var stdout, stderr bytes.Buffer
			args := append(append([]string{"--config", dir}, test.flags...), file(t, "a.json", recent("a", "")))
			code := imports.Command(context.Background(), "weir import", args, nil, &stdout, &stderr)
			if code != test.code || !strings.Contains(stderr.String(), test.stderr) || test.stderr == "" && stderr.Len() > 0 {
				t.Errorf("exit code %d, %q; want %d, %q", code, stderr.String(), test.code, test.stderr)
			}
			if got := clickhousetest.Exec(t, address, "SELECT count() FROM events"); got != test.events {
				t.Errorf("the history has %s events, want %s", got, test.events)
			}
		})
	}
}
