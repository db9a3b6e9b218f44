package query

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAlternativesOfAStep(t *testing.T) {
	aliases := map[string]string{"page_view": "pageview", "a|b": "both"}
	long := strings.Repeat("ä", maxNameLength)
	for name, test := range map[string]struct {
		step string
		// want are the names, asked the step as the answer repeats it; where that is "" it is what was sent.
		want  []string
		asked string
		// fieldErr is of steps.0.
		fieldErr string
	}{
		"one name is one":                              {step: "pageview", want: []string{"pageview"}},
		"a bar stands between names":                   {step: "purchase|lead", want: []string{"purchase", "lead"}},
		"white space around a bar is none of a name":   {step: " purchase | sign up ", want: []string{"purchase", "sign up"}, asked: "purchase|sign up"},
		"a bar in a name is escaped":                   {step: `this \| that`, want: []string{"this | that"}},
		"so is a backslash":                            {step: `C:\\dir\\|d`, want: []string{`C:\dir\`, "d"}},
		"an escaped backslash is before a bar":         {step: `a\\\|b|c`, want: []string{`a\|b`, "c"}},
		"aliases are resolved":                         {step: "page_view|lead", want: []string{"pageview", "lead"}, asked: "pageview|lead"},
		"aliases are of whole names":                   {step: `a\|b`, want: []string{"both"}, asked: "both"},
		"a name twice is one":                          {step: "lead|purchase|lead", want: []string{"lead", "purchase"}, asked: "lead|purchase"},
		"an alias of another alternative is the same":  {step: "pageview|page_view", want: []string{"pageview"}, asked: "pageview"},
		"ten alternatives are allowed":                 {step: "a|b|c|d|e|f|g|h|i|j", want: strings.Split("abcdefghij", "")},
		"a name may have 100 characters, each of them": {step: long + "|" + long + `\|`, fieldErr: "The steps.0 field must not be greater than 100 characters."},
		"eleven are too many":                          {step: "a|b|c|d|e|f|g|h|i|j|k", fieldErr: "The steps.0 field must not have more than 10 alternatives."},
		"none before a bar is wrong":                   {step: "|a", fieldErr: "The steps.0 field must have an event's name on each side of a bar."},
		"none behind a bar is wrong":                   {step: "a| ", fieldErr: "The steps.0 field must have an event's name on each side of a bar."},
		"a backslash before a letter is wrong":         {step: `a\n`, fieldErr: `The steps.0 field format is invalid: a backslash is written \\, a bar within a name \|.`},
		"a backslash at the end is wrong":              {step: `a|b\`, fieldErr: `The steps.0 field format is invalid: a backslash is written \\, a bar within a name \|.`},
		"a control character is wrong":                 {step: "a|b\x00|\xff", fieldErr: "The steps.0 field format is invalid."},
	} {
		t.Run(name, func(t *testing.T) {
			p := &parameters{pairs: []pair{{name: "steps", value: test.step}, {name: "steps", value: "last"}}, aliases: aliases}
			steps := p.steps()
			want := test.fieldErr
			if want != "" {
				want = "steps.0: " + want
			}
			if diff := cmp.Diff(want, errorText(p.errs)); diff != "" {
				t.Fatalf("errors (-want +got):\n%s", diff)
			}
			if test.fieldErr != "" {
				return
			}
			if diff := cmp.Diff(step(test.want), steps[0]); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			asked := test.asked
			if asked == "" {
				asked = test.step
			}
			if got := steps[0].String(); got != asked {
				t.Errorf("the answer repeats %q, want %q", got, asked)
			}
		})
	}
}

func FuzzStep(f *testing.F) {
	for _, text := range []string{"", "a", "a|b", `a\|b|c`, `\\`, `\`, "|", "ä|\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		names, err := parseStep(text)
		if err != nil {
			return
		}
		again, err := parseStep(names.String())
		if diff := cmp.Diff(names, again); err != nil || diff != "" {
			t.Errorf("%q is written %q and read as another (-first +again): %v\n%s", text, names, err, diff)
		}
	})
}
