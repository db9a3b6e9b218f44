package resources_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
)

// members maps the names in JSON of a struct's fields to their types, without pointers.
func members(of reflect.Type) map[string]reflect.Type {
	found := map[string]reflect.Type{}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if found[name] = field.Type; field.Type.Kind() == reflect.Pointer {
			found[name] = field.Type.Elem()
		}
	}
	return found
}

// kinds maps the names in JSON of a struct's fields to what they are.
func kinds(of reflect.Type) map[string]string {
	found := map[string]string{}
	for name, member := range members(of) {
		found[name] = member.Kind().String()
	}
	return found
}

// A platform is rendered by the names of its members: one that the pods call otherwise would be lost on its way.
func TestEverySettingOfAPlatformReachesThePods(t *testing.T) {
	rendered := members(reflect.TypeFor[config.Platform]())
	for name, asked := range members(reflect.TypeFor[v1alpha1.Platform]()) {
		switch {
		case name == "credentialsSecretRef": // whose content the pods have as files
		case rendered[name] == nil || rendered[name].Kind() != asked.Kind():
			t.Errorf("the pods have no member %s that is a %s", name, asked.Kind())
		case asked.Kind() == reflect.Struct:
			if diff := cmp.Diff(kinds(asked), kinds(rendered[name])); diff != "" {
				t.Errorf("settings of %s (-Property +pods):\n%s", name, diff)
			}
		}
	}
}
