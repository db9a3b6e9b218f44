package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// redis runs redis-cli beside the bundled Redis, as a user of it, and returns a line or more for each command. What Redis refuses is
// in the answer.
func (s *suite) redis(t *testing.T, user, password string, commands ...string) []string {
	t.Helper()
	var input strings.Builder
	for i, command := range commands { // a mark behind each answer tells where it ends
		fmt.Fprintf(&input, "%s\nPING end-of-%d\n", command, i)
	}
	cmd := exec.CommandContext(t.Context(), "kubectl", "-n", system, "exec", "-i", "weir-redis-0", "-c", "redis", "--",
		"redis-cli", "--tls", "--cacert", "/etc/weir/redis-tls/ca.crt", "--user", user, "--pass", password, "--no-auth-warning")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+settings.kubeconfig)
	cmd.Stdin = strings.NewReader(input.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("redis-cli: %v", err)
	}
	answers, rest := make([]string, len(commands)), string(out)
	for i := range commands {
		answer, after, found := strings.Cut(rest, fmt.Sprintf("end-of-%d\n", i))
		if !found {
			t.Fatalf("redis-cli as %s: the answers end before that to %s:\n%s", user, commands[i], out)
		}
		answers[i], rest = strings.TrimSpace(answer), after
	}
	return answers
}

// administrator runs redis-cli as the operator's user.
func (s *suite) administrator(t *testing.T, commands ...string) []string {
	t.Helper()
	secret := s.secret(t, system, "weir-redis")
	return s.redis(t, string(secret["username"]), string(secret["password"]), commands...)
}

// apply makes a Property, in a namespace of its own on the node, and waits until it is Ready.
func (s *suite) apply(t *testing.T, property *v1alpha1.Property) *tenant {
	t.Helper()
	s.claim(t, property.Namespace)
	if err := s.Create(t.Context(), property); err != nil {
		t.Fatal(err)
	}
	s.settled(t, property.Namespace, property.Name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	return s.tenantOf(t, property.Name)
}

func keepsTenantsApart(t *testing.T, s *suite) {
	books := s.apply(t, s.expose(s.property("books")))
	shop := s.tenantOf(t, "shop")
	for _, pair := range [][2]*tenant{{shop, books}, {books, shop}} {
		mine, theirs := pair[0], pair[1]
		key := "default"
		if mine.name == "shop" {
			key = "first"
		}
		if status, body := theirs.send(t, mine.key(t, key), `{"event": "intruder"}`); status != http.StatusUnauthorized {
			t.Errorf("a key of %s at %s: %d %s, want 401", mine.name, theirs.name, status, body)
		}
		if status, body, err := theirs.request(t, mine.token(t), "events"); err != nil || status != http.StatusUnauthorized {
			t.Errorf("a token of %s at %s: %d %s %v, want 401", mine.name, theirs.name, status, body, err)
		}
		for _, role := range []string{"collector", "deliverer", "query"} {
			user := s.secret(t, mine.namespace, mine.name+"-redis-"+role)
			commands := []string{
				"XRANGE " + theirs.stream("events") + " - + COUNT 1", "XREAD COUNT 1 STREAMS " + theirs.stream("events") + " 0",
				"XADD " + theirs.stream("events") + " * e x", "XLEN " + theirs.stream("deliveries"), "DEL " + theirs.stream("events"),
				"CONFIG GET *", "EVAL return(1) 0", "FLUSHALL", "ACL LIST", "KEYS *", "SCRIPT FLUSH", "FUNCTION FLUSH",
			}
			answers := s.redis(t, string(user["username"]), string(user["password"]), commands...)
			for i, command := range commands {
				if !strings.HasPrefix(answers[i], "NOPERM") {
					t.Errorf("%s of %s asks Redis %s and is answered %s, want NOPERM", role, mine.name, command, answers[i])
				}
			}
		}
		// The query role may read what is its own: the refusals above are not those of a user that may nothing at all.
		user := s.secret(t, mine.namespace, mine.name+"-redis-query")
		if answer := s.redis(t, string(user["username"]), string(user["password"]), "XINFO STREAM "+mine.stream("events"))[0]; strings.Contains(answer, "NOPERM") {
			t.Errorf("query of %s asks about its own events and is answered %s", mine.name, answer)
		}
	}
	if records, err := books.list(t, "intruder"); err != nil || len(records) > 0 {
		t.Errorf("books lists %d events of an intruder, %v", len(records), err)
	}
}

// stream is the name of one of the Property's keys in Redis.
func (it *tenant) stream(name string) string {
	return fmt.Sprintf("weir:{%s/%s}:%s", it.namespace, it.name, name)
}

func obeysNetworkPolicies(t *testing.T, s *suite) {
	shop, books := s.tenantOf(t, "shop"), s.tenantOf(t, "books")
	s.claim(t, monitoring)
	s.startPeer(t, monitoring)
	s.startPeer(t, books.namespace)
	inShop, inBooks, inMonitoring := s.peerIn(t, shop.namespace), s.peerIn(t, books.namespace), s.peerIn(t, monitoring)
	addresses := map[string]string{
		"Redis":              "weir-redis." + system + ".svc.cluster.local:6379",
		"operator's health":  "weir-operator." + system + ".svc.cluster.local:8081",
		"operator's metrics": "weir-operator." + system + ".svc.cluster.local:8080",
	}
	for _, it := range []*tenant{shop, books} {
		for _, role := range []string{"collector", "deliverer", "query"} {
			pods := s.pods(t, it.namespace, roleOf(it.name, role))
			if len(pods) == 0 {
				t.Fatalf("%s has no pod of the role %s", it.name, role)
			}
			addresses[it.name+"'s "+role+" metrics"] = pods[0].Status.PodIP + ":9090"
			if role != "deliverer" {
				addresses[it.name+"'s "+role] = strings.TrimPrefix(it.service(role), "http://") + ":80"
			}
		}
	}
	peers := map[string]struct {
		*peer
		reaches []string
	}{
		"shop's":       {inShop, []string{"shop's collector", "shop's query"}},
		"books'":       {inBooks, []string{"books's collector", "books's query"}},
		"monitoring's": {inMonitoring, []string{"operator's metrics", "shop's collector metrics", "shop's deliverer metrics", "shop's query metrics", "books's collector metrics", "books's deliverer metrics", "books's query metrics"}},
	}
	refused, reached := 0, 0
	for whose, from := range peers {
		allowed := map[string]bool{}
		for _, what := range from.reaches {
			allowed[what] = true
		}
		for what, address := range addresses {
			failure := from.dial(t, address)
			switch {
			case allowed[what] && failure != "":
				t.Errorf("%s pod cannot reach %s at %s: %s", whose, what, address, failure)
			case !allowed[what] && failure == "":
				t.Errorf("%s pod reaches %s at %s", whose, what, address)
			case failure == "":
				reached++
			default:
				refused++
			}
		}
	}
	s.figure(t, "connections of three tenants' pods", "%d reached, %d refused, all as the policies say", reached, refused)
	status, body, failure := inMonitoring.request(t, http.MethodGet, "http://"+addresses["shop's collector metrics"]+"/metrics", nil, "")
	if failure != "" || status != http.StatusOK || !contains(body, "weir_") {
		t.Errorf("the collector's metrics: %d %.200s %s", status, body, failure)
	}
}

// monitoring is the namespace that may ask for metrics.
const monitoring = system + "-monitoring"

// kill ends a container's process as the kernel would: at once, without a signal that it could answer to. It returns when it is gone.
func (s *suite) kill(t *testing.T, pod *corev1.Pod, container string) {
	t.Helper()
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != container {
			continue
		}
		if _, id, found := strings.Cut(status.ContainerID, "://"); found && status.State.Running != nil {
			must(t, settings.node, "exec", "ctr", "-n", "k8s.io", "tasks", "kill", "-s", "SIGKILL", id)
			within(t, 30*time.Second, pod.Name+" notices that its container was killed", func() error {
				now := s.pod(t, pod.Namespace, pod.Name)
				for _, other := range now.Status.ContainerStatuses {
					if other.Name == container && other.RestartCount == status.RestartCount && other.State.Running != nil {
						return fmt.Errorf("it has restarted %d times, as before", other.RestartCount)
					}
				}
				return nil
			})
			return
		}
	}
	t.Fatalf("%s has no running container %s", pod.Name, container)
}
