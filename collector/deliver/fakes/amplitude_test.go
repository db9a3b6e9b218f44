package fakes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/platforms"
)

// Of several bad events Amplitude names the first for each field.
func TestFakeAmplitudeNamesTheFirstBadEventOfAField(t *testing.T) {
	fake, server := newFake(t, platforms.TypeAmplitude)
	d := dialects[platforms.TypeAmplitude]
	good, tooOld := d.render(now, "e-1"), d.render(now.AddDate(-50, 0, 0), "e-2")
	nameless := strings.Replace(good, "lead", "", 1)
	got := send(t, fake, server.URL, d.url, "", "", fmt.Sprintf(d.body, strings.Join([]string{good, tooOld, tooOld, nameless}, ",")))
	want := exchanged{
		Status: 400,
		Body: `{"code":400,"error":"Invalid field values on some events","events_with_invalid_fields":{"time":[1]},` +
			`"events_with_missing_fields":{"event_type":[3]},"missing_field":null}`,
		Refusals: []string{"another event of the request is refused", "time must be in milliseconds", "time must be in milliseconds", "event_type is required"},
	}
	if got.Status != want.Status || !sameMembers(got.Body, want.Body) {
		t.Errorf("got %d %s, want %d %s", got.Status, got.Body, want.Status, want.Body)
	}
	if diff := cmp.Diff(want.Refusals, got.Refusals); diff != "" {
		t.Error(diff)
	}
}

// sameMembers says whether two texts are the same JSON object.
func sameMembers(a, b string) bool {
	one, wrong := unmarshal[map[string]any]([]byte(a))
	other, wrongToo := unmarshal[map[string]any]([]byte(b))
	return wrong == "" && wrongToo == "" && cmp.Equal(one, other)
}

func TestFakeAmplitudeRefusesRequestsAsAWhole(t *testing.T) {
	d := dialects[platforms.TypeAmplitude]
	for name, test := range map[string]struct {
		url, body string
		want      exchanged
	}{
		"another address":   {"/httpapi", fmt.Sprintf(d.body, d.render(now, "e-1")), exchanged{400, "Invalid request path", "no such address", nil}},
		"no event":          {d.url, fmt.Sprintf(d.body, ""), exchanged{400, `"missing_field":"events"`, "events are required", nil}},
		"no JSON":           {d.url, "<html>", exchanged{400, "Invalid JSON request body", "the body is not of the platform's form", nil}},
		"too many events":   {d.url, fmt.Sprintf(d.body, strings.Repeat(`{},`, 2000)+`{}`), exchanged{413, "Payload too large", "a request has up to 2000 events", nil}},
		"a request of 1 MB": {d.url, `{"api_key":"` + strings.Repeat("x", 1<<20) + `"}`, exchanged{413, "Payload too large", "a request has less than 1 MB", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			fake, server := newFake(t, platforms.TypeAmplitude)
			got := send(t, fake, server.URL, test.url, "", "", test.body)
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
