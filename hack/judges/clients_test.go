package judges_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/deliver/fakes"
	"github.com/weir-dev/weir/collector/platforms"
)

// clientRequest is a request that a client would have sent.
type clientRequest struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// clientsOf are the platforms' own clients: what they add of themselves, and what they leave out of what Weir sends.
var clientsOf = map[platforms.Type]struct {
	pkg, credential, token string
	adds, lacks            []string
	settings               platforms.Settings
}{
	platforms.TypeSegment: {
		pkg: "@segment/analytics-node", credential: "writeKey", token: "write-key-for-tests", settings: platforms.Settings{Segment: &platforms.Segment{}},
		// Where a message came in is one of Segment's common fields, which this client does not set.
		adds: []string{"_metadata", "integrations", "context.library"}, lacks: []string{"channel", "context.library"},
	},
	platforms.TypePostHog: {
		pkg: "posthog-node", credential: "projectToken", token: "phc_project-token-for-tests", settings: platforms.Settings{PostHog: &platforms.PostHog{}},
		adds: []string{"type", "library", "library_version", "properties.$lib", "properties.$lib_version", "properties.$is_server"}, lacks: []string{"properties.$lib"},
	},
}

// The platforms' own clients send the same message of the same call to the same address, and the fakes take what they send.
func TestThePlatformsOwnClientsSendTheSame(t *testing.T) {
	asked := map[string][]jsontext.Value{}
	golden := map[platforms.Type]goldenRequests{}
	for kind, client := range clientsOf {
		golden[kind] = goldenOf(t, kind)
		asked[client.pkg] = golden[kind].messages
	}
	input, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	made := judgeIn[map[string][]clientRequest](t, "hack/clients", "NODE_CLIENTS", "../clients/requests.mjs", input)
	for kind, client := range clientsOf {
		t.Run(string(kind), func(t *testing.T) {
			var theirs []jsontext.Value
			for _, r := range made[client.pkg] {
				if r.URL != golden[kind].url || r.Method != http.MethodPost || !strings.HasPrefix(r.Headers["content-type"], "application/json") ||
					r.Headers["authorization"] != golden[kind].authorization {
					t.Errorf("it sends %s %s with %v; Weir sends POST %s with %s", r.Method, r.URL, r.Headers, golden[kind].url, golden[kind].authorization)
				}
				var body struct {
					Batch []jsontext.Value `json:"batch"`
				}
				if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
					t.Fatal(err)
				}
				theirs = append(theirs, body.Batch...)
				takenByTheFake(t, kind, r, len(body.Batch))
			}
			if len(theirs) != len(golden[kind].messages) || len(theirs) < 20 {
				t.Fatalf("%d of %d messages are judged", len(theirs), len(golden[kind].messages))
			}
			for i := range theirs {
				want, got := without(t, theirs[i], client.adds), without(t, golden[kind].messages[i], client.lacks)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("message %d (-client +Weir):\n%s", i, diff)
				}
			}
		})
	}
}

// takenByTheFake has the platform's fake take a client's request.
func takenByTheFake(t *testing.T, kind platforms.Type, r clientRequest, messages int) {
	t.Helper()
	client := clientsOf[kind]
	account := fakes.Account{Platform: platforms.Platform{Name: "p", Type: kind, Settings: client.settings}, Credentials: map[string]string{client.credential: client.token}}
	fake, err := fakes.New(kind, []fakes.Account{account}, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	request := httptest.NewRequestWithContext(t.Context(), r.Method, r.URL, strings.NewReader(r.Body))
	for name, value := range r.Headers {
		request.Header.Set(name, value)
	}
	fake.ServeHTTP(httptest.NewRecorder(), request)
	receipt := fake.Receipts()[0]
	if receipt.Complaint != "" || len(receipt.Events) != messages {
		t.Errorf("the fake has taken %d of %d messages, and complains: %q", len(receipt.Events), messages, receipt.Complaint)
	}
	for _, e := range receipt.Events {
		if e.Refusal != "" {
			t.Errorf("the fake refuses %s of the platform's own client: %s", e.ID, e.Refusal)
		}
	}
}

// goldenRequests are what the golden pairs have Weir send.
type goldenRequests struct {
	url, authorization string
	messages           []jsontext.Value
}

func goldenOf(t *testing.T, kind platforms.Type) goldenRequests {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../../collector/deliver/adapter/testdata", strings.ToLower(string(kind)), "requests/*.out.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden pairs of %s: %v", kind, err)
	}
	var all goldenRequests
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var golden struct {
			Requests []struct {
				URL    string      `json:"url"`
				Header http.Header `json:"header"`
				Body   struct {
					Batch []jsontext.Value `json:"batch"`
				} `json:"body"`
			} `json:"requests"`
		}
		if err := json.Unmarshal(text, &golden); err != nil {
			t.Fatal(err)
		}
		for _, r := range golden.Requests {
			all.messages = append(all.messages, r.Body.Batch...)
			if strings.HasSuffix(path, "/refund.out.json") { // which has no settings
				all.url, all.authorization = r.URL, r.Header.Get("Authorization")
			}
		}
	}
	return all
}

// without is a message without members, by their paths.
func without(t *testing.T, message jsontext.Value, paths []string) map[string]any {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal(message, &tree); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		at, names := tree, strings.SplitN(path, ".", 2)
		if len(names) == 2 {
			inner, ok := tree[names[0]].(map[string]any)
			if !ok {
				t.Fatalf("%s is no object in %s", names[0], message)
			}
			at = inner
		}
		delete(at, names[len(names)-1])
	}
	return tree
}
