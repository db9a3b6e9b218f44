package property_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers/resources"
)

// finding is a check as programs read it.
type finding struct {
	Check, Verdict, Seen, Advice string
}

// doctor runs it for programs.
func (s *shop) doctor(user string, args ...string) (findings []finding, got outcome) {
	s.t.Helper()
	got = s.weir(s.t.Context(), user, append([]string{"doctor", "shop", "-o", "json"}, args...)...)
	var answer struct {
		Data   []finding `json:"data"`
		Failed int       `json:"failed"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil {
		s.t.Fatalf("%v: %+v", err, got)
	}
	bad := 0
	for _, f := range answer.Data {
		if f.Verdict == "failed" {
			bad++
		}
	}
	if bad != answer.Failed || (bad > 0) != (got.code == 1) {
		s.t.Errorf("%d have failed, told are %d, and the exit code is %d", bad, answer.Failed, got.code)
	}
	return answer.Data, got
}

// eventuallyFinds waits until a check has a verdict, and says and advises what is wanted.
func (s *shop) eventuallyFinds(user, check, verdict, seen, advice string) {
	s.t.Helper()
	eventually(s.t, check+" is "+verdict, func() error {
		findings, _ := s.doctor(user)
		i := slices.IndexFunc(findings, func(f finding) bool { return f.Check == check && f.Verdict == verdict })
		if i < 0 {
			return fmt.Errorf("%+v", findings)
		}
		if !strings.Contains(findings[i].Seen, seen) || !strings.Contains(findings[i].Advice, advice) {
			return fmt.Errorf("%+v", findings[i])
		}
		return nil
	})
}

// rollOut does what the cluster's controllers would: Deployments are available, and Services have endpoints.
func (s *shop) rollOut() {
	s.t.Helper()
	for _, suffix := range []resources.Role{resources.Collector, resources.Deliverer, resources.Query} {
		deployment := &appsv1.Deployment{}
		eventually(s.t, "the Deployment is there", func() error {
			if err := server.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "shop-" + string(suffix)}, deployment); err != nil {
				return err
			}
			n := ptr.Deref(deployment.Spec.Replicas, 1)
			deployment.Status = appsv1.DeploymentStatus{
				ObservedGeneration: deployment.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
				Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
			}
			return server.Client.Status().Update(s.t.Context(), deployment)
		})
	}
	for _, service := range []string{"shop-collector", "shop-query"} {
		server.Create(s.t, &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: s.namespace, Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		})
	}
	s.makePod("shop-collector-1", resources.Collector, corev1.ConditionTrue)
	s.kubelet.listens(s.namespace, "shop-collector-1", 9090, s.kubelet.address(s.namespace+"/shop-collector-0", "9090"))
}

func TestTheDoctorFindsNothingWhereNothingIsWrong(t *testing.T) {
	t.Parallel()
	s := openShop(t, "healthy")
	s.rollOut()
	ada := kubeconfig(t, s.namespace, "healthy-ada", append([]string{"get secrets crm", "list apikeys"}, editor...)...)
	if status := s.send(purchase); status != http.StatusAccepted {
		t.Fatal(status)
	}
	eventually(t, "everything is fine", func() error {
		findings, got := s.doctor(ada)
		for _, f := range findings {
			if f.Verdict != "ok" || f.Advice != "" {
				return fmt.Errorf("%+v", f)
			}
		}
		if got.code != 0 || len(findings) < 20 {
			return fmt.Errorf("only %d checks: %+v", len(findings), got)
		}
		return nil
	})
	got := s.weir(t.Context(), ada, "doctor", "shop")
	for _, text := range []string{"ok       your rights", "ok       redis from shop-collector-0: ok", "ok       redis from shop-query-0: connected", "ok       Secret crm: has signingSecret", "ok       platform crm", ", 0 warnings, 0 failed, 0 not seen"} {
		if !strings.Contains(got.stdout, text) {
			t.Errorf("there is no %q in\n%s", text, got.stdout)
		}
	}
}

func TestTheDoctorNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := openShop(t, "ill")
	ada := kubeconfig(t, s.namespace, "ill-ada", append([]string{"get secrets crm", "list apikeys"}, editor...)...)

	s.eventuallyFinds(ada, "condition WorkloadsAvailable", "failed", "Progressing", "Wait")
	s.eventuallyFinds(ada, "Service shop-query", "failed", "0 endpoints are ready", "No pod of it is ready")
	s.eventuallyFinds(ada, "pods of the collector", "warning", "1 of 2 ready", "kubectl describe pod")

	s.makePod("shop-query-9", resources.Query, corev1.ConditionFalse)
	s.eventuallyFinds(ada, "pods of the query", "ok", "shop-query-9: containers with unready status", "")
	s.eventuallyFinds(ada, "from shop-query-9", "not_seen", "does not answer", "")

	if status := s.send(bad); status != http.StatusUnprocessableEntity {
		t.Fatal(status)
	}
	s.eventuallyFinds(ada, "refused events", "warning", "1 within the last hour", "kubectl weir rejections shop")

	s.crm.status.Store(http.StatusUnauthorized)
	for n := range 8 {
		if status := s.send(fmt.Sprintf(`{"event": "lead", "event_id": "l-%d", "client_id": "c"}`, n)); status != http.StatusAccepted {
			t.Fatal(status)
		}
	}
	s.eventuallyFinds(ada, "platform crm", "failed", "paused: CredentialsRejected", "")
	s.eventuallyFinds(ada, "platform crm from shop-deliverer-0", "failed", "paused: unauthorized", "Put a new credential into the Secret")

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "crm"}}
	if err := server.Client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	s.eventuallyFinds(ada, "Secret crm", "failed", "is not there", "Make it, with the keys signingSecret")

	property := &v1alpha1.Property{}
	eventually(t, "the Property is exposed", func() error {
		if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "shop"}, property); err != nil {
			return err
		}
		property.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: "collect.shop.invalid"}
		return server.Client.Update(t.Context(), property)
	})
	s.eventuallyFinds(ada, "DNS of collect.shop.invalid", "failed", "this machine does not find it", "Make a record")
	s.eventuallyFinds(ada, "Ingress shop-collector", "warning", "address -", "No controller has given it an address")
}

func TestTheDoctorSaysWhatItMayNotSee(t *testing.T) {
	t.Parallel()
	s := openShop(t, "unseen")
	blind := kubeconfig(t, s.namespace, "unseen-blind", "get properties")
	findings, got := s.doctor(blind)
	for check, seen := range map[string]string{
		"your rights":     "missing: list pods, list deployments of apps",
		"pods":            `cannot list resource "pods"`,
		"Service":         `cannot get resource "services"`,
		"NetworkPolicies": `cannot list resource "networkpolicies"`,
		"Secret crm":      "you may not get it",
		"read API":        `cannot list resource "pods"`,
	} {
		if !slices.ContainsFunc(findings, func(f finding) bool { return strings.HasPrefix(f.Check, check) && strings.Contains(f.Seen, seen) }) {
			t.Errorf("nothing says %s: %q in %+v", check, seen, findings)
		}
	}
	if slices.ContainsFunc(findings, func(f finding) bool { return f.Check == "pods" && f.Verdict == "failed" }) {
		t.Errorf("what is not seen is not wrong: %+v", got)
	}
}

func TestTheDoctorMissesTheOperator(t *testing.T) {
	t.Parallel()
	s := &shop{t: t, namespace: "unserved"}
	server.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	p := &v1alpha1.Property{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "shop"}, Spec: v1alpha1.PropertySpec{Currency: "EUR"}}
	server.Create(t, p)
	user := kubeconfig(t, s.namespace, "unserved-ada", editor...)
	findings, got := s.doctor(user)
	if !slices.ContainsFunc(findings, func(f finding) bool {
		return f.Check == "operator" && f.Verdict == "failed" && strings.Contains(f.Advice, "watchNamespaces")
	}) {
		t.Errorf("%+v", findings)
	}
	if got.code != 1 || !strings.Contains(got.stderr, "checks have failed") {
		t.Errorf("%+v", got)
	}
}

func TestTheDoctorAsksAPlatform(t *testing.T) {
	t.Parallel()
	s := openShop(t, "asked")
	ada := kubeconfig(t, s.namespace, "asked-ada", editor...)
	for sentence, row := range map[string]struct {
		answers int
		args    []string
		code    int
		has     []string
	}{
		"one that takes the event": {
			http.StatusOK, nil, 0, []string{"crm (Webhook): accepted", "weir.test", "sent: POST http", "answered: 200 after"},
		},
		"one that does not": {
			http.StatusBadRequest, nil, 1, []string{"crm (Webhook): refused", "reason: ", "answered: 400 after", "the test event for crm: refused"},
		},
		"for programs": {
			http.StatusOK, []string{"-o", "json"}, 0, []string{`"verdict": "accepted"`, `"type": "Webhook"`},
		},
		"with a code that the type does not take": {
			http.StatusOK, []string{"--test-event-code", "TEST1"}, 1, []string{"test_event_code"},
		},
	} {
		s.crm.status.Store(int32(row.answers))
		got := s.weir(t.Context(), ada, append([]string{"doctor", "shop", "--platform", "crm"}, row.args...)...)
		for _, want := range row.has {
			if got.code != row.code || !strings.Contains(got.stdout+got.stderr, want) {
				t.Errorf("%s: %+v, want %d and %q", sentence, got, row.code, want)
			}
		}
	}
	if got := s.weir(t.Context(), ada, "doctor", "shop", "--platform", "nobody"); got.code != 1 || !strings.Contains(got.stderr, "platform is invalid") {
		t.Errorf("a platform that there is not: %+v", got)
	}
	if got := s.weir(t.Context(), ada, "doctor", "shop", "--test-event-code", "X"); got.code != 2 || !strings.Contains(got.stderr, "--platform") {
		t.Errorf("a code without a platform: %+v", got)
	}
}
