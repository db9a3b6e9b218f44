package envelope

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
)

// everything keeps all members, and opens "object" and the first three elements of "list".
var everything = objectShape{unknown: &unopened, known: []knownMember{
	{name: "object", object: &itemShape}, {name: "list", maxElements: 3, elements: &itemShape},
}}

// FuzzOutline compares what is found in a JSON object with what the library reads from it.
func FuzzOutline(f *testing.F) {
	for _, body := range []string{
		`{}`, ` { "a" : 1 , "b":[ {"x":"}"} , [] ],"object":{ },"list":[ ]} `,
		`{"object":{"a":"\\","b":"\\\"","c":"\"\\\\","d\u0022":-1.5e+3},"list":[true,{"a":null},"]",[1,[2]],5]}`,
		`{"object":[{"a":1}],"list":{"a":[1]},"\u0061":{"b":{"c":"{"}}}`, "{\"a\":\"ä\u2028\",\n\t\"ö\":\r\nfalse}",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		text, err := decodeObject(body)
		if err != nil {
			return
		}
		top := nodeAt(outlineOf(text, &everything, nil))
		if want := strings.Trim(string(body), " \t\r\n"); top.raw != want {
			t.Errorf("the object is %q, want %q", top.raw, want)
		}
		compareMembers(t, top)
		if object := top.get("object"); object.kind() == jsontext.KindBeginObject {
			compareMembers(t, object)
		}
		list := top.get("list")
		if list.kind() != jsontext.KindBeginArray {
			return
		}
		var want []jsontext.Value
		if err := json.Unmarshal([]byte(list.raw), &want); err != nil {
			t.Fatal(err)
		}
		if list.length != len(want) {
			t.Errorf("%s has length %d, want %d", list.raw, list.length, len(want))
		}
		got := []jsontext.Value{}
		for element := range list.elements() {
			got = append(got, jsontext.Value(element.raw))
			if element.kind() == jsontext.KindBeginObject {
				compareMembers(t, element)
			}
		}
		if diff := cmp.Diff(want[:min(len(want), 3)], got, cmp.Comparer(slices.Equal[jsontext.Value])); diff != "" {
			t.Errorf("elements of %s (-want +got):\n%s", list.raw, diff)
		}
	})
}

// compareMembers compares all members of an object, each of which is kept.
func compareMembers(t *testing.T, object node) {
	t.Helper()
	var want map[string]jsontext.Value
	if err := json.Unmarshal([]byte(object.raw), &want); err != nil {
		t.Fatalf("%q is no object: %v", object.raw, err)
	}
	count := 0
	for i := 0; i < len(object.inner); i += 1 + object.inner[i].below {
		count++
	}
	if count != len(want) {
		t.Errorf("%s has %d members, want %d", object.raw, count, len(want))
	}
	for name, value := range want {
		if got := object.get(name); got.raw != string(value) {
			t.Errorf("member %q of %s is %q, want %q", name, object.raw, got.raw, value)
		}
	}
}

func TestAnEnvelopeIsReadIntoAgain(t *testing.T) {
	const full = `{"event":"purchase","event_id":"1","client_id":"jane","user":{"email":"jane@shop.example","phone":"+14155550123"},` +
		`"data":{"value":1,"currency":"EUR","contents":[{"id":"a","color":"red"},{"id":"b","price":2}]},"context":{"ip":"203.0.113.7"}}`
	accept := func(e *Envelope) event.Event {
		valid, errs := e.Validate(time.Now(), nil)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return Pseudonymise(valid, Acceptance{Platforms: []string{"log"}})
	}
	envelope := new(Envelope)
	if err := envelope.Decode([]byte(full)); err != nil {
		t.Fatal(err)
	}
	first := accept(envelope)
	before := wire.Encode(&first)

	const short = `{"event":"lead","event_id":"2","data":{"contents":[{}]}}`
	if err := envelope.Decode([]byte(short)); err != nil {
		t.Fatal(err)
	}
	fresh := new(Envelope)
	if err := fresh.Decode([]byte(short)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(accept(fresh), accept(envelope)); diff != "" {
		t.Errorf("the second event (-from a new envelope +from a used one):\n%s", diff)
	}
	if after := wire.Encode(&first); !slices.Equal(before, after) {
		t.Errorf("the first event became %q, want %q", after, before)
	}

	envelope.Reset()
	if used := envelope.outline[:cap(envelope.outline)]; slices.ContainsFunc(used, func(e entry) bool { return e != entry{} }) {
		t.Errorf("after Reset the outline still holds %v", used)
	}
	if diff := cmp.Diff(Valid{}, envelope.valid, cmp.AllowUnexported(Valid{})); diff != "" {
		t.Errorf("after Reset the valid envelope is not empty (-want +got):\n%s", diff)
	}
}
