package adapter_test

import (
	"bytes"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/platforms"
)

// klaviyoDescription is the part of Klaviyo's OpenAPI description that is about events; it says itself where it is from.
const klaviyoDescription = "testdata/klaviyo/openapi.json"

// Every request of a golden pair is as Klaviyo describes it, and has no member that Klaviyo does not describe.
func TestRequestsToKlaviyoAreAsItsDescriptionHasThem(t *testing.T) {
	text, err := os.ReadFile(klaviyoDescription)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	closeObjects(document)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft4) // what OpenAPI 3.0 builds upon; what it adds is about null, which is never sent
	compiler.AssertFormat()
	if err := compiler.AddResource("klaviyo.json", document); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, path := range pairs(t, "testdata/klaviyo/requests/*.out.json") {
		var golden requestWant
		readJSON(t, path, &golden)
		for _, sent := range golden.Requests {
			target, err := url.Parse(sent.URL)
			if err != nil {
				t.Fatal(err)
			}
			seen[target.Path]++
			operation := "klaviyo.json#/paths/" + strings.ReplaceAll(target.Path, "/", "~1") + "/post/requestBody/content/" +
				strings.ReplaceAll(sent.Header.Get("Content-Type"), "/", "~1") + "/schema"
			schema, err := compiler.Compile(operation)
			if err != nil {
				t.Fatalf("%s: %s is not described: %v", path, operation, err)
			}
			body, err := jsonschema.UnmarshalJSON(bytes.NewReader(sent.Body))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(body); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if sent.Header.Get("Revision") == "" || !strings.HasPrefix(sent.Header.Get("Authorization"), "Klaviyo-API-Key ") {
				t.Errorf("%s: got header %v, want a revision and a key", path, sent.Header)
			}
		}
	}
	for _, path := range []string{"/api/events", "/api/event-bulk-create-jobs"} {
		if seen[path] == 0 {
			t.Errorf("no golden pair has a request to %s", path)
		}
	}
}

// The revision that is spoken is the one of the description that requests are held against.
func TestTheRevisionOfKlaviyoIsTheOneThatIsDescribed(t *testing.T) {
	text, err := os.ReadFile(klaviyoDescription)
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		Info struct {
			Version string `json:"version"`
		} `json:"info"`
	}
	if err := json.Unmarshal(text, &described); err != nil {
		t.Fatal(err)
	}
	traits, _ := platforms.TypeKlaviyo.Traits()
	if want := described.Info.Version; traits.APIVersion != want {
		t.Errorf("got revision %s, want %s", traits.APIVersion, want)
	}
}

// closeObjects has every object refuse members that are not described, as Klaviyo's server does though its description is silent.
func closeObjects(at any) {
	switch at := at.(type) {
	case map[string]any:
		if _, described := at["properties"].(map[string]any); described && at["type"] == "object" {
			at["additionalProperties"] = false
		}
		for _, member := range at {
			closeObjects(member)
		}
	case []any:
		for _, element := range at {
			closeObjects(element)
		}
	}
}
