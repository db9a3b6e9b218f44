package adapter_test

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// snapchatBeyond are the members that Snapchat takes and its description lacks, by who else has them.
var snapchatBeyond = map[string]string{
	"user_data.external_id":      "Snapchat's own tag for Google Tag Manager, and its destination at Segment",
	"custom_data.contents.brand": "the example of a request in Snapchat's guide",
}

// described are the schemas of an extract of a platform's own description, and what it says of addresses.
type described struct {
	t       *testing.T
	schemas *jsonschema.Compiler
	Paths   map[string]struct {
		Query   []string `json:"query"`
		Request string   `json:"request"`
	} `json:"paths"`
}

func describedBy(t *testing.T, path string) *described {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := &described{t: t, schemas: jsonschema.NewCompiler()}
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.schemas.AddResource("description.json", document); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *described) validate(schema string, body any) error {
	d.t.Helper()
	compiled, err := d.schemas.Compile("description.json#/components/schemas/" + schema)
	if err != nil {
		d.t.Fatal(err)
	}
	return compiled.Validate(body)
}

// cut removes the members that a table has from a value, and notes those that were there.
func cut(value any, path string, table map[string]string, seen map[string]bool) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			cut(item, path, table, seen)
		}
	case map[string]any:
		for name, member := range value {
			at := strings.TrimPrefix(path+"."+name, ".")
			if table[at] != "" {
				seen[at] = true
				delete(value, name)
				continue
			}
			cut(member, at, table, seen)
		}
	}
}

func TestSnapchatGetsWhatItsOwnDescriptionHas(t *testing.T) {
	d := describedBy(t, "testdata/snapchat/description.json")
	seen := map[string]bool{}
	requests := 0
	for _, path := range pairs(t, "testdata/snapchat/requests/*.out.json") {
		var golden requestWant
		readJSON(t, path, &golden)
		for _, sent := range golden.Requests {
			requests++
			address, err := url.Parse(sent.URL)
			if err != nil {
				t.Fatal(err)
			}
			operation, known := d.Paths[strings.Replace(address.Path, snapPixel, "{asset_id}", 1)]
			if !known || sent.Method != http.MethodPost {
				t.Fatalf("%s: it has no %s %s", path, sent.Method, address.Path)
			}
			if got := slices.Sorted(maps.Keys(address.Query())); !slices.Equal(got, operation.Query) {
				t.Errorf("%s: got parameters %v, want %v", path, got, operation.Query)
			}
			body, err := jsonschema.UnmarshalJSON(bytes.NewReader(sent.Body))
			if err != nil {
				t.Fatal(err)
			}
			cut(body.(map[string]any)["data"], "", snapchatBeyond, seen)
			if err := d.validate(operation.Request, body); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if requests < 20 {
		t.Errorf("%d requests only are validated", requests)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(snapchatBeyond)), slices.Sorted(maps.Keys(seen))); diff != "" {
		t.Errorf("members that are sent and that it lacks (-table +sent):\n%s", diff)
	}
}

// The answers that the adapter is tried with are such as Snapchat's description has.
func TestSnapchatsAnswersAreThoseOfItsOwnDescription(t *testing.T) {
	d := describedBy(t, "testdata/snapchat/description.json")
	answers := 0
	for _, path := range pairs(t, "testdata/snapchat/answers/*.in.json") {
		var in answerCase
		readJSON(t, path, &in)
		if !strings.Contains(in.Body, `"status"`) {
			continue // none of Snapchat's
		}
		answers++
		body, err := jsonschema.UnmarshalJSON(strings.NewReader(in.Body))
		if err != nil {
			t.Fatal(err)
		}
		schema := "EventResponse"
		if strings.Contains(in.Body, `"test_event"`) {
			schema = "ValidateResponse"
		}
		if err := d.validate(schema, body); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if answers < 6 {
		t.Errorf("%d answers only are validated", answers)
	}
}
