package stream

import (
	"context"
	"encoding"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

var update = flag.Bool("update", false, "record today's calls of the library in testdata/calls, for the version that is not published yet")

// called is what the library's clock says during all calls that are recorded.
var called = time.Date(2026, 11, 1, 12, 30, 0, 0, time.UTC)

// TestEveryVersionsCallsAreAnswered makes the calls of each version's collectors and deliverers, which may be older than the library
// that they find, and compares the replies with those that they got from their own.
func TestEveryVersionsCallsAreAnswered(t *testing.T) {
	// Only what was built before the first version calls these.
	missing := map[string]bool{}
	for name := range callsOf(keysOf("default", "shop")) {
		missing[name] = !slices.Contains([]string{functionDue, functionLease, functionSettle, functionTrim}, name)
	}
	recorded, err := filepath.Glob("testdata/calls/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range recorded {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, _ := newStreamAt(t, called)
			var got recorder
			s.redis.AddHook(&got)
			for line := range strings.Lines(string(want)) {
				if strings.HasPrefix(line, "= ") {
					continue
				}
				var words []any
				for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimSpace(rest) {
					quoted, err := strconv.QuotedPrefix(rest)
					if err != nil {
						t.Fatalf("%s: %v", line, err)
					}
					word, _ := strconv.Unquote(quoted)
					words, rest = append(words, word), rest[len(quoted):]
				}
				s.redis.Do(t.Context(), words...)
				if words[0] == "fcall" {
					missing[words[1].(string)] = false
				}
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
				t.Errorf("an older caller is answered otherwise; what has changed needs a new function (-want +got):\n%s", diff)
			}
		})
	}
	for name, is := range missing {
		if is {
			t.Errorf("no call of %s is recorded", name)
		}
	}
}

// TestCallsAreRecorded compares what this code calls with what is recorded of the newest version.
func TestCallsAreRecorded(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	s, _ := newStreamAt(t, called)
	var got recorder
	s.redis.AddHook(&got)
	collectorCalls(t, s)
	delivererCalls(t, s)
	endingCalls(t, s)
	want, file := newestCalls(t)
	diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got.String(), "\n"))
	switch {
	case diff == "":
	case file == "":
		t.Errorf("the library is called otherwise than is recorded of what is published: begin the next version's part of CHANGELOG.md, and record it with -update (-recorded +called):\n%s", diff)
	case !*update:
		t.Errorf("the library is called otherwise than is recorded; -update writes %s (-recorded +called):\n%s", file, diff)
	default:
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// newestCalls returns what is recorded of the newest version of the changelog of which anything is, and the file for the one
// that is not published yet, "" where all are.
func newestCalls(t *testing.T) (recorded, file string) {
	t.Helper()
	notes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range regexp.MustCompile(`(?m)^## (\S+)(.*)$`).FindAllStringSubmatch(string(notes), -1) {
		path := filepath.Join("testdata/calls", version[1]+".txt")
		if version[2] == " (unreleased)" {
			file = path
		}
		if text, err := os.ReadFile(path); err == nil {
			return string(text), file
		}
	}
	return "", file
}

// recorder is a hook that notes calls of the library, with their replies, and the commands by which there is something to
// call it for.
type recorder struct{ strings.Builder }

func (r *recorder) DialHook(dial redis.DialHook) redis.DialHook { return dial }

func (r *recorder) ProcessHook(process redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := process(ctx, command)
		command.SetErr(err) // as is done behind all hooks
		r.note(command)
		return err
	}
}

func (r *recorder) ProcessPipelineHook(process redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := process(ctx, commands)
		for _, command := range commands {
			r.note(command)
		}
		return err
	}
}

func (r *recorder) note(command redis.Cmder) {
	if !slices.Contains([]string{"fcall", "xadd", "xreadgroup", "hdel", "zadd"}, command.Name()) {
		return
	}
	words := make([]string, len(command.Args()))
	for i, arg := range command.Args() {
		switch arg := arg.(type) {
		case []byte:
			words[i] = strconv.Quote(string(arg))
		case encoding.BinaryMarshaler:
			text, _ := arg.MarshalBinary()
			words[i] = strconv.Quote(string(text))
		default:
			words[i] = strconv.Quote(fmt.Sprint(arg))
		}
	}
	fmt.Fprintln(r, strings.Join(words, " "))
	call, is := command.(*redis.Cmd)
	if !is || command.Name() != "fcall" {
		return
	}
	reply, err := call.Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		kind, _, _ := strings.Cut(err.Error(), " ") // callers go by this
		reply = "error: " + kind
	}
	fmt.Fprintf(r, "= %#v\n", reply)
}
