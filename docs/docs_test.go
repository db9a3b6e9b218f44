package docs_test

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// root is the repository, as the tests of this folder see it.
const root = ".."

// files are the repository's files with one of the endings, by their path from its root. What git ignores is left out.
func files(t *testing.T, endings ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == ".git" || name == "bin" || name == ".weir" || path.Base(name) == "node_modules"):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		for _, ending := range endings {
			if strings.HasSuffix(name, ending) {
				text, err := os.ReadFile(path.Join(root, name))
				found[name] = string(text)
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestTheTestsThatTheDocsNameExist keeps a proof that a page names from being renamed away.
func TestTheTestsThatTheDocsNameExist(t *testing.T) {
	named, declared := regexp.MustCompile("`(Test[A-Z]\\w*|Fuzz[A-Z]\\w*)`"), regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	exist, wanted := map[string]bool{}, map[string]string{}
	for _, text := range files(t, "_test.go") {
		for _, match := range declared.FindAllStringSubmatch(text, -1) {
			exist[match[1]] = true
		}
	}
	for page, text := range files(t, ".md") {
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			wanted[match[1]] = page
		}
	}
	if len(wanted) < 10 {
		t.Errorf("the docs name %d tests: the search has gone blind", len(wanted))
	}
	for name, page := range wanted {
		if !exist[name] {
			t.Errorf("%s names %s, which is not there", page, name)
		}
	}
}

var (
	fence   = regexp.MustCompile("(?s)(?:^|\n) *```.*?\n *```")
	code    = regexp.MustCompile("`[^`\n]*`")
	links   = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	written = regexp.MustCompile(`\bdocs/[\w./-]*\w\.md(#[\w-]+)?`)
)

// anchors are the places in a page that a link can lead to, as GitHub names them.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		title := strings.ToLower(linked.ReplaceAllString(match[1], "$1"))
		title = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(title, "")
		found[strings.ReplaceAll(title, " ", "-")] = true
	}
	return found
}

// lead says what is wrong with a link from the page: nil where the file is there and has the heading.
func lead(pages map[string]string, page, link string) error {
	target, anchor, _ := strings.Cut(link, "#")
	file := page
	if target != "" {
		file = path.Join(path.Dir(page), target)
	}
	if _, err := os.Stat(path.Join(root, file)); err != nil {
		return errors.New("is not there")
	}
	if text, ok := pages[file]; anchor != "" && (!ok || !anchors(text)[anchor]) {
		return errors.New("has no such heading")
	}
	return nil
}

// TestLinksLeadSomewhere follows every link of every page to a file and a heading of this repository, and every page
// that code, charts and messages name.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, followed := files(t, ".md"), 0
	for page, text := range pages {
		for _, match := range links.FindAllStringSubmatch(code.ReplaceAllString(fence.ReplaceAllString(text, ""), ""), -1) {
			if strings.Contains(match[1], ":") {
				continue // somebody else's
			}
			followed++
			if err := lead(pages, page, match[1]); err != nil {
				t.Errorf("%s: %s %v", page, match[1], err)
			}
		}
	}
	for file, text := range files(t, ".go", ".sh", ".yaml", ".yml", ".txt", ".json", "Makefile", "Dockerfile", ".md") {
		for _, name := range written.FindAllString(text, -1) {
			if strings.Contains(file, "_test.go") && name == "docs/README.md" {
				continue
			}
			followed++
			if err := lead(pages, "README.md", name); err != nil {
				t.Errorf("%s: %s %v", file, name, err)
			}
		}
	}
	if followed < 200 {
		t.Errorf("%d links: the search has gone blind", followed)
	}
}

const columns = 120

// TestLinesAreShort holds prose and examples to a width that an editor and a review show whole. Rows of tables are as
// long as what they say, and a rule for Redis's users is given to it in one line.
func TestLinesAreShort(t *testing.T) {
	for page, text := range files(t, ".md") {
		for number, line := range strings.Split(text, "\n") {
			exempt := strings.HasPrefix(strings.TrimSpace(line), "|") || strings.HasPrefix(line, "    ACL SETUSER ")
			if length := utf8.RuneCountInString(line); length > columns && !exempt {
				t.Errorf("%s:%d has %d columns, at most %d are wanted", page, number+1, length, columns)
			}
		}
	}
}

// TestNamedPathsExist follows the paths in the tables of the pages by which the code is found.
func TestNamedPathsExist(t *testing.T) {
	named := regexp.MustCompile("`((?:api|charts|cli|collector|config|controllers|docs|hack)(?:/[\\w.-]+)*/?|main\\.go)`")
	for _, page := range []string{"README.md", "docs/internals/architecture.md", "docs/internals/glossary.md"} {
		text, err := os.ReadFile(path.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		found := named.FindAllSubmatch(text, -1)
		if len(found) < 5 {
			t.Errorf("%s names %d paths: the search has gone blind", page, len(found))
		}
		for _, match := range found {
			if _, err := os.Stat(path.Join(root, string(match[1]))); err != nil {
				t.Errorf("%s names %s, which is not there", page, match[1])
			}
		}
	}
}

// TestNamesAreInTheReference looks in the tables of the reference, which other tests compare with the code, for the
// metrics, the Property's fields and the chart's values that pages name.
func TestNamesAreInTheReference(t *testing.T) {
	tests := map[string]struct {
		named, reference string
		omitted          string // what a row of the reference leaves out of the name
	}{
		"metrics": {`\b(weir_(?:append|collect|dead|deliver(?:y|ies)|http|platform|redis|view)_[a-z_]+?)(?:_bucket|_count|_sum)?\b`, "metrics.md", `^$`},
		"fields":  {"`((?:spec|status)\\.[a-zA-Z][\\w.\\[\\]]*\\w)", "property.md", `^spec\.(?:collector|deliverer|query)\.`},
		"values":  {"`((?:tenants|redis|networkPolicy|rbac|crds)\\.[a-z][a-zA-Z][\\w.]*\\w)[`=:]", "chart-values.md", `^$`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pages, seen := files(t, ".md"), 0
			rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(pages["docs/reference/"+test.reference], -1)
			for page, text := range pages {
				for _, match := range regexp.MustCompile(test.named).FindAllStringSubmatch(text, -1) {
					seen++
					short := regexp.MustCompile(test.omitted).ReplaceAllString(match[1], "")
					if !slices.ContainsFunc(rows, func(row []string) bool {
						return row[1] == match[1] || row[1] == short || strings.HasPrefix(row[1], match[1]+".")
					}) {
						t.Errorf("%s names %s, which %s does not have", page, match[1], test.reference)
					}
				}
			}
			if seen < 20 {
				t.Errorf("%d names: the search has gone blind", seen)
			}
		})
	}
}

// TestTheMapHasEveryPackage compares the map's rows with the folders that it is a map of.
func TestTheMapHasEveryPackage(t *testing.T) {
	page, err := os.ReadFile("internals/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, parent := range []string{"cli", "collector"} {
		entries, err := os.ReadDir(path.Join(root, parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if name := parent + "/" + entry.Name(); entry.IsDir() && !strings.Contains(string(page), "\n| `"+name+"` |") {
				t.Errorf("the map has no row for %s", name)
			}
		}
	}
}

// TestTheReadmeIsShort holds it to what is read in one sitting.
func TestTheReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile(path.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 100 {
		t.Errorf("README.md has %d lines, at most 100 are wanted", lines)
	}
}

// TestThereIsOneVersion compares what names the version with the chart, where it is decided.
func TestThereIsOneVersion(t *testing.T) {
	chart, err := os.ReadFile(path.Join(root, "charts/weir/Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^version: (\S+)$`).FindSubmatch(chart)
	if match == nil {
		t.Fatal("the chart has no version")
	}
	for file, pattern := range map[string]string{
		"charts/weir/Chart.yaml":       `(?m)^appVersion: (\S+)$`,
		"config/manager/manager.yaml":  `image: ghcr.io/weir-dev/weir:(\S+)`,
		"CHANGELOG.md":                 `(?m)^## (\S+)`,
		"docs/guides/gitops.md":        `(?:targetRevision: |tag: )v([^\s}]+)`,
		"docs/start/with-a-cluster.md": `image\.tag=(\S+)`,
	} {
		text, err := os.ReadFile(path.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindAllSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no version", file)
		}
		for i, named := range found {
			if string(named[1]) != string(match[1]) && (file != "CHANGELOG.md" || i == 0) {
				t.Errorf("%s is about %s, the chart is %s", file, named[1], match[1])
			}
		}
	}
}

// TestEveryReasonHasAnAnswer looks for the reasons of conditions that are not good among the symptoms.
func TestEveryReasonHasAnAnswer(t *testing.T) {
	conditions, err := os.ReadFile(path.Join(root, "api/v1alpha1/conditions.go"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("operate/troubleshoot.md")
	if err != nil {
		t.Fatal(err)
	}
	good := []string{"Ready", "NotExposed", "SharedUser"}
	reasons := regexp.MustCompile(`Reason\w+ += "(\w+)"`).FindAllSubmatch(conditions, -1)
	if len(reasons) < 30 {
		t.Errorf("%d reasons: the search has gone blind", len(reasons))
	}
	for _, match := range reasons {
		if reason := string(match[1]); !slices.Contains(good, reason) && !strings.Contains(string(page), "`"+reason+"`") {
			t.Errorf("troubleshoot.md does not say what to do about %s", reason)
		}
	}
}
