package controllers_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers"
)

// TestWhoHasAHost lists Properties by age, the oldest first, each as NAMESPACE/NAME COLLECTHOST APIHOST; "-" is no host.
// One of another class says so, and whether its operator has given it the host; one that is paused, which collectHost it was given before.
func TestWhoHasAHost(t *testing.T) {
	rules := controllers.ExposureRules{AllowedHosts: map[string][]string{"*": {"*.x"}, "b": {"old.y"}, "template": {}}, HostTemplate: "{name}.{namespace}.x"}
	for sentence, test := range map[string]struct {
		wants []string
		// want has the refused, and the field that their error names.
		want map[string]string
	}{
		"hosts of their own": {wants: []string{"a/one c1.x api.x", "a/two c2.x api.x"}},
		"the older has a collectHost": {
			wants: []string{"a/one c.x -", "b/two c.x -"},
			want:  map[string]string{"b/two": "HostConflict spec.exposure.collectHost: c.x is a host of the older Property one in namespace a"},
		},
		"whoever is refused a host keeps none from others": {
			wants: []string{"a/one c1.x -", "b/two c1.x c2.x", "c/three c2.x -"},
			want:  map[string]string{"b/two": "HostConflict spec.exposure.collectHost"},
		},
		"and who is refused for the sake of that one does not either": {
			wants: []string{"a/one c1.x -", "a/two c1.x c2.x", "a/three c2.x c3.x", "a/four c3.x c4.x", "a/five c4.x -"},
			want:  map[string]string{"a/two": "HostConflict spec.exposure.collectHost", "a/four": "HostConflict spec.exposure.collectHost"},
		},
		"a collectHost that is an apiHost": {
			wants: []string{"a/one c1.x api.x", "a/two api.x -"}, want: map[string]string{"a/two": "HostConflict spec.exposure.collectHost"},
		},
		"an apiHost that is a collectHost": {
			wants: []string{"a/one c1.x -", "a/two c2.x c1.x"}, want: map[string]string{"a/two": "HostConflict spec.exposure.apiHost"},
		},
		"one host for both of one's own":                          {wants: []string{"a/one c.x c.x", "a/two c2.x -"}},
		"one name in two namespaces, with API hosts of their own": {wants: []string{"staging/shop c1.x api.staging.x", "production/shop c2.x api.x"}},
		"one name in two namespaces, on one API host": {
			wants: []string{"production/shop c1.x api.x", "staging/shop c2.x api.x", "staging/blog c3.x api.x"},
			want:  map[string]string{"staging/shop": "HostConflict spec.exposure.apiHost: on api.x the name shop is that of the older Property shop in namespace production"},
		},
		"one name in two namespaces, one without API host": {wants: []string{"production/shop c1.x api.x", "staging/shop c2.x -"}},
		"one name in two namespaces, not exposed":          {wants: []string{"production/shop", "staging/shop", "other/shop c.x api.x"}},
		"a host that the operator does not allow is kept from nobody": {
			wants: []string{"a/one c.x elsewhere.y", "a/two c.x -"},
		},
		"a Property that is not served keeps no host": {wants: []string{"kube-system/one c.x -", "a/two c.x -"}},
		"a host by template is owned like any other": {
			wants: []string{"a/one template template", "b/two one.a.x -"}, want: map[string]string{"b/two": "HostConflict spec.exposure.collectHost"},
		},
		"by template, a-b in c and a in b-c have two hosts": {wants: []string{"c/a-b template -", "b-c/a template -"}},
		"one of another class keeps what its operator has given it": {
			wants: []string{"a/one c.x - class given", "b/two c.x -"}, want: map[string]string{"b/two": "HostConflict spec.exposure.collectHost: c.x is a host of the older"},
		},
		"one of another class keeps nothing that it has only asked for": {wants: []string{"a/one c.x - class asked", "b/two c.x -"}},
		"a younger one of another class is not looked at":               {wants: []string{"b/two c.x -", "a/one c.x - class given"}},
		"a paused one keeps what it was given, whatever its spec asks for by now": {
			wants: []string{"a/one new.x - paused old.x", "b/two old.x -", "b/three new.x -"},
			want: map[string]string{
				"b/two":   "HostConflict spec.exposure.collectHost: old.x is a host of the Property one in namespace a, which is paused and keeps it until the pause ends",
				"b/three": "HostConflict spec.exposure.collectHost: new.x is a host of the older Property one",
			},
		},
		"also where it may not have it any more": {
			wants: []string{"a/one old.y - paused old.y", "b/two old.y -"}, want: map[string]string{"b/two": "HostConflict spec.exposure.collectHost"},
		},
		"also where it asks to be exposed no more": {
			wants: []string{"a/one none - paused old.x", "b/two old.x -"}, want: map[string]string{"b/two": "HostConflict spec.exposure.collectHost"},
		},
		"also from an older one, for what exposes it stands": {
			wants: []string{"b/two old.x -", "a/one new.x - paused old.x"}, want: map[string]string{"b/two": "HostConflict spec.exposure.collectHost"},
		},
		"also where it has moved to another class": {
			wants: []string{"a/one new.x - class,paused old.x", "b/two old.x -", "b/three new.x -"}, want: map[string]string{"b/two": "HostConflict spec.exposure.collectHost"},
		},
		"a paused one that was given nothing has what it asks for": {
			wants: []string{"a/one c.x - paused -", "b/two c.x -"}, want: map[string]string{"b/two": "HostConflict spec.exposure.collectHost: c.x is a host of the older"},
		},
		"a younger paused one that has only asked keeps nothing": {wants: []string{"b/two c.x -", "a/one c.x - paused -"}},
		"as old as another: the names decide": {
			wants: []string{"b/two c.x - 0", "a/one c.x - 0"}, want: map[string]string{"b/two": "HostConflict spec.exposure.collectHost"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			all := make([]v1alpha1.Property, len(test.wants))
			for i, text := range test.wants {
				all[i] = candidate(t, text, i)
			}
			for i := range all {
				var rivals []v1alpha1.Property
				for j := range all { // the youngest first: the order in which they are found is nobody's business
					if other := len(all) - 1 - j; other != i {
						rivals = append(rivals, all[other])
					}
				}
				if all[i].Spec.OperatorClass != "" || all[i].Annotations != nil {
					continue // for its own operator to say, or for nobody as long as it is paused
				}
				name := all[i].Namespace + "/" + all[i].Name
				lost := controllers.Lost(rules, &all[i], rivals)
				switch want, refused := test.want[name]; {
				case lost == "" && refused:
					t.Errorf("%s gets its hosts", name)
				case lost != "" && !refused:
					t.Errorf("%s is refused: %s", name, lost)
				case !strings.HasPrefix(lost, want):
					t.Errorf("%s is refused with %q, want %q", name, lost, want)
				}
			}
		})
	}
}

// candidate reads a line of [TestWhoHasAHost].
func candidate(t *testing.T, text string, age int) v1alpha1.Property {
	t.Helper()
	fields := strings.Fields(text)
	property := v1alpha1.Property{}
	property.Namespace, property.Name, _ = strings.Cut(fields[0], "/")
	property.Spec.Exposure.Type = v1alpha1.ExposureNone
	if len(fields) == 4 {
		age = 0
	}
	property.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, age, 0, time.UTC))
	if len(fields) == 1 {
		return property
	}
	host := func(field string) string {
		if field == "-" || field == "template" {
			return ""
		}
		return field
	}
	if fields[1] != "none" {
		property.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: host(fields[1]), APIHost: host(fields[2])}
	}
	if len(fields) < 5 {
		return property
	}
	if class, paused := strings.CutSuffix(fields[3], "paused"); paused {
		property.Spec.OperatorClass = strings.TrimSuffix(class, ",")
		property.Annotations = map[string]string{v1alpha1.AnnotationPaused: "true"}
		if fields[4] != "-" {
			property.Status.CollectURL = "https://" + fields[4]
		}
	} else {
		property.Spec.OperatorClass = fields[3]
		if fields[4] == "given" {
			property.Status.CollectURL = "https://" + fields[1]
		}
	}
	return property
}
