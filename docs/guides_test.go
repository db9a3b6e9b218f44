package docs_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/event/envelope"
)

// runtimes are the languages whose examples are run. `make examples` names all of them; a runtime that is named and not
// there is a failure.
var runtimes = flag.String("runtimes", "go", "languages of the guides whose examples are run, with commas between them")

// languages say how an example is run: its file, and the command line around it.
var languages = map[string]struct {
	file    string
	command []string
}{
	"go":     {"main.go", []string{"go", "run", "main.go"}},
	"js":     {"main.mjs", []string{"node", "main.mjs"}},
	"python": {"main.py", []string{"python3", "main.py"}},
	"php":    {"main.php", []string{"php", "main.php"}},
	"ruby":   {"main.rb", []string{"ruby", "main.rb"}},
	"java":   {"Main.java", []string{"java", "Main.java"}},
}

// example writes the example of a guide in one language to a folder, and is the command that runs it.
func example(t *testing.T, guide, language string, environment ...string) *exec.Cmd {
	t.Helper()
	text, err := os.ReadFile(path.Join("guides", guide))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) != 1 {
		t.Fatalf("%s has %d examples in %s, want 1", guide, len(blocks), language)
	}
	how, dir := languages[language], t.TempDir()
	if err := os.WriteFile(path.Join(dir, how.file), blocks[0][1], 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, how.command[0], how.command[1:]...)
	command.Dir = dir
	command.Env = append(os.Environ(), environment...)
	command.WaitDelay = time.Second
	return command
}

// chosen are the languages of the flag.
func chosen(t *testing.T) []string {
	t.Helper()
	names := strings.Split(*runtimes, ",")
	for _, name := range names {
		if _, ok := languages[name]; !ok {
			t.Fatalf("no guide has examples in %q", name)
		}
	}
	return names
}

// TestEveryGuideHasEveryLanguage looks at all six, whatever can be run here.
func TestEveryGuideHasEveryLanguage(t *testing.T) {
	for _, guide := range []string{"send-events.md", "verify-a-webhook.md"} {
		for language := range languages {
			example(t, guide, language)
		}
	}
}

// collector answers as a collector does on a bad day, and keeps what it was sent.
type collector struct {
	mutex   sync.Mutex
	answers []int // 0 breaks the connection
	bodies  []string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	status := c.answers[min(len(c.bodies), len(c.answers)-1)]
	c.bodies = append(c.bodies, string(body))
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	fmt.Fprint(w, `{"ok": true}`)
}

// TestTheExamplesThatSendEvents runs them against a collector that fails, and one that refuses.
func TestTheExamplesThatSendEvents(t *testing.T) {
	tests := map[string]struct {
		answers []int
		want    int // attempts
		fails   bool
	}{
		"what was accepted is sent once":                             {[]int{202}, 1, false},
		"what was not answered or not stored is sent again as it is": {[]int{503, 0, 202}, 3, false},
		"what is wrong is reported, and not sent again":              {[]int{422}, 1, true},
	}
	for _, language := range chosen(t) {
		for name, test := range tests {
			t.Run(language+"/"+name, func(t *testing.T) {
				t.Parallel()
				sink := &collector{answers: test.answers}
				server := httptest.NewServer(sink)
				defer server.Close()
				command := example(t, "send-events.md", language, "WEIR_URL="+server.URL+"/collect/wk_test")
				output, err := command.CombinedOutput()
				if (err != nil) != test.fails {
					t.Fatalf("%v: %s", err, output)
				}
				if test.fails && !bytes.Contains(output, []byte("422")) {
					t.Errorf("the status is not reported: %s", output)
				}
				if len(sink.bodies) != test.want {
					t.Fatalf("%d attempts, want %d: %s", len(sink.bodies), test.want, output)
				}
				for _, body := range sink.bodies {
					if body != sink.bodies[0] {
						t.Errorf("sent %s and then %s", sink.bodies[0], body)
					}
				}
				sent := new(envelope.Envelope)
				if err := sent.Decode([]byte(sink.bodies[0])); err != nil {
					t.Fatal(err)
				}
				if _, errs := sent.Validate(time.Now(), nil); len(errs) > 0 {
					t.Errorf("a collector refuses %s: %v", sink.bodies[0], errs)
				}
				if !strings.Contains(sink.bodies[0], `"event_id"`) {
					t.Errorf("no event_id: %s", sink.bodies[0])
				}
			})
		}
	}
}

const (
	webhookSecret = "whsec_d2VpciBzYW1wbGUsIG5vdCBhIHNlY3JldCBhdCBhbGw="
	webhookBody   = `{"type": "purchase", "data": {"content_name": "Büroleuchte", "value": 49.90}}`
)

// sign is the signature of Standard Webhooks.
func sign(t *testing.T, secret, id, moment, body string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	sum := hmac.New(sha256.New, key)
	fmt.Fprintf(sum, "%s.%s.%s", id, moment, body)
	return "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))
}

// receiver starts the example of a webhook's receiver and is its URL.
func receiver(t *testing.T, language string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	listener.Close()
	command := example(t, "verify-a-webhook.md", language, "PORT="+port, "WEBHOOK_SECRET="+webhookSecret)
	if language == "php" {
		command.Args = []string{"php", "-S", address, languages["php"].file}
	}
	if language == "go" { // go run does not pass on the signal that ends it
		build := exec.CommandContext(t.Context(), "go", "build", "-o", "hook", languages["go"].file)
		build.Dir = command.Dir
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		command.Path, command.Args = path.Join(command.Dir, "hook"), []string{"hook"}
	}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-ticker.C {
		if connection, err := net.Dial("tcp", address); err == nil {
			connection.Close()
			return "http://" + address + "/hook"
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing listens at %s: %s", address, output.String())
		}
	}
}

// TestTheExamplesThatVerifyWebhooks asks the receivers of the guide.
func TestTheExamplesThatVerifyWebhooks(t *testing.T) {
	now := strconv.FormatInt(time.Now().Unix(), 10)
	old := strconv.FormatInt(time.Now().Add(-6*time.Minute).Unix(), 10)
	other := "whsec_" + base64.StdEncoding.EncodeToString([]byte("somebody else's secret, as long"))
	right := sign(t, webhookSecret, "msg_1", now, webhookBody)
	tests := map[string]struct {
		id, moment, signatures, body string
		want                         int
	}{
		"what is signed is taken":                           {"msg_1", now, right, webhookBody, 204},
		"one of two signatures suffices":                    {"msg_1", now, sign(t, other, "msg_1", now, webhookBody) + " " + right, webhookBody, 204},
		"another secret's signature is refused":             {"msg_1", now, sign(t, other, "msg_1", now, webhookBody), webhookBody, 401},
		"another body is refused":                           {"msg_1", now, right, webhookBody + " ", 401},
		"another id is refused":                             {"msg_2", now, right, webhookBody, 401},
		"a request that is sent again minutes later is not": {"msg_1", old, sign(t, webhookSecret, "msg_1", old, webhookBody), webhookBody, 401},
		"a time that is none is refused":                    {"msg_1", "now", sign(t, webhookSecret, "msg_1", "now", webhookBody), webhookBody, 401},
		"no signature is refused":                           {"msg_1", now, "", webhookBody, 401},
	}
	for _, language := range chosen(t) {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			url := receiver(t, language)
			for name, test := range tests {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(test.body))
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("webhook-id", test.id)
				request.Header.Set("webhook-timestamp", test.moment)
				if test.signatures != "" {
					request.Header.Set("webhook-signature", test.signatures)
				}
				answer, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				answer.Body.Close()
				if answer.StatusCode != test.want {
					t.Errorf("%s: %s, want %d", name, answer.Status, test.want)
				}
			}
		})
	}
}
