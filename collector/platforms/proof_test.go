package platforms_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/platforms"
)

// proofOf is the section of a type's page that says what its adapter was judged by.
func proofOf(proof platforms.Proof) string {
	var section strings.Builder
	section.WriteString("## Proof\n\n")
	if proof.Beta() {
		section.WriteString("Beta: this has not been seen with a live account.\n")
	} else {
		fmt.Fprintf(&section, "Seen live since %s.\n", proof.Live.Format(time.DateOnly))
	}
	section.WriteString("\n| Judged by | What | Since |\n|---|---|---|\n")
	for _, judge := range proof.Judges {
		fmt.Fprintf(&section, "| %s | %s | %s |\n", judge.Kind, judge.What, judge.Since)
	}
	return section.String()
}

// Each page says of its type what the table says, no more and no less, before it says how a person is erased there.
func TestThePagesSayWhatTheTableSaysOfProof(t *testing.T) {
	for _, kind := range platforms.Types() {
		t.Run(string(kind), func(t *testing.T) {
			traits, _ := kind.Traits()
			_, after, _ := strings.Cut(read(t, strings.ToLower(string(kind))+".md"), "\n## Proof\n")
			got, _, before := strings.Cut(after, "\n\n## Erasure\n")
			if !before {
				t.Fatal("its page has no section Proof before the section Erasure")
			}
			if diff := cmp.Diff(proofOf(traits.Proof), "## Proof\n"+got+"\n"); diff != "" {
				t.Errorf("its section Proof (-table +page):\n%s", diff)
			}
		})
	}
}

// What has judged is named with a day, and what was seen live was judged by more than a server of ours.
func TestEveryTypeWasJudged(t *testing.T) {
	kinds := []platforms.JudgeKind{platforms.ByFake, platforms.BySchema, platforms.ByLibrary, platforms.ByServer}
	for _, kind := range platforms.Types() {
		t.Run(string(kind), func(t *testing.T) {
			proof := func() platforms.Proof { traits, _ := kind.Traits(); return traits.Proof }()
			if len(proof.Judges) == 0 {
				t.Error("nothing has judged what is sent to it")
			}
			for _, judge := range proof.Judges {
				if _, err := time.Parse(time.DateOnly, judge.Since); err != nil || judge.What == "" || !slices.Contains(kinds, judge.Kind) {
					t.Errorf("%+v: want one of the kinds %v, what it is, and a day such as 2026-11-24", judge, kinds)
				}
			}
			fakeAlone := !slices.ContainsFunc(proof.Judges, func(j platforms.Judge) bool { return j.Kind != platforms.ByFake })
			if !proof.Beta() && fakeAlone {
				t.Error("it was seen live, so a judge that is no server of ours has seen it")
			}
		})
	}
}

// The list of pages marks the types that are beta.
func TestTheListOfPagesMarksWhatIsBeta(t *testing.T) {
	list := read(t, "README.md")
	for _, kind := range platforms.Types() {
		t.Run(string(kind), func(t *testing.T) {
			traits, _ := kind.Traits()
			cell := fmt.Sprintf("| [%s](%s.md) ", kind, strings.ToLower(string(kind)))
			if traits.Proof.Beta() {
				cell += "beta "
			}
			if !strings.Contains(list, "\n"+cell+"| ") {
				t.Errorf("no row of the list begins with %q", cell+"|")
			}
		})
	}
}
