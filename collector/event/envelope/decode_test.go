package envelope_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/event/outline"
)

func TestDecodeRefusesWhatIsNoJSONObject(t *testing.T) {
	tests := map[string]struct {
		body, want string
	}{
		"an empty body":                          {"", "The request body must not be empty (at byte 0)."},
		"white space":                            {" \n", "The request body must not be empty (at byte 2)."},
		"an array":                               {`[{"event":"s3cret"}]`, "The request body must be a JSON object (at byte 0)."},
		"a string":                               {`"s3cret"`, "The request body must be a JSON object (at byte 0)."},
		"null":                                   {`null`, "The request body must be a JSON object (at byte 0)."},
		"text":                                   {`s3cret`, "The request body must be valid JSON (at byte 0)."},
		"an object that is cut off":              {`{"event":"s3cr`, "The request body must be valid JSON, but ends too early (at byte 14)."},
		"an object that is not closed":           {`{"event":"s3cret"`, "The request body must be valid JSON, but ends too early (at byte 17)."},
		"a member named twice":                   {`{"s3cret":1,"s3cret":2}`, "The request body must be valid JSON, but names a member twice (at byte 12)."},
		"a member named twice further in":        {`{"data":{"value":1,"value":2}}`, "The request body must be valid JSON, but names a member twice (at byte 19)."},
		"an unknown member's member named twice": {`{"s3cret":[{"a":1,"a":2}]}`, "The request body must be valid JSON, but names a member twice (at byte 18)."},
		"a name that is spelt with an escape too": {`{"event":"a","ev\u0065nt":"b"}`, "The request body must be valid JSON, but names a member twice (at byte 13)."},
		"bytes that are not UTF-8":                {"{\"event\":\"s3cret\xff\"}", "The request body must be valid UTF-8 (at byte 16)."},
		"half a surrogate pair":                   {`{"event":"\ud83d"}`, "The request body must be valid JSON (at byte 10)."},
		"data behind the object":                  {`{"event":"a"} s3cret`, "The request body must be valid JSON (at byte 14)."},
		"a second object":                         {`{"event":"a"} {}`, "The request body must be valid JSON (at byte 14)."},
		"a trailing comma":                        {`{"event":"a",}`, "The request body must be valid JSON (at byte 13)."},
		"a comment":                               {`{"event":"a"/*s3cret*/}`, "The request body must be valid JSON (at byte 12)."},
		"NaN":                                     {`{"data":{"value":NaN}}`, "The request body must be valid JSON (at byte 17)."},
		"a number with a leading zero":            {`{"data":{"value":012}}`, "The request body must be valid JSON (at byte 18)."},
		"a depth that no event has":               {strings.Repeat(`{"data":`, 20000), "The request body must not be nested deeper than 100 levels (at byte 800)."},
		"a depth of arrays that no event has":     {`{"a":` + strings.Repeat("[", 100), "The request body must not be nested deeper than 100 levels (at byte 104)."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := decode([]byte(tt.body))
			if _, ok := errors.AsType[*outline.SyntaxError](err); !ok {
				t.Fatalf("Decode(%.40s) fails with %v, want a SyntaxError", tt.body, err)
			}
			if got := err.Error(); got != tt.want {
				t.Errorf("Decode(%.40s) says %q, want %q", tt.body, got, tt.want)
			}
		})
	}
}

func TestDecodeTakesWhatIsNotNestedTooDeep(t *testing.T) {
	for sentence, body := range map[string]string{
		"a hundred levels":                   `{"a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`,
		"many objects beside each other":     `{"a":[` + strings.Repeat("{},", 500) + `{}]}`,
		"brackets in a text":                 `{"a":"` + strings.Repeat("[", 500) + `"}`,
		"brackets in a text behind a quote":  `{"a":"\"` + strings.Repeat("{", 500) + `"}`,
		"brackets in a name, and in no name": `{"` + strings.Repeat("[", 500) + `\\":[1]}`,
	} {
		if _, err := decode([]byte(body)); err != nil {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}

func TestDecodeDoesNotKeepTheBody(t *testing.T) {
	body := []byte(`{"event":"pageview","client_id":"c1"}`)
	sent, err := decode(body)
	if err != nil {
		t.Fatal(err)
	}
	clear(body)
	valid, errs := sent.Validate(now, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if e := envelope.Pseudonymise(valid, acceptance); e.Name != "pageview" || e.ClientID != "c1" {
		t.Errorf("after the body is overwritten the event is %q by %q, want pageview by c1", e.Name, e.ClientID)
	}
}

func TestDecodeBatch(t *testing.T) {
	tests := map[string]struct {
		body string
		want []string // the items, or the error behind an exclamation mark
	}{
		"events of any kind, one by one": {`{"other":[1],"events":[{"event":"a"}, 7,{}]}`, []string{`{"event":"a"}`, `7`, `{}`}},
		"as many events as there may be": {`{"events":[1,2,3]}`, []string{"1", "2", "3"}},
		"one event too many":             {`{"events":[1,2,3,4]}`, []string{"!events: The events field must not have more than 3 items."}},
		"no events":                      {`{}`, []string{"!events: The events field is required."}},
		"null events":                    {`{"events":null}`, []string{"!events: The events field is required."}},
		"an empty list":                  {`{"events":[]}`, []string{"!events: The events field is required."}},
		"an object of events":            {`{"events":{"0":{}}}`, []string{"!events: The events field must be an array."}},
		"a list at the top":              {`[{"event":"a"}]`, []string{"!The request body must be a JSON object (at byte 0)."}},
		"one event that is no JSON":      {`{"events":[{},{"event":x}]}`, []string{"!The request body must be valid JSON (at byte 23)."}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			items, err := envelope.DecodeBatch([]byte(tt.body), 3)
			var got []string
			for i, item := range items {
				if item.Index != i {
					t.Errorf("item %d has index %d", i, item.Index)
				}
				got = append(got, item.Raw)
			}
			if errs, ok := errors.AsType[event.Errors](err); ok {
				got = append(got, "!"+errs[0].Field+": "+errs[0].Message)
			} else if err != nil {
				got = append(got, "!"+err.Error())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.body, diff)
			}
		})
	}
}

func TestAnEventOfABatchThatIsNotStrictFailsAlone(t *testing.T) {
	const good = `{"event":"pageview","event_id":"a"}`
	for name, test := range map[string]struct{ before, item, after string }{
		"half of a surrogate pair": {item: `{"event":"x","data":{"content_name":"shoe \ud83d"}}`}, "bytes that are no UTF-8": {item: "{\"event\":\"x\xff\"}"},
		"a depth that no event has":        {item: `{"event":"x","z":` + strings.Repeat(`[{"a":"]"},`, 30000) + "1" + strings.Repeat("]", 30000) + `,"y":[]}`},
		"several such depths":              {item: `{"event":"x","z":` + strings.Repeat("[", 99) + `{"a":[1]},[2],3` + strings.Repeat("]", 99) + "}"},
		"none where it is not the event's": {`"z":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + ",", good, ""},
		"none where a depth does not end":  {item: `{"event":"x","z":` + strings.Repeat("[", 1000)},
		"a member twice":                   {item: `{"event":"x","event":"y"}`}, "a member twice where nobody looks": {item: `{"event":"x","z":{"a":1,"a":2}}`},
		"none where the batch itself has a member twice": {`"events":[],`, good, ""}, "none where it has a wrong text": {"\"\xff\":1,", good, ""},
		"none where it ends too early": {"", good, "["}, "none where the event does": {item: `{"event":"x"`}, "none where something follows": {"", good, "]} {"},
	} {
		t.Run(name, func(t *testing.T) {
			items, err := envelope.DecodeBatch([]byte("{"+test.before+`"events":[`+good+","+test.item+","+good+test.after+"]}"), 3)
			if strings.HasPrefix(name, "none") {
				if _, ok := errors.AsType[*outline.SyntaxError](err); !ok {
					t.Errorf("got %d events and %v, want a syntax error", len(items), err)
				}
				return
			}
			if err != nil || len(items) != 3 {
				t.Fatalf("got %d events and %v, want 3", len(items), err)
			}
			var e envelope.Envelope
			for i, item := range items {
				if errs := item.Decode(&e); (len(errs) > 0) != (i == 1) || (i == 1 && errs[0].Field != "events.1") {
					t.Errorf("event %d: got %v, want an error of events.1 alone", i, errs)
				}
			}
		})
	}
}

func TestABatchItemStandsAlone(t *testing.T) {
	items, err := envelope.DecodeBatch([]byte(`{"events":[{"event":"a"},"b",{}]}`), 500)
	if err != nil {
		t.Fatal(err)
	}
	want := []event.Errors{
		nil,
		{{Field: "events.1", Message: "The events.1 field must be an object."}},
		{{Field: "event", Message: "The event field is required."}},
	}
	for i, item := range items {
		sent := new(envelope.Envelope)
		errs := item.Decode(sent)
		if errs == nil {
			_, errs = sent.Validate(now, nil)
		}
		if diff := cmp.Diff(want[i], errs); diff != "" {
			t.Errorf("item %d (-want +got):\n%s", i, diff)
		}
	}
}
