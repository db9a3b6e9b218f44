package outline

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// all keeps all members, unopened.
var all = Shape{Unknown: new(Member)}

// everything keeps all members, and opens "object" and the first three elements of "list".
var everything = Shape{Unknown: new(Member), Known: []Member{
	{Name: "object", Object: &all}, {Name: "list", MaxElements: 3, Elements: &all},
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
		text, err := Decode(body)
		if err != nil {
			return
		}
		top := At(Of(text, &everything, nil))
		if want := strings.Trim(string(body), " \t\r\n"); top.Raw != want {
			t.Errorf("the object is %q, want %q", top.Raw, want)
		}
		compareMembers(t, top)
		if object := top.Get("object"); object.Kind() == jsontext.KindBeginObject {
			compareMembers(t, object)
		}
		list := top.Get("list")
		if list.Kind() != jsontext.KindBeginArray {
			return
		}
		var want []jsontext.Value
		if err := json.Unmarshal([]byte(list.Raw), &want); err != nil {
			t.Fatal(err)
		}
		if list.Length != len(want) {
			t.Errorf("%s has length %d, want %d", list.Raw, list.Length, len(want))
		}
		got := []jsontext.Value{}
		for element := range list.Elements() {
			got = append(got, jsontext.Value(element.Raw))
			if element.Kind() == jsontext.KindBeginObject {
				compareMembers(t, element)
			}
		}
		if diff := cmp.Diff(want[:min(len(want), 3)], got, cmp.Comparer(slices.Equal[jsontext.Value])); diff != "" {
			t.Errorf("elements of %s (-want +got):\n%s", list.Raw, diff)
		}
	})
}

// compareMembers compares all members of an object, each of which is kept.
func compareMembers(t *testing.T, object Node) {
	t.Helper()
	var want map[string]jsontext.Value
	if err := json.Unmarshal([]byte(object.Raw), &want); err != nil {
		t.Fatalf("%q is no Object: %v", object.Raw, err)
	}
	count := 0
	for i := 0; i < len(object.Inner); i += 1 + object.Inner[i].Below {
		count++
	}
	if count != len(want) {
		t.Errorf("%s has %d members, want %d", object.Raw, count, len(want))
	}
	for name, value := range want {
		if got := object.Get(name); got.Raw != string(value) {
			t.Errorf("member %q of %s is %q, want %q", name, object.Raw, got.Raw, value)
		}
	}
}
