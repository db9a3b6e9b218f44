package property_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/property"
	"github.com/weir-dev/weir/controllers/resources"
)

const (
	purchase = `{"event": "purchase", "event_id": "order-1", "client_id": "c-1", "data": {"value": "49.90", "currency": "EUR", "order_id": "1"}, "context": {"utm_source": "google", "utm_medium": "cpc"}}`
	// hostile would turn the line around, and is a name that the collect API takes.
	hostile = `{"event": "pay\u202elap", "event_id": "id\u2066-2", "client_id": "c-2"}`
	bad     = `{"event": "purchase", "event_id": "order-3", "client_id": "c-3", "data": {"currency": "EUR"}}`
)

// tokensOf are the AccessTokens that there are in the namespace.
func tokensOf(t *testing.T, namespace string) []v1alpha1.AccessToken {
	t.Helper()
	var list v1alpha1.AccessTokenList
	if err := server.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var own []v1alpha1.AccessToken
	for _, token := range list.Items {
		if token.Namespace == namespace {
			own = append(own, token)
		}
	}
	return own
}

func TestAPropertyFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := openShop(t, "people")
	ada := kubeconfig(t, s.namespace, "ada", editor...)
	s.crm.status.Store(http.StatusBadRequest)
	for _, event := range []string{purchase, hostile} {
		if status := s.send(event); status != http.StatusAccepted {
			t.Fatalf("%s is answered %d", event, status)
		}
	}
	if status := s.send(bad); status != http.StatusUnprocessableEntity {
		t.Fatalf("%s is answered %d", bad, status)
	}
	eventually(t, "both deliveries have failed", func() error {
		got := s.weir(t.Context(), ada, "events", "shop", "--status", "failed", "-o", "json")
		if strings.Count(got.stdout, `"status": "failed"`) != 2 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})

	for sentence, c := range map[string]struct {
		args []string
		want []string
		not  []string
	}{
		"events are listed with what became of them":          {[]string{"events", "shop"}, []string{"RECEIVED", "purchase", "49.9 EUR", "Paid Search", "crm:failed(http_400)", "order-1"}, nil},
		"what others wrote does not turn the terminal around": {[]string{"events", "shop"}, []string{`pay\u202elap`, `id\u2066-2`}, []string{"\u202e", "\u2066"}},
		"nor does JSON, which says the same to a program":     {[]string{"events", "shop", "-o", "json"}, []string{`pay\u202elap`, `"data": [`, `"next_cursor": null`}, []string{"\u202e", "\u2066"}},
		"a filter is the read API's":                          {[]string{"events", "shop", "--event", "purchase"}, []string{"order-1"}, []string{"lap"}},
		"fewer may be asked for":                              {[]string{"events", "shop", "--limit", "1"}, []string{"There are more"}, []string{"order-1"}},
		"what was refused is listed with why":                 {[]string{"rejections", "shop"}, []string{"collect", "default", "order-3", "The data.value field is required."}, nil},
		"and for programs":                                    {[]string{"rejections", "shop", "-o", "json"}, []string{`"event_id": "order-3"`}, nil},
		"an export has a line for each event":                 {[]string{"export", "shop"}, []string{`"event_id":"order-1"`, "\n"}, nil},
		"or is CSV":                                           {[]string{"export", "shop", "--format", "csv", "--event", "purchase"}, []string{"event_id,", "order-1"}, nil},
		"Properties are listed":                               {[]string{"status"}, []string{"PROPERTY", "shop"}, nil},
		"status says what comes in and what is refused":       {[]string{"status", "shop"}, []string{"2 events", "refused within the last hour: 1", "The data.value field is required."}, nil},
		"and what became of deliveries, with what to do":      {[]string{"status", "shop"}, []string{"crm", "Webhook", "live", "2 failed (http_400): ", "query", "1 of 1 ready"}, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			got := s.weir(t.Context(), ada, c.args...)
			if got.code != 0 || got.stderr != "" {
				t.Errorf("%+v", got)
			}
			for _, text := range c.want {
				if !strings.Contains(got.stdout, text) {
					t.Errorf("there is no %q in\n%s", text, got.stdout)
				}
			}
			for _, text := range c.not {
				if strings.Contains(got.stdout, text) {
					t.Errorf("there is %q in\n%s", text, got.stdout)
				}
			}
		})
	}
	t.Run("status for programs has a stable shape", func(t *testing.T) {
		t.Parallel()
		got := s.weir(t.Context(), ada, "status", "shop", "-o", "json")
		if want, err := os.ReadFile("testdata/status.keys"); err != nil || keysOf(t, got.stdout) != string(want) {
			t.Errorf("%v; the members are\n%s", err, keysOf(t, got.stdout))
		}
	})
}

// keysOf are the paths of a JSON document's members, sorted as they stand; the first element of lists stands for all.
func keysOf(t *testing.T, text string) string {
	t.Helper()
	var document any
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err, text)
	}
	var paths []string
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				walk(path+"."+key, value[key])
			}
		case []any:
			if len(value) > 0 {
				walk(path+"[]", value[0])
				return
			}
			paths = append(paths, path+"[]")
		default:
			paths = append(paths, path)
		}
	}
	walk("", document)
	return strings.Join(paths, "\n") + "\n"
}

func TestATokenIsMadeForACommandAndGone(t *testing.T) {
	t.Parallel()
	s := openShop(t, "tokens")
	ada := kubeconfig(t, s.namespace, "tokens-ada", editor...)
	if got := s.weir(t.Context(), ada, "events", "shop"); got.code != 0 || !strings.Contains(got.stdout, "No events in the last 24 hours") {
		t.Errorf("%+v", got)
	}
	if left := tokensOf(t, s.namespace); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	t.Run("the audit log names it", func(t *testing.T) {
		if got := s.weir(t.Context(), ada, "replay", "shop", "--platform", "crm", "--from", time.Now().UTC().Format(time.DateOnly), "--yes"); got.code != 0 || !strings.Contains(got.stdout, "0 deliveries to crm are in line again.") {
			t.Errorf("%+v", got)
		}
		if acts := s.acts.String(); !strings.Contains(acts, "accesstoken/weir-cli-") {
			t.Errorf("the audit log is\n%s", acts)
		}
	})
	t.Run("whoever may get the one Secret reads with its token and makes none", func(t *testing.T) {
		reader := kubeconfig(t, s.namespace, "tokens-reader", "get properties", "get,list pods", "create pods/portforward", "get secrets shop-credentials")
		if got := s.weir(t.Context(), reader, "events", "shop"); got.code != 0 {
			t.Errorf("%+v", got)
		}
		if got := s.weir(t.Context(), reader, "replay", "shop", "--platform", "crm", "--from", "2026-01-01", "--yes"); got.code != 1 || !strings.Contains(got.stderr, "cannot create resource") {
			t.Errorf("writing takes more: %+v", got)
		}
	})
	t.Run("a token of one's own needs nothing of the cluster", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(s.secret("access-token.default")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr buffer
		around := s.environment(&stdout, &stderr)
		got := s.weirIn(t.Context(), around, &stdout, &stderr, "/nowhere", "events", "shop", "--api", s.at("shop-query-0"), "--token-file", file)
		if got.code != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("nor one in the environment, and a wrong one is said to be so", func(t *testing.T) {
		var stdout, stderr buffer
		around := s.environment(&stdout, &stderr)
		around.Getenv = func(name string) string { return map[string]string{"WEIR_TOKEN": "wt_wrong"}[name] }
		got := s.weirIn(t.Context(), around, &stdout, &stderr, "/nowhere", "events", "shop", "--api", s.at("shop-query-0"))
		if got.code != 1 || !strings.Contains(got.stderr, "does not take the token") {
			t.Errorf("%+v", got)
		}
	})
}

func TestWhatTheCallerMayNot(t *testing.T) {
	t.Parallel()
	s := openShop(t, "rights")
	viewerOnly := kubeconfig(t, s.namespace, "rights-viewer", viewer...)
	nobody := kubeconfig(t, s.namespace, "rights-nobody")
	blind := kubeconfig(t, s.namespace, "rights-blind", "get properties")
	for sentence, c := range map[string]struct {
		user           string
		args           []string
		code           int
		stdout, stderr string
	}{
		"a viewer has status but for the numbers":     {viewerOnly, []string{"status", "shop"}, 0, `cannot create resource "pods/portforward"`, ""},
		"who sees no pods is told which right it is":  {blind, []string{"status", "shop"}, 0, `cannot list resource "pods" in API group "" in the namespace "rights"`, ""},
		"a viewer reads no events":                    {viewerOnly, []string{"events", "shop"}, 1, "", `"pods/portforward"`},
		"who may nothing is told so":                  {nobody, []string{"status", "shop"}, 1, "", `cannot get resource "properties" in API group "weir.dev" in the namespace "rights"; ask for that right`},
		"and when listing":                            {nobody, []string{"status"}, 1, "", `cannot list resource "properties"`},
		"a Property that there is not":                {viewerOnly, []string{"status", "blog"}, 1, "", "there is no Property blog in namespace rights"},
		"numbers that nobody asks for need no rights": {viewerOnly, []string{"status", "shop", "--no-numbers"}, 0, "shop", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			got := s.weir(t.Context(), c.user, c.args...)
			if got.code != c.code || !strings.Contains(got.stdout, c.stdout) || !strings.Contains(got.stderr, c.stderr) {
				t.Errorf("got %+v, want %d, %q and %q", got, c.code, c.stdout, c.stderr)
			}
		})
	}
}

func TestAPortIsForwardedByTheAPIServer(t *testing.T) {
	t.Parallel()
	s := &shop{t: t, namespace: "forwards", kubelet: startKubelet(t, "forwards")}
	server.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}},
		&v1alpha1.Property{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "shop"}, Spec: v1alpha1.PropertySpec{Currency: "EUR"}})
	ask := func(user, want string) {
		t.Helper()
		if got := s.weir(t.Context(), user, "events", "shop"); got.code != 1 || !strings.Contains(got.stderr, want) {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
	ada := kubeconfig(t, s.namespace, "forwards-ada", append([]string{"get secrets"}, editor...)...)
	ask(ada, "the Property has no query pods; its conditions say why")
	s.makePodOf("a-query", resources.Query, corev1.ConditionTrue) // which somebody has given the labels
	ask(ada, "the Property has no query pods; its conditions say why")
	s.makePod("shop-query-0", resources.Query, corev1.ConditionFalse)
	ask(ada, "none of the Property's 1 query pods is ready")
	s.makePod("shop-query-1", resources.Query, corev1.ConditionTrue)
	ask(kubeconfig(t, s.namespace, "forwards-viewer", viewer...), `forward a port to the pod shop-query-1: pods "shop-query-1" is forbidden: `+
		`User "forwards-viewer" cannot create resource "pods/portforward" in API group "" in the namespace "forwards"; ask for that right, or for a role that has it; or name the read API by --api`)
	var stdout, stderr buffer
	around := s.environment(&stdout, &stderr)
	around.Getenv = func(string) string { return "wt_any" }
	if got := s.weirIn(t.Context(), around, &stdout, &stderr, ada, "events", "shop"); got.code != 1 || !strings.Contains(got.stderr, "the read API cannot be reached") {
		t.Errorf("nobody listens in the pod: %+v", got)
	}
}

func TestReplayAsksFirst(t *testing.T) {
	t.Parallel()
	s := openShop(t, "replays")
	ada := kubeconfig(t, s.namespace, "replays-ada", editor...)
	s.crm.status.Store(http.StatusBadRequest)
	if status := s.send(purchase); status != http.StatusAccepted {
		t.Fatal(status)
	}
	eventually(t, "the delivery has failed", func() error {
		if got := s.weir(t.Context(), ada, "events", "shop", "--status", "failed"); !strings.Contains(got.stdout, "order-1") {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	today := time.Now().UTC().Format(time.DateOnly)
	answer := func(text string, args ...string) outcome {
		var stdout, stderr buffer
		around := s.environment(&stdout, &stderr)
		around.Stdin, around.Asks = strings.NewReader(text), true
		return s.weirIn(t.Context(), around, &stdout, &stderr, ada, append([]string{"replay", "shop", "--platform", "crm", "--from", today}, args...)...)
	}
	if got := answer("n\n"); got.code != 0 || got.stdout != "" || !strings.Contains(got.stderr, "1 failed and 0 expired deliveries to crm") || !strings.Contains(got.stderr, "Nothing was put back") {
		t.Errorf("%+v", got)
	}
	if got := answer(""); got.code != 1 || !strings.Contains(got.stderr, "nobody has answered") {
		t.Errorf("%+v", got)
	}
	if got := answer("", "--status", "delivered", "--yes"); got.code != 1 || !strings.Contains(got.stderr, "status") {
		t.Errorf("%+v", got)
	}
	s.crm.status.Store(http.StatusOK)
	if got := answer("yes\n"); got.code != 0 || !strings.Contains(got.stdout, "1 deliveries to crm are in line again.") {
		t.Errorf("%+v", got)
	}
	eventually(t, "it is delivered", func() error {
		if got := s.weir(t.Context(), ada, "events", "shop", "--status", "delivered"); !strings.Contains(got.stdout, "order-1") {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
}

func TestTailShowsWhatComesInOnce(t *testing.T) {
	t.Parallel()
	s := openShop(t, "tails")
	ada := kubeconfig(t, s.namespace, "tails-ada", editor...)
	send := func(n int) {
		if status := s.send(fmt.Sprintf(`{"event": "pageview", "event_id": "e-%d", "client_id": "c"}`, n)); status != http.StatusAccepted {
			t.Fatal(status)
		}
	}
	for n := range 3 {
		send(n)
	}
	eventually(t, "three are listed", func() error {
		if got := s.weir(t.Context(), ada, "events", "shop"); strings.Count(got.stdout, "pageview") != 3 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr buffer
	ended := make(chan outcome, 1)
	go func() {
		ended <- s.weirIn(ctx, s.environment(&stdout, &stderr), &stdout, &stderr, ada, "tail", "shop", "--lines", "2", "-o", "json")
	}()
	seen := func(n int) func() error {
		return func() error {
			if strings.Count(stdout.String(), fmt.Sprintf(`"event_id":"e-%d"`, n)) != 1 {
				return errors.New(stdout.String() + stderr.String())
			}
			return nil
		}
	}
	eventually(t, "the last two of before are shown", seen(2))
	for n := 3; n < 6; n++ {
		send(n)
	}
	eventually(t, "those that came in are shown", seen(5))
	for _, token := range tokensOf(t, s.namespace) {
		if err := server.Client.Delete(t.Context(), &token); err != nil {
			t.Fatal(err)
		}
	}
	send(6)
	eventually(t, "and the next, though somebody has deleted the token that was made", seen(6))
	eventually(t, "for which another was made", func() error {
		if got := tokensOf(t, s.namespace); len(got) != 1 {
			return fmt.Errorf("there are %d", len(got))
		}
		return nil
	})
	cancel()
	if got := <-ended; got.code != 0 || got.stderr != "" {
		t.Errorf("an interrupted tail ends well: %+v", got)
	}
	var ids []string
	for line := range strings.Lines(stdout.String()) {
		var event struct {
			EventID string `json:"event_id"`
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err, line)
		}
		ids = append(ids, event.EventID)
	}
	if got := strings.Join(ids, " "); got != "e-1 e-2 e-3 e-4 e-5 e-6" {
		t.Errorf("shown are %s", got)
	}
	if left := tokensOf(t, s.namespace); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAnExportIsWhatTheReadAPIExports(t *testing.T) {
	t.Parallel()
	s := openShop(t, "exports")
	ada := kubeconfig(t, s.namespace, "exports-ada", editor...)
	for n := range 5 {
		if status := s.send(fmt.Sprintf(`{"event": "page\u202eview", "event_id": "e-%d", "client_id": "c"}`, n)); status != http.StatusAccepted {
			t.Fatal(status)
		}
	}
	eventually(t, "all are exported", func() error {
		got := s.weir(t.Context(), ada, "export", "shop", "--format", "csv")
		rows, err := csv.NewReader(strings.NewReader(got.stdout)).ReadAll()
		if err != nil || len(rows) != 6 {
			return fmt.Errorf("%d rows, %w: %+v", len(rows), err, got)
		}
		return nil
	})
	if got := s.weir(t.Context(), ada, "export", "shop"); !strings.Contains(got.stdout, "page\u202eview") {
		t.Errorf("a file has what was sent: %s", got.stdout)
	}
	var stdout, stderr buffer
	around := s.environment(&stdout, &stderr)
	around.Terminal = true
	if got := s.weirIn(t.Context(), around, &stdout, &stderr, ada, "export", "shop"); strings.Contains(got.stdout, "\u202e") || !strings.Contains(got.stdout, `page\u202eview`) {
		t.Errorf("a terminal has it escaped: %s", got.stdout)
	}
}

func TestWhatIsAskedWrongly(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		args   []string
		stderr string
	}{
		"a Property has to be named":                {[]string{"events"}, "PROPERTY is missing: say which, as in kubectl weir events shop"},
		"one Property":                              {[]string{"events", "a", "b"}, "a b: one Property only"},
		"a format that there is":                    {[]string{"events", "a", "-o", "yaml"}, `--output: "yaml" must be json`},
		"of exports too":                            {[]string{"export", "a", "--format", "json"}, `--format: "json" must be ndjson or csv`},
		"at least one event":                        {[]string{"events", "a", "--limit", "0"}, "--limit: must be at least 1"},
		"no more rejections than there are":         {[]string{"rejections", "a", "--limit", "1001"}, "--limit: must be 1 to 1000"},
		"a URL without a password":                  {[]string{"events", "a", "--api", "https://user:pass@api.example.com"}, "--api: must be an http or https URL without user and query"},
		"a token is not sent in the clear":          {[]string{"events", "a", "--api", "http://api.example.com"}, "--api: must be https: by http everybody on the way could read the token"},
		"a replay says of which platform and since": {[]string{"replay", "a", "--yes"}, "--platform: must name the platform; kubectl weir status a lists them"},
		"who cannot be asked has to agree before":   {[]string{"replay", "a", "--platform", "crm", "--from", "2026-01-01"}, "--yes: must be given where nobody can be asked"},
		"all namespaces are for lists":              {[]string{"status", "a", "-A"}, "--all-namespaces: lists Properties, and goes with no name"},
		"a flag that there is not":                  {[]string{"tail", "a", "--follow"}, `flag provided but not defined: -follow; "kubectl weir tail -h" lists the flags`},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			s := &shop{t: t}
			got := s.weir(t.Context(), "/nowhere", c.args...)
			if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, c.stderr) {
				t.Errorf("got %+v, want 2 and %q", got, c.stderr)
			}
		})
	}
}

// TestEveryReasonHasAdvice keeps what people are told to do in step with the conditions that there are.
func TestEveryReasonHasAdvice(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") || spec.Names[0].Name == "ReasonReady" {
			return true
		}
		count++
		reason := strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`)
		if property.AdviceOf(reason) == "" {
			t.Errorf("advice.go says nothing of %s", reason)
		}
		return true
	})
	if count < 40 {
		t.Errorf("found only %d reasons", count)
	}
}
