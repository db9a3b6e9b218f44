package controllers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// Meta ends v21.0 on 2027-01-21, and v22.0 on 2027-05-20; 60 days before are these days.
var (
	v21Noticed = time.Date(2026, time.November, 22, 0, 0, 0, 0, time.UTC)
	v21Ends    = time.Date(2027, time.January, 21, 0, 0, 0, 0, time.UTC)
	v22Noticed = time.Date(2027, time.March, 21, 0, 0, 0, 0, time.UTC)
)

// speaking is Meta with a version of its owner's; "" for Weir's own.
func speaking(name, version string) v1alpha1.Platform {
	return v1alpha1.Platform{
		Name: name, Type: platforms.TypeMeta, APIVersion: version, CredentialsSecretRef: &v1alpha1.SecretReference{Name: "meta"},
		Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}},
	}
}

// TestAPropertySaysThatAVersionEnds turns the clock and the spec. After each step the Property is reconciled again and again,
// by two operators: an event is made once. What is wanted beside is when at the latest the Property is looked at next without
// being told to.
func TestAPropertySaysThatAVersionEnds(t *testing.T) {
	hand, address, ctx := newByHand(t), redistest.URL(t), context.Background()
	create(t, property(hand.namespace, "shop"))
	const supported = "no version that is spoken to a platform ends within 60 days, as far as announced"
	for _, step := range []struct {
		name      string
		at        time.Time
		platforms []v1alpha1.Platform
		message   string
		events    []string
		next      time.Duration
	}{
		{"Weir's own version, of which no end is announced", v21Ends, []v1alpha1.Platform{speaking("meta", "")}, supported,
			nil, 0},
		{"an older one, the day before it is said", v21Noticed.Add(-24 * time.Hour), []v1alpha1.Platform{speaking("meta", "v21.0")}, supported,
			nil, 24 * time.Hour},
		{"60 days before the end", v21Noticed, []v1alpha1.Platform{speaking("meta", "v21.0")},
			"spec.platforms[0] (meta): Meta ends version v21.0 of its interface on 2027-01-21; name a newer one as apiVersion, or remove that",
			[]string{"Warning VersionsSupportedFalse VersionEnding"}, 60 * 24 * time.Hour},
		{"the day before the end, with a suspended platform before it", v21Ends.Add(-24 * time.Hour), []v1alpha1.Platform{{Name: "log", Type: platforms.TypeLog, Suspend: true}, speaking("meta", "v21.0")},
			"spec.platforms[1] (meta): Meta ends version v21.0 of its interface on 2027-01-21; name a newer one as apiVersion, or remove that",
			nil, 24 * time.Hour},
		{"the day of the end", v21Ends, []v1alpha1.Platform{speaking("meta", "v21.0")},
			"spec.platforms[0] (meta): Meta has ended version v21.0 of its interface on 2027-01-21; name a newer one as apiVersion, or remove that",
			[]string{"Warning VersionsSupportedFalse VersionEnded"}, 0},
		{"another version, which ends later", v21Ends, []v1alpha1.Platform{speaking("meta", "v22.0")}, supported,
			[]string{"Normal VersionsSupportedTrue Ready"}, v22Noticed.Sub(v21Ends)},
		{"two platforms: what has ended is said first, and the day that is next counts", v22Noticed, []v1alpha1.Platform{speaking("new", "v22.0"), speaking("old", "v21.0")},
			"spec.platforms[1] (old): Meta has ended version v21.0 of its interface on 2027-01-21; name a newer one as apiVersion, or remove that; " +
				"spec.platforms[0] (new): Meta ends version v22.0 of its interface on 2027-05-20; name a newer one as apiVersion, or remove that",
			[]string{"Warning VersionsSupportedFalse VersionEnded"}, 60 * 24 * time.Hour},
		{"a version of whose end nobody knows", v22Noticed, []v1alpha1.Platform{speaking("meta", "v99.0")}, supported,
			[]string{"Normal VersionsSupportedTrue Ready"}, 0},
	} {
		t.Run(step.name, func(t *testing.T) {
			change(t, &v1alpha1.Property{}, hand.namespace, "shop", func(p *v1alpha1.Property) { p.Spec.Platforms = step.platforms })
			eventually(t, func() error {
				if !hand.seen(ctx, "shop") { // or the day would come with the platforms of the step before
					return errors.New("the cache has not seen the change")
				}
				return nil
			})
			recorder := events.NewFakeRecorder(1000)
			recorder.Verbose = true
			var next time.Duration
			for range 2 {
				options := controllers.Options{RedisURL: address, Now: func() time.Time { return step.at }}
				operator, stop := hand.start(newFuse(forever), options, recorder)
				hand.live(t, operator, "shop", func() bool { return false })
				result, err := operator.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: hand.namespace, Name: "shop"}})
				stop()
				if err != nil {
					t.Fatal(err)
				}
				next = result.RequeueAfter
			}
			var got []string
			for len(recorder.Events) > 0 {
				if words := strings.Fields(<-recorder.Events); strings.HasPrefix(words[1], v1alpha1.ConditionVersionsSupported) {
					got = append(got, strings.Join(words[:3], " "))
				}
			}
			slices.Sort(got)
			p := get(t, &v1alpha1.Property{}, hand.namespace, "shop")
			if diff := cmp.Diff(step.message, message(p, v1alpha1.ConditionVersionsSupported)); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(step.events, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if step.next > 0 && (next <= 0 || next > step.next) { // it may be sooner for another reason
				t.Errorf("it is looked at again after %s, want %s at the latest", next, step.next)
			}
			if ready := message(p, v1alpha1.ConditionReady); strings.Contains(ready, "version") {
				t.Errorf("Ready says %q; the condition stands apart from it", ready)
			}
		})
	}
}

// TestTheDayIsNoticedWithoutAnyOtherChange lets the clock reach the day while nothing else happens.
func TestTheDayIsNoticedWithoutAnyOtherChange(t *testing.T) {
	namespace := newNamespace(t)
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) { p.Spec.Platforms = []v1alpha1.Platform{speaking("meta", "v21.0")} }))
	ahead := time.Until(v21Noticed.Add(-3 * time.Second))
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{
		RedisURL: redistest.URL(t), Now: func() time.Time { return time.Now().Add(ahead) },
	}})
	waitFor(t, namespace, "shop", v1alpha1.ConditionVersionsSupported, metav1.ConditionTrue, v1alpha1.ReasonReady)
	waitFor(t, namespace, "shop", v1alpha1.ConditionVersionsSupported, metav1.ConditionFalse, v1alpha1.ReasonVersionEnding)
	change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { p.Spec.Platforms[0].APIVersion = "" })
	waitFor(t, namespace, "shop", v1alpha1.ConditionVersionsSupported, metav1.ConditionTrue, v1alpha1.ReasonReady)
}
