package netpol

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

// cluster is what every case's policies apply to: a shop's Redis, its client and a stranger in another namespace.
func cluster() State {
	pod := func(namespace, name, address string, ports ...corev1.ContainerPort) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: ports}}},
			Status:     corev1.PodStatus{PodIP: address, Phase: corev1.PodRunning},
		}
	}
	named := func(number int32) corev1.ContainerPort {
		return corev1.ContainerPort{Name: "serve", ContainerPort: number, Protocol: corev1.ProtocolTCP}
	}
	finished := pod("shop", "client", "10.244.0.9")
	finished.Name, finished.Status.Phase = "job", corev1.PodSucceeded
	onNode := pod("shop", "client", "10.250.0.2")
	onNode.Name, onNode.Spec.HostNetwork = "agent", true
	return State{
		Pods: []corev1.Pod{
			pod("other", "client", "10.244.0.7", named(9000)),
			pod("shop", "redis", "10.244.0.5", named(6379)),
			pod("shop", "client", "10.244.0.6", named(8080)),
			finished, onNode,
			{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "waiting"}},
		},
		Namespaces: []corev1.Namespace{
			{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{"team": "other"}}},
		},
	}
}

// Each testdata/NAME.in.yaml is a list of policies; NAME.out.nft is what the kernel gets for them.
func TestPoliciesBecomeRules(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".in.yaml"), func(t *testing.T) {
			content, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			state := cluster()
			var policies networkingv1.NetworkPolicyList
			if err := yaml.UnmarshalStrict(content, &policies); err != nil {
				t.Fatal(err)
			}
			state.Policies = policies.Items
			got, err := Ruleset(state)
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(input, ".in.yaml") + ".out.nft"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRulesDoNotDependOnTheOrderOfWhatIsListed(t *testing.T) {
	state := cluster()
	everything := networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}
	state.Policies = []networkingv1.NetworkPolicy{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}, Spec: everything},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}, Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: everything.PolicyTypes, Ingress: []networkingv1.NetworkPolicyIngressRule{{}},
		}},
	}
	want, err := Ruleset(state)
	if err != nil {
		t.Fatal(err)
	}
	state.Pods[0], state.Pods[2] = state.Pods[2], state.Pods[0]
	state.Policies[0], state.Policies[1] = state.Policies[1], state.Policies[0]
	got, err := Ruleset(state)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-in order +reordered):\n%s", diff)
	}
}

func TestAnErrorNamesThePolicy(t *testing.T) {
	state := cluster()
	state.Policies = []networkingv1.NetworkPolicy{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "odd"},
		Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Resembles"}},
		}},
	}}
	if _, err := Ruleset(state); err == nil || !strings.Contains(err.Error(), "shop/odd") {
		t.Errorf("error %v, want one that names shop/odd", err)
	}
}
