package resources_test

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/api/validation"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/controllers/resources"
)

// objectsInput is a golden pair's question: a Property, and what is not in it.
type objectsInput struct {
	Property         json.RawMessage `json:"property"`
	EgressAllowCIDRs []netip.Prefix  `json:"egressAllowCIDRs"`
	Withheld         bool            `json:"withheld"`
	LedgerParts      int             `json:"ledgerParts"`
	// HistoryPending says that the history has not been made yet.
	HistoryPending bool `json:"historyPending"`
	// Network is the operator's, in the words of its flags.
	Network struct {
		Disabled    bool                             `json:"disabled"`
		IngressFrom []networkingv1.NetworkPolicyPeer `json:"ingressFrom"`
		MetricsFrom []networkingv1.NetworkPolicyPeer `json:"metricsFrom"`
		DNSTo       []networkingv1.NetworkPolicyPeer `json:"dnsTo"`
		RedisFrom   []networkingv1.NetworkPolicyPeer `json:"redisFrom"`
		EgressTo    []networkingv1.NetworkPolicyPeer `json:"egressTo"`
	} `json:"network"`
	// PodDefaults are the file of --pod-defaults-file.
	PodDefaults resources.PodDefaults `json:"podDefaults"`
	// DeliveryProxy is what deliveries go through.
	DeliveryProxy struct {
		URL    string `json:"url"`
		ByName bool   `json:"byName"`
	} `json:"deliveryProxy"`
	// Tracing is where spans are sent.
	Tracing struct {
		Endpoint    string                           `json:"endpoint"`
		SampleRatio float64                          `json:"sampleRatio"`
		To          []networkingv1.NetworkPolicyPeer `json:"to"`
	} `json:"tracing"`
	// AnyUser leaves the pods' user to the cluster.
	AnyUser bool `json:"anyUser"`
	// Optional are the optional kinds that the cluster has.
	Optional []string `json:"optional"`
}

// TestBuild builds the objects of every testdata/objects/NAME.in.yaml and compares them with NAME.out.yaml.
func TestBuild(t *testing.T) {
	inputs, err := filepath.Glob("testdata/objects/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("found %d inputs, error %v", len(inputs), err)
	}
	for _, path := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".in.yaml"), func(t *testing.T) {
			in, property := readObjectsInput(t, path)
			objects, _, err := resources.Build(property, in)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for _, object := range objects {
				text, err := yaml.Marshal(object.Configuration)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n")
				got.Write(text)
			}
			golden := strings.TrimSuffix(path, ".in.yaml") + ".out.yaml"
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			for _, secret := range []string{"wk_in_the_clear", "wt_in_the_clear", "rp_in_the_clear", "hp_in_the_clear"} {
				if strings.Contains(got.String(), secret) {
					t.Errorf("an object holds %q", secret)
				}
			}
		})
	}
}

func readObjectsInput(t *testing.T, path string) (resources.Input, *v1alpha1.Property) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var in objectsInput
	if err := yaml.UnmarshalStrict(content, &in); err != nil {
		t.Fatal(err)
	}
	definition, err := os.ReadFile("../../config/crd/bases/weir.dev_properties.yaml")
	if err != nil {
		t.Fatal(err)
	}
	validator, err := validation.New(definition)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := utiljson.Unmarshal(in.Property, &object); err != nil {
		t.Fatal(err)
	}
	property, errs := validator.Create(t.Context(), object)
	if property == nil {
		t.Fatalf("%s: %v", path, errs)
	}
	property.UID = "00000000-0000-0000-0000-000000000001"
	input := resources.Input{
		Credentials: resources.Credentials{APIKeys: map[string]string{}, AccessTokens: map[string]string{}},
		Options: resources.Options{Image: "weir:1", RedisImage: "redis:1", EgressAllowCIDRs: in.EgressAllowCIDRs, Network: resources.NetworkRules(in.Network), PodDefaults: in.PodDefaults,
			Tracing: resources.Tracing(in.Tracing), AnyUser: in.AnyUser},
		RedisURLs: map[resources.Role]string{}, RedisPort: 6379, Withheld: in.Withheld, LedgerParts: in.LedgerParts,
		Available: map[schema.GroupVersionKind]bool{},
	}
	input.Options.DeliveryProxy = config.DeliveryProxy{URL: in.DeliveryProxy.URL, ByName: in.DeliveryProxy.ByName}
	for _, key := range property.Spec.APIKeys {
		input.Credentials.APIKeys[key.Name] = "wk_in_the_clear_" + key.Name
	}
	for _, token := range property.Spec.AccessTokens {
		input.Credentials.AccessTokens[token.Name] = "wt_in_the_clear_" + token.Name
	}
	for _, role := range resources.Roles() {
		input.RedisURLs[role] = "redis://" + string(role) + ":rp_in_the_clear@redis:6379"
	}
	if input.Options.HistoryPending = in.HistoryPending; property.Spec.HasHistory() && !in.HistoryPending {
		input.HistoryURLs, input.HistoryPort = map[access.Role]string{}, 8443
		for _, role := range access.Roles() {
			input.HistoryURLs[role] = "https://" + string(role) + ":hp_in_the_clear@clickhouse:8443/weir_shops_shop"
		}
	}
	for _, kind := range resources.OptionalKinds() {
		for _, name := range in.Optional {
			if kind.Kind == name {
				input.Available[kind] = true
			}
		}
	}
	return input, property
}
