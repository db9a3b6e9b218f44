package terminal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-dev/weir/cli/terminal"
)

func TestNothingThatOthersWriteReachesTheTerminalAsACommand(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct{ text, want string }{
		"what is seen stays":                             {"Schöne Lampen 灯 – 50 €", "Schöne Lampen 灯 – 50 €"},
		"an escape sequence is shown":                    {"\x1b[2J\x1b]0;title\x07", `\x1b[2J\x1b]0;title\a`},
		"so is one of a single character of eight bits":  {"\u009b31m", `\u009b31m`},
		"a line end begins no line":                      {"a\nb\r", `a\nb\r`},
		"a tab moves no column":                          {"a\tb", `a\tb`},
		"nothing turns the direction of writing around":  {"a\u202eb\u2066", `a\u202eb\u2066`},
		"what has no width is seen":                      {"pay\u200bpal\ufeff", `pay\u200bpal\ufeff`},
		"a space that is none is seen":                   {"a\u00a0b", `a\u00a0b`},
		"bytes that are no text are shown as what it is": {"a\xff\x9b", `a\xff\x9b`},
		"a backspace takes nothing away":                 {"no\b\bok\x7f", `no\b\bok\x7f`},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			if got := terminal.Clean(c.text); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestJSONIsTheSameToAProgramAndHarmlessToATerminal(t *testing.T) {
	t.Parallel()
	hostile := map[string]string{"event": "\x1b[2J\u009b1m\u202e\U000e0041 <a&b> ü"}
	var text strings.Builder
	if err := terminal.JSON(&text, hostile); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text.String(), "\x1b\u009b\u202e\U000e0041") || !strings.Contains(text.String(), "<a&b> ü") {
		t.Errorf("written as %q", text.String())
	}
	var read map[string]string
	if err := json.Unmarshal([]byte(text.String()), &read); err != nil || read["event"] != hostile["event"] {
		t.Errorf("read as %q, %v", read, err)
	}
}

func TestTablesAlignAndAreClean(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	table := terminal.NewTable(&text, "  ", "EVENT", "ID")
	table.Row("purchase", "a\x1b[0m")
	table.Row("ü", "b")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "  EVENT      ID\n  purchase   a\\x1b[0m\n  ü          b\n"; text.String() != want {
		t.Errorf("got\n%s", text.String())
	}
}
