package main

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestTheTestsThatTheDocsNameExist keeps a proof that a page names from being renamed away.
func TestTheTestsThatTheDocsNameExist(t *testing.T) {
	named, declared := regexp.MustCompile("`(Test[A-Z]\\w*|Fuzz[A-Z]\\w*)`"), regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	exist, wanted := map[string]bool{}, map[string]string{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || (path.Ext(name) != ".md" && !strings.HasSuffix(name, "_test.go")) {
			return err
		}
		text, err := os.ReadFile(name)
		for _, match := range named.FindAllSubmatch(text, -1) {
			if path.Ext(name) == ".md" {
				wanted[string(match[1])] = name
			}
		}
		for _, match := range declared.FindAllSubmatch(text, -1) {
			exist[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
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
