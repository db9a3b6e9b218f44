package e2e

import (
	"encoding/json"
	"reflect"
	"strings"
)

// member follows names into an answer; nil where there is no such member.
func member(value any, names ...string) any {
	for _, name := range names {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// members keeps the named members of a list's objects.
func members(list any, names ...string) any {
	objects, _ := list.([]any)
	kept := make([]any, 0, len(objects))
	for _, object := range objects {
		one := map[string]any{}
		for _, name := range names {
			one[name] = member(object, name)
		}
		kept = append(kept, one)
	}
	return kept
}

func contains(text, part string) bool { return strings.Contains(text, part) }

func sameJSON(one, other string) bool {
	var first, second any
	return json.Unmarshal([]byte(one), &first) == nil && json.Unmarshal([]byte(other), &second) == nil && reflect.DeepEqual(first, second)
}
