package console

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// TestAConsoleShowsThePropertiesOfItsClass has a Property of another class: its pods trust another console's keys.
func TestAConsoleShowsThePropertiesOfItsClass(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	who := "ada-" + namespace
	grant(t, "User", who, "", chief...)
	newProperty(t, namespace, "plain")
	newProperty(t, namespace, "sky", func(p *v1alpha1.Property) { p.Spec.OperatorClass = "blue" })
	for class, test := range map[string]struct{ shown, hidden string }{"": {"plain", "sky"}, "blue": {"sky", "plain"}} {
		b := start(t, func(o *Options) { o.OperatorClass = class }).as(who)
		listed := map[string]string{}
		list := parse[listBody](t, b.get("/api/properties"))
		for name, scope := range list.scopes() {
			if name == namespace+"/plain" || name == namespace+"/sky" {
				listed[name] = scope
			}
		}
		if diff := cmp.Diff(map[string]string{namespace + "/" + test.shown: "admin"}, listed); diff != "" {
			t.Errorf("class %q: the list (-want +got):\n%s", class, diff)
		}
		for name, want := range map[string]int{test.shown: http.StatusOK, test.hidden: http.StatusNotFound} {
			if got := b.get("/namespaces/" + namespace + "/properties/" + name + "/session"); got.status != want {
				t.Errorf("class %q: %s answers %d, want %d: %s", class, name, got.status, want, got.body)
			}
		}
	}
}
