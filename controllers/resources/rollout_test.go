package resources_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/controllers/resources"
)

// podTemplates returns each role's, as it is sent.
func podTemplates(t *testing.T, property *v1alpha1.Property, in resources.Input) map[resources.Role]string {
	t.Helper()
	objects, _, err := resources.Build(property, in)
	if err != nil {
		t.Fatal(err)
	}
	templates := map[resources.Role]string{}
	for _, object := range objects {
		if object.Kind != "Deployment" {
			continue
		}
		var deployment struct {
			Spec struct{ Template json.RawMessage }
		}
		text, err := json.Marshal(object.Configuration)
		if err == nil {
			err = json.Unmarshal(text, &deployment)
		}
		if err != nil {
			t.Fatal(err)
		}
		role := resources.Role(strings.TrimPrefix(object.Name, property.Name+"-"))
		templates[role] = string(deployment.Spec.Template)
	}
	return templates
}

// TestWhatReplacesPods is the list in docs/operate/reconcile.md: pods are replaced where their template changes, and
// nothing else replaces them.
func TestWhatReplacesPods(t *testing.T) {
	all := []resources.Role{resources.Collector, resources.Deliverer, resources.Query}
	collector, deliverer, query := all[:1], all[1:2], all[2:]
	type edit = func(p *v1alpha1.Property, in *resources.Input)
	tests := map[string]struct {
		edit edit
		want []resources.Role
	}{
		"nothing, as for another version of the operator": {func(*v1alpha1.Property, *resources.Input) {}, nil},
		"another image":              {func(_ *v1alpha1.Property, in *resources.Input) { in.Options.Image = "weir:2" }, all},
		"another place of Redis":     {func(_ *v1alpha1.Property, in *resources.Input) { setRedis(in, "redis://%:password@elsewhere:6379") }, all},
		"another password in Redis":  {func(_ *v1alpha1.Property, in *resources.Input) { setRedis(in, "redis://%:another@redis:6379") }, nil},
		"another currency":           {func(p *v1alpha1.Property, _ *resources.Input) { p.Spec.Currency = "USD" }, query},
		"resources of the collector": {func(p *v1alpha1.Property, _ *resources.Input) { p.Spec.Collector.Resources = &v1alpha1.Resources{} }, collector},
		"a node selector of the query": {func(p *v1alpha1.Property, _ *resources.Input) {
			p.Spec.Query.NodeSelector = map[string]string{"a": "b"}
		}, query},
		"annotations for the deliverer": {func(p *v1alpha1.Property, _ *resources.Input) {
			p.Spec.Deliverer.PodAnnotations = map[string]string{"a": "b"}
		}, deliverer},
		"a platform with another Secret": {func(p *v1alpha1.Property, _ *resources.Input) {
			p.Spec.Platforms[0].CredentialsSecretRef = &v1alpha1.SecretReference{Name: "other"}
		}, deliverer},
		"a platform without a Secret": {func(p *v1alpha1.Property, _ *resources.Input) {
			p.Spec.Platforms = append(p.Spec.Platforms, v1alpha1.Platform{Name: "log", Type: platforms.TypeLog})
		}, nil},
		"a platform's settings":   {func(p *v1alpha1.Property, _ *resources.Input) { p.Spec.Platforms[0].Meta.PixelID = "456" }, nil},
		"a platform is suspended": {func(p *v1alpha1.Property, _ *resources.Input) { p.Spec.Platforms[0].Suspend = true }, nil},
		"another key and another token": {func(p *v1alpha1.Property, in *resources.Input) {
			p.Spec.APIKeys = append(p.Spec.APIKeys, v1alpha1.PropertyAPIKey{Name: "next"})
			p.Spec.AccessTokens = append(p.Spec.AccessTokens, v1alpha1.PropertyAccessToken{Name: "next", Scope: "read"})
			in.Credentials.APIKeys["next"], in.Credentials.AccessTokens["next"] = "wk_next", "wt_next"
		}, nil},
		"time zone, aliases, windows, limits": {func(p *v1alpha1.Property, _ *resources.Input) {
			p.Spec.TimeZone, p.Spec.Deduplication.WindowHours, p.Spec.Retention.Days = "UTC", 24, 30
			p.Spec.EventAliases = map[string]v1alpha1.EventName{"view": "pageview"}
			p.Spec.Limits = v1alpha1.Limits{EventsPerSecond: new(int32(5)), MaxBodyBytes: 1000}
		}, nil},
		"replicas": {func(p *v1alpha1.Property, _ *resources.Input) {
			p.Spec.Collector.Autoscaling, p.Spec.Collector.Replicas, p.Spec.Query.Replicas = nil, new(int32(3)), new(int32(3))
		}, nil},
		"hosts":                         {func(p *v1alpha1.Property, _ *resources.Input) { p.Spec.Exposure.CollectHost = "other.example.com" }, nil},
		"a proxy for deliveries":        {func(_ *v1alpha1.Property, in *resources.Input) { in.Options.DeliveryProxy.URL = "http://proxy:3128" }, deliverer},
		"tracing":                       {func(_ *v1alpha1.Property, in *resources.Input) { in.Options.Tracing.Endpoint = "http://otel:4318" }, all},
		"users of the cluster's choice": {func(_ *v1alpha1.Property, in *resources.Input) { in.Options.AnyUser = true }, all},
		"labels for all pods": {func(_ *v1alpha1.Property, in *resources.Input) {
			in.Options.PodDefaults.Labels = map[string]string{"a": "b"}
		}, all},
		"what the operator allows": {func(_ *v1alpha1.Property, in *resources.Input) {
			in.Options.EgressAllowCIDRs = []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}
			in.Options.PlatformEndpoints = map[platforms.Type]string{platforms.TypeMeta: "https://meta.example.com"}
			in.Options.Network.Disabled = true
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in, property := readObjectsInput(t, "testdata/objects/everything.in.yaml")
			before := podTemplates(t, property, in)
			test.edit(property, &in)
			after := podTemplates(t, property, in)
			var got []resources.Role
			for _, role := range all {
				if before[role] != after[role] {
					got = append(got, role)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("roles whose pods are replaced (-want +got):\n%s", diff)
			}
		})
	}
}

func setRedis(in *resources.Input, address string) {
	for _, role := range resources.Roles() {
		in.RedisURLs[role] = strings.Replace(address, "%", string(role), 1)
	}
}

// TestAPodEndsWithinItsGracePeriod: the delay, the requests in flight, and what is still to be appended and traced
// afterwards have to fit.
func TestAPodEndsWithinItsGracePeriod(t *testing.T) {
	const inFlight = server.DefaultDrainTimeout // the deliverer's requests have the same
	const afterward = 7 * time.Second           // 5 s for the last appends, 2 s for the last spans
	in, property := readObjectsInput(t, "testdata/objects/everything.in.yaml")
	for role, template := range podTemplates(t, property, in) {
		var pod struct {
			Spec struct {
				TerminationGracePeriodSeconds int64
				Containers                    []struct{ Args []string }
			}
		}
		if err := json.Unmarshal([]byte(template), &pod); err != nil {
			t.Fatal(err)
		}
		delay := time.Duration(0)
		for _, arg := range pod.Spec.Containers[0].Args {
			if value, found := strings.CutPrefix(arg, "--drain-delay="); found {
				var err error
				if delay, err = time.ParseDuration(value); err != nil {
					t.Fatal(err)
				}
			}
		}
		if served := role != resources.Deliverer && role != resources.Archive; (delay > 0) != served {
			t.Errorf("%s: --drain-delay is %s; a role that is asked over HTTP needs one, the others have nothing to wait for", role, delay)
		}
		if grace := time.Duration(pod.Spec.TerminationGracePeriodSeconds) * time.Second; grace < delay+inFlight+afterward {
			t.Errorf("%s: the grace period is %s, but ending takes up to %s", role, grace, delay+inFlight+afterward)
		}
	}
}
