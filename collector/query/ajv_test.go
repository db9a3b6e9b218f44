package query

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/hack/browser"
)

// What JavaScript programs check answers with. The newest versions that have a build for browsers.
var (
	ajv        = browser.Package{Name: "ajv-dist", Version: "8.17.1", Integrity: "sha512-KzJwANMzTTR/RERGnkx+bHzmxIfMTPMMv7+cH1d6Lx9UQ7BZyhiieq4hnO5lRuBWOtYTUL8hyWs7RJYI/45Rtg=="}
	ajvFormats = browser.Package{Name: "ajv-formats", Version: "3.0.1", Integrity: "sha512-8iUql50EUR+uUcdRQ3HDqa6EVyo3docL8g5WJ3FNcWmu62IbkGUue/pEyLBW8VGKKucTPgqeks4fIU1DA4yowQ=="}
)

// refusedByAjv returns what Ajv, as people make it, has to say of values: of each schema that it does not compile, and of
// each value that it refuses. The schemas' references are to the description's components.
const refusedByAjv = `(groups, components) => {
  const ajv = new ajv2020();
  const formats = {};
  new Function('exports', formatsText)(formats);
  for (const [name, format] of Object.entries(formats.fullFormats)) ajv.addFormat(name, format);
  const local = (schema) => JSON.parse(JSON.stringify(schema).replaceAll('#/components/schemas/', '#/$defs/'));
  const refused = [];
  for (const { schema, values } of groups) {
    let validate;
    try {
      validate = ajv.compile({ ...local(schema), $defs: local(components) });
    } catch (error) {
      refused.push(String(error));
      continue;
    }
    for (const { seen, value } of values) {
      if (!validate(value)) refused.push(seen + ': ' + ajv.errorsText(validate.errors));
    }
  }
  return refused;
}`

// seenValue is a value that the API answered with, or gives as an example.
type seenValue struct {
	Seen  string          `json:"seen"`
	Value json.RawMessage `json:"value"`
}

// schemaGroup are the values of one schema.
type schemaGroup struct {
	Schema any         `json:"schema"`
	Values []seenValue `json:"values"`
}

// openAjv opens a tab that has Ajv and its formats.
func openAjv(t *testing.T) *browser.Tab {
	t.Helper()
	page := browser.Open(t, browser.Options{})
	formats, err := json.Marshal(ajvFormats.File(t, "dist/formats.js"))
	if err != nil {
		t.Fatal(err)
	}
	browser.Look[bool](page, ajv.File(t, "dist/ajv2020.min.js")+fmt.Sprintf("\nvar formatsText = %s; true", formats))
	return page
}

// askAjv returns what Ajv refuses of the values.
func askAjv(t *testing.T, page *browser.Tab, groups []*schemaGroup, components any) []string {
	t.Helper()
	arguments, err := json.Marshal([]any{groups, components})
	if err != nil {
		t.Fatal(err)
	}
	return browser.Look[[]string](page, fmt.Sprintf("(%s)(...%s)", refusedByAjv, arguments))
}

func TestAjvRefusesWhatTheDescriptionDoes(t *testing.T) {
	page := openAjv(t)
	day := json.RawMessage(`"2026-11-22"`)
	group := func(schema string, value json.RawMessage) []*schemaGroup {
		var parsed any
		if err := json.Unmarshal([]byte(schema), &parsed); err != nil {
			t.Fatal(err)
		}
		return []*schemaGroup{{Schema: parsed, Values: []seenValue{{"it", value}}}}
	}
	components := map[string]any{"Day": map[string]any{"type": "string", "format": "date"}}
	for name, test := range map[string]struct {
		groups []*schemaGroup
		want   string
	}{
		"what is right is taken":           {group(`{"$ref": "#/components/schemas/Day"}`, day), ""},
		"what is wrong is refused":         {group(`{"$ref": "#/components/schemas/Day"}`, json.RawMessage(`7`)), "must be string"},
		"a format is looked at":            {group(`{"$ref": "#/components/schemas/Day"}`, json.RawMessage(`"2026-13-22"`)), "must match format"},
		"an unknown format is refused":     {group(`{"type": "string", "format": "day"}`, day), "unknown format"},
		"an unknown word is refused":       {group(`{"type": "string", "length": 10}`, day), "unknown keyword"},
		"steps of decimals would be wrong": {group(`{"type": "number", "multipleOf": 0.0001}`, json.RawMessage(`0.6667`)), "must be multiple"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(askAjv(t, page, test.groups, components), "\n")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
