package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/hack/browser"
)

// snippets are the page's texts that are run. `make examples` names all of them; a program that is named and not there is a
// failure.
var snippets = flag.String("snippets", "go,node,segment", "the settings' texts that are run, with commas between them")

// runner is how a text is run: the name of its file, and the command; packages is a folder whose node_modules it needs.
type runner struct {
	file     string
	command  []string
	packages bool
}

var runners = map[string]runner{
	"curl":    {"send.sh", []string{"sh", "send.sh"}, false},
	"node":    {"send.mjs", []string{"NODE", "send.mjs"}, false},
	"php":     {"send.php", []string{"php", "send.php"}, false},
	"python":  {"send.py", []string{"python3", "send.py"}, false},
	"go":      {"send.go", []string{"go", "run", "send.go"}, false},
	"segment": {"send.mjs", []string{"NODE", "send.mjs"}, true},
}

// TestTheSettingsTextsSendAnEvent takes the texts as the page shows them, and runs them as they are.
func TestTheSettingsTextsSendAnEvent(t *testing.T) {
	d := serveDashboard(t)
	tab := d.visit(browser.Options{})
	d.show(tab, "?view=settings")
	texts := map[string]string{}
	for _, label := range browser.Look[[]string](tab, `[...document.querySelectorAll('[aria-label="In which language"] button')].map((button) => button.innerText)`) {
		tab.Press(`[aria-label="In which language"]`, label)
		tab.Appears(`[aria-label="In which language"] button[aria-pressed=true]`, label)
		shown := browser.Look[[]string](tab, `(({dataset, innerText}) => [dataset.snippet, innerText])(document.querySelector('[data-snippet]'))`)
		texts[shown[0]] = shown[1]
	}
	for name := range runners {
		if texts[name] == "" {
			t.Errorf("the page has no text for %s", name)
		}
	}
	client := nodeClients(t)
	var want []string
	for name := range strings.SplitSeq(*snippets, ",") {
		t.Run(name, func(t *testing.T) {
			how, known := runners[name]
			if !known {
				t.Fatalf("%s is not among the page's texts", name)
			}
			folder := t.TempDir()
			// One order counts once: each text gets one of its own.
			text := strings.ReplaceAll(texts[name], "4711", "4711-"+name)
			if err := os.WriteFile(filepath.Join(folder, how.file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			command := slices.Clone(how.command)
			if command[0] == "NODE" {
				command[0] = filepath.Join(client, "node")
			}
			if how.packages {
				if err := os.Symlink(filepath.Join(client, "node_modules"), filepath.Join(folder, "node_modules")); err != nil {
					t.Fatal(err)
				}
			}
			program := exec.CommandContext(t.Context(), command[0], command[1:]...)
			program.Dir = folder
			if said, err := program.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s\n%s", err, said, text)
			}
			want = append(want, "4711-"+name)
		})
	}
	slices.Sort(want)
	await(t, "every order is in the list", func() bool { return len(d.listing()) == len(want) })
	var got []string
	for _, event := range d.listing() {
		if event.Event != "purchase" || event.Value != "49.9" || event.Currency != "EUR" {
			t.Errorf("got %+v, want a purchase of 49.9 EUR", event)
		}
		got = append(got, event.OrderID)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the orders (-want +got):\n%s", diff)
	}
}

// nodeClients is a folder with node and, in node_modules, the clients that hack/clients pins.
func nodeClients(t *testing.T) string {
	t.Helper()
	var words strings.Builder
	find := exec.CommandContext(t.Context(), "../../hack/npm.sh", "hack/clients")
	find.Stderr = &words
	folder, err := find.Output()
	if err != nil {
		t.Fatalf("hack/npm.sh hack/clients: %v: %s", err, words.String())
	}
	return strings.TrimSpace(string(folder))
}
