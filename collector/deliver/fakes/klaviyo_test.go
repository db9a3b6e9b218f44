package fakes

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weir-dev/weir/collector/platforms"
)

// klaviyoJobOf is a bulk job of events with these ids.
func klaviyoJobOf(ids ...string) string {
	d := dialects[platforms.TypeKlaviyo]
	events := make([]string, len(ids))
	for i, id := range ids {
		events[i] = d.render(now, id)
	}
	return fmt.Sprintf(d.body, strings.Join(events, ","))
}

func TestFakeKlaviyoRefusesRequestsAsAWhole(t *testing.T) {
	const jsonAPI = "application/vnd.api+json"
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprintf("e-%d", i)
	}
	for name, test := range map[string]struct {
		url, contentType, revision, body string
		want                             exchanged
	}{
		"another content type": {
			"/api/event-bulk-create-jobs", "application/json", "2026-07-15", klaviyoJobOf("e-1"),
			exchanged{Status: 415, Body: `"code":"unsupported_media_type"`, Complaint: "the content type must be application/vnd.api+json"},
		},
		"no revision": {
			"/api/event-bulk-create-jobs", jsonAPI, "", klaviyoJobOf("e-1"),
			exchanged{Status: 400, Body: "revision", Complaint: "the revision is none of Klaviyo's"},
		},
		"another address": {
			"/api/profiles", jsonAPI, "2026-07-15", klaviyoJobOf("e-1"),
			exchanged{Status: 404, Body: `"code":"not_found"`, Complaint: "no such address"},
		},
		"no event": {
			"/api/event-bulk-create-jobs", jsonAPI, "2026-07-15", klaviyoJobOf(),
			exchanged{Status: 400, Body: `"pointer":"/data/attributes/events-bulk-create/data"`, Complaint: "a job has 1 to 1000 events"},
		},
		"too many events": {
			"/api/event-bulk-create-jobs", jsonAPI, "2026-07-15", klaviyoJobOf(many...),
			exchanged{Status: 400, Body: `"pointer":"/data/attributes/events-bulk-create/data"`, Complaint: "a job has 1 to 1000 events"},
		},
		"an id that is repeated": {
			"/api/event-bulk-create-jobs", jsonAPI, "2026-07-15", klaviyoJobOf("e-1", "e-2", "e-1"),
			exchanged{Status: 400, Body: `/data/2/attributes/events/data/0/attributes/unique_id"`, Refusals: []string{
				"another event of the job is refused", "another event of the job is refused", "unique_id is repeated for the same profile and metric",
			}},
		},
		"a job where an event alone belongs": {
			"/api/events", jsonAPI, "2026-07-15", klaviyoJobOf("e-1"),
			exchanged{Status: 400, Body: `"code":"invalid"`, Complaint: "the body is not of the form of an event"},
		},
		"an event alone without a profile": {
			"/api/events", jsonAPI, "2026-07-15", `{"data":{"type":"event","attributes":{"properties":{}}}}`,
			exchanged{Status: 400, Body: `"pointer":"/data/attributes/profile"`, Complaint: "profile is required"},
		},
		"an event alone with a bad time": {
			"/api/events", jsonAPI, "2026-07-15", `{"data":{"type":"event","attributes":{"profile":{"data":{"type":"profile","attributes":{"external_id":"7"}}},
				"metric":{"data":{"type":"metric","attributes":{"name":"lead"}}},"properties":{},"time":"now","unique_id":"e-1"}}}`,
			exchanged{Status: 400, Body: `"pointer":"/data/attributes/time"`, Refusals: []string{"time must be after 1990 and up to a year ahead"}},
		},
		"a good event alone": {
			"/api/events", jsonAPI, "2026-07-15", `{"data":{"type":"event","attributes":{"profile":{"data":{"type":"profile","attributes":{"external_id":"7"}}},
				"metric":{"data":{"type":"metric","attributes":{"name":"lead"}}},"properties":{},"time":"2026-11-20T12:00:00Z","unique_id":"e-1"}}}`,
			exchanged{Status: 202, Refusals: []string{""}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fake, server := newFake(t, platforms.TypeKlaviyo)
			d := dialects[platforms.TypeKlaviyo]
			got := send(t, fake, server.URL, test.url, d.header, d.value, test.body,
				http.Header{"Content-Type": {test.contentType}, "Revision": {test.revision}})
			if !strings.Contains(got.Body, test.want.Body) {
				t.Errorf("got %s, want it with %s", got.Body, test.want.Body)
			}
			got.Body = test.want.Body
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What the fake answers is what Klaviyo's OpenAPI description has for errors.
func TestFakeKlaviyoAnswersAsItsDescriptionHasIt(t *testing.T) {
	text, err := os.ReadFile("../adapter/testdata/klaviyo/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft4)
	if err := compiler.AddResource("klaviyo.json", document); err != nil {
		t.Fatal(err)
	}
	for response, statuses := range map[string][]int{"ClientError": {400, 401, 403, 404, 405, 410, 413, 415, 429}, "ServerError": {500, 502, 503}} {
		schema, err := compiler.Compile("klaviyo.json#/components/responses/" + response + "/content/application~1vnd.api+json/schema")
		if err != nil {
			t.Fatal(err)
		}
		for _, status := range statuses {
			body, err := jsonschema.UnmarshalJSON(strings.NewReader(failKlaviyo(status).body))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(body); err != nil {
				t.Errorf("%d: %v", status, err)
			}
		}
	}
}
