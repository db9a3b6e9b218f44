package query

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
)

func TestSteps(t *testing.T) {
	aliases := map[string]string{"page_view": "pageview"}
	long := strings.Repeat("ä", maxNameLength)
	for name, test := range map[string]struct {
		query    string
		want     []string
		fieldErr string
	}{
		"are read from steps[]":                       {query: "steps[]=a&steps[]=b", want: []string{"a", "b"}},
		"are read from steps%5B%5D":                   {query: "steps%5B%5D=a&steps%5b%5d=b", want: []string{"a", "b"}},
		"are read from steps":                         {query: "steps=a&steps=b", want: []string{"a", "b"}},
		"are read from numbered steps in their order": {query: "steps[1]=b&steps[0]=a&steps%5B2%5D=c", want: []string{"a", "b", "c"}},
		"may be mixed":                                {query: "steps[3]=c&steps[]=d&steps[0]=a&steps=e", want: []string{"a", "c", "d", "e"}},
		"may repeat":                                  {query: "steps[]=a&steps[]=a", want: []string{"a", "a"}},
		"lose surrounding white space":                {query: "steps=+a%09&steps=b+c", want: []string{"a", "b c"}},
		"keep their case":                             {query: "steps=A&steps=a", want: []string{"A", "a"}},
		"may hold commas and percent signs":           {query: "steps=a,b&steps=100%25", want: []string{"a,b", "100%"}},
		"follow the Property's aliases":               {query: "steps=page_view&steps=Page_View", want: []string{"pageview", "Page_View"}},
		"may have 100 characters":                     {query: "steps=" + long + "&steps=b", want: []string{long, "b"}},
		"are no other parameter":                      {query: "steps=a&steps=b&stepsize=3&step=4", want: []string{"a", "b"}},

		"are required":                 {query: "", fieldErr: "steps: The steps field is required."},
		"are required to say anything": {query: "steps=", fieldErr: "steps: The steps field is required."},
		"are at least two":             {query: "steps=a", fieldErr: "steps: The steps field must have at least 2 items."},
		"are at most ten":              {query: strings.Repeat("steps[]=a&", 11), fieldErr: "steps: The steps field must not have more than 10 items."},
		"must not be empty":            {query: "steps=a&steps=+", fieldErr: "steps.1: The steps.1 field is required."},
		"must not be long":             {query: "steps=a&steps=b" + long, fieldErr: "steps.1: The steps.1 field must not be greater than 100 characters."},
		"must be text":                 {query: "steps=a%00b&steps=%ff", fieldErr: "steps.0: The steps.0 field format is invalid.; steps.1: The steps.1 field format is invalid."},
		"must not be keyed by name":    {query: "steps[a]=a&steps[b]=b", fieldErr: "steps: The steps field must be a list."},
		"must not be nested":           {query: "steps[0][0]=a&steps[1]=b", fieldErr: "steps: The steps field must be a list."},
		"must not be left open":        {query: "steps[0=a&steps[1]=b", fieldErr: "steps: The steps field must be a list."},
		"report all that is wrong":     {query: "steps=%00", fieldErr: "steps: The steps field must have at least 2 items.; steps.0: The steps.0 field format is invalid."},
	} {
		t.Run(name, func(t *testing.T) {
			p := &parameters{pairs: parseQuery(test.query), aliases: aliases}
			var got []string
			for _, step := range p.steps() {
				got = append(got, strings.Join(step, " or "))
			}
			if diff := cmp.Diff(test.fieldErr, errorText(p.errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, got); test.fieldErr == "" && diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInteger(t *testing.T) {
	for name, test := range map[string]struct {
		query    string
		want     int
		fieldErr string
	}{
		"takes the fallback when absent":    {query: "", want: 100},
		"takes the fallback when empty":     {query: "limit=", want: 100},
		"takes the lowest":                  {query: "limit=1", want: 1},
		"takes the highest":                 {query: "limit=1000", want: 1000},
		"refuses what is lower":             {query: "limit=0", fieldErr: "limit: The limit field must be between 1 and 1000."},
		"refuses what is negative":          {query: "limit=-1", fieldErr: "limit: The limit field must be between 1 and 1000."},
		"refuses what is higher":            {query: "limit=1001", fieldErr: "limit: The limit field must be between 1 and 1000."},
		"refuses what no machine holds":     {query: "limit=99999999999999999999", fieldErr: "limit: The limit field must be between 1 and 1000."},
		"refuses fractions":                 {query: "limit=1.5", fieldErr: "limit: The limit field must be an integer."},
		"refuses words":                     {query: "limit=all", fieldErr: "limit: The limit field must be an integer."},
		"refuses to choose between several": {query: "limit=1&limit=2", fieldErr: "limit: The limit field must be given only once."},
	} {
		t.Run(name, func(t *testing.T) {
			p := &parameters{pairs: parseQuery(test.query)}
			got := p.limit(100, 1000)
			if diff := cmp.Diff(test.fieldErr, errorText(p.errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if test.fieldErr == "" && got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// errorText puts errors on one line: "field: message; field: message".
func errorText(errs event.Errors) string {
	lines := make([]string, len(errs))
	for i, fieldErr := range errs {
		lines[i] = fieldErr.Field + ": " + fieldErr.Message
	}
	return strings.Join(lines, "; ")
}

// FuzzParseQuery holds that what the standard library reads is read alike, and that names which pass are
// names that the collector would have accepted.
func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{"", "steps[]=a&steps[]=b", "steps%5B1%5D=b&steps[0]=a", "a=%zz&b=+", "&&=&a", "steps[65535]=a&steps=b", "from=2026-01-01&from=2026-01-02"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		pairs := parseQuery(raw)
		if values, err := url.ParseQuery(raw); err == nil {
			got := url.Values{}
			for _, pair := range pairs {
				got[pair.name] = append(got[pair.name], pair.value)
			}
			if diff := cmp.Diff(values, got); diff != "" {
				t.Errorf("%q (-standard +got):\n%s", raw, diff)
			}
		}
		p := &parameters{pairs: pairs}
		steps := p.steps()
		if len(p.errs) > 0 {
			return
		}
		if len(steps) < 2 || len(steps) > 10 {
			t.Errorf("%q gave %d steps without an error", raw, len(steps))
		}
		for _, name := range slices.Concat(steps...) {
			if name != strings.TrimSpace(name) || !utf8.ValidString(name) || name == "" || utf8.RuneCountInString(name) > maxNameLength {
				t.Errorf("%q gave the name %q without an error", raw, name)
			}
		}
	})
}
