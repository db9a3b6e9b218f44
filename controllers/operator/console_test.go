package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/controllers/console"
)

// needed are the flags without which the console does not start.
func needed(t *testing.T) []string {
	t.Helper()
	return []string{"--url=https://console.example.com", "--oidc-issuer-url=https://login.example.com/realm", "--oidc-client-id=weir", "--signing-keys-file=/keys/keys.json"}
}

func TestEveryFlagOfTheConsoleIsRead(t *testing.T) {
	secret, authorities := filepath.Join(t.TempDir(), "secret"), filepath.Join(t.TempDir(), "ca.crt")
	for _, file := range []string{secret, authorities} {
		if err := os.WriteFile(file, []byte("text\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := parseConsoleFlags(append(needed(t), "--listen=:1", "--health-listen=:2", "--oidc-client-secret-file="+secret, "--oidc-scope=a", "--oidc-scope=b",
		"--oidc-username-claim=name", "--oidc-username-prefix=u:", "--oidc-groups-claim=roles", "--oidc-groups-prefix=g:", "--oidc-ca-file="+authorities,
		"--watch-namespace=b", "--watch-namespace=a", "--watch-namespace=b", "--operator-class=blue", "--session-max-age=2h", "--drain-delay=1s"), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	want := consoleOptions{
		listen: ":1", healthListen: ":2", watchNamespaces: []string{"a", "b"}, drainDelay: time.Second,
		Options: console.Options{
			URL: &url.URL{Scheme: "https", Host: "console.example.com", Path: "/"}, SigningKeysFile: "/keys/keys.json", SessionMaxAge: 2 * time.Hour, OperatorClass: "blue",
			Provider: console.Provider{
				Issuer: "https://login.example.com/realm", ClientID: "weir", ClientSecretFile: secret, Scopes: []string{"openid", "a", "b"},
				Claims: console.Claims{Username: "name", UsernamePrefix: "u:", Groups: "roles", GroupsPrefix: "g:"}, Authorities: []byte("text\n"),
			},
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(consoleOptions{}), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Now" || p.Last().String() == ".Dial" }, cmp.Ignore())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, err = parseConsoleFlags(needed(t), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if p := got.Provider; p.Claims != (console.Claims{Username: "sub", UsernamePrefix: "https://login.example.com/realm#", Groups: "groups"}) ||
		strings.Join(p.Scopes, " ") != "openid profile email groups" || got.SessionMaxAge != time.Hour || got.listen != ":8080" || got.healthListen != ":8081" {
		t.Errorf("by default: got %+v", got)
	}
}

func TestFlagsOfTheConsoleThatAreRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		flag, want string // want begins the line; "" for none
	}{
		"nothing":                           {"", ""},
		"http on the machine itself":        {"--url=http://localhost:8080/", ""},
		"http elsewhere":                    {"--url=http://console.example.com", "--url: must be https"},
		"a page below a path":               {"--url=https://example.com/weir/", "--url: must be https and a host without a path"},
		"a password in the URL":             {"--url=https://a:b@example.com", "--url: must be https"},
		"a query in the URL":                {"--url=https://example.com/?a", "--url: must be https"},
		"no URL":                            {"--url=", "--url: must be https"},
		"a provider by http":                {"--oidc-issuer-url=http://login.example.com", "--oidc-issuer-url: must be the provider's https URL"},
		"no provider":                       {"--oidc-issuer-url=", "--oidc-issuer-url: must be"},
		"no client":                         {"--oidc-client-id=", "--oidc-client-id: must be"},
		"a secret that is not there":        {"--oidc-client-secret-file=/nowhere", "--oidc-client-secret-file: must be a file"},
		"a secret that is empty":            {"--oidc-client-secret-file=" + empty, "--oidc-client-secret-file: must be a file"},
		"authorities that are not there":    {"--oidc-ca-file=/nowhere", "--oidc-ca-file: open /nowhere"},
		"names that would be the cluster's": {"--oidc-username-prefix=system:", "--oidc-username-prefix: must not begin with system:"},
		"a prefix that is empty, as one that is absent": {"--oidc-username-prefix=", ""},
		"groups that would be the cluster's":            {"--oidc-groups-prefix=system:serviceaccounts:", "--oidc-groups-prefix: must not begin with system:"},
		"no claim for the name":                         {"--oidc-username-claim=", "--oidc-username-claim: must name a claim"},
		"no claim for groups":                           {"--oidc-groups-claim=", ""},
		"a session of a minute":                         {"--session-max-age=1m", "--session-max-age: 1m0s must be 5m to 12h"},
		"a session of a day":                            {"--session-max-age=24h", "--session-max-age: 24h0m0s must be 5m to 12h"},
		"no keys":                                       {"--signing-keys-file=", "--signing-keys-file: must name a file"},
		"an address without a port":                     {"--listen=localhost", "--listen: "},
		"a word":                                        {"word", `"word" is no flag`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			args := needed(t)
			if tt.flag != "" {
				args = append(args, tt.flag)
			}
			var stdout, stderr bytes.Buffer
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := parseConsoleFlags(args, &stdout)
			if tt.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if code := Run(ctx, "v0", append([]string{"console"}, args...), &stdout, &stderr); code != 2 || !strings.HasPrefix(stderr.String(), "weir-operator: "+tt.want) {
				t.Errorf("got %d %s, want 2 %s", code, stderr.String(), tt.want)
			}
		})
	}
}

// TestTheConsoleServesAClusterAsAProcess runs it with the rights that the chart gives it, while its provider is away and before the
// operator has made its keys.
func TestTheConsoleServesAClusterAsAProcess(t *testing.T) {
	c := startTestCluster(t)
	c.run("apply", "--server-side", "-f", "../../config/crd/bases")
	c.established("crd/properties.weir.dev", "crd/accesstokens.weir.dev", "crd/apikeys.weir.dev")
	c.run("create", "namespace", "weir-system")
	c.run("create", "serviceaccount", "-n", "weir-system", "weir-console")
	c.run("apply", "-f", "../../config/rbac/console_role.yaml")
	c.run("create", "clusterrole", "weir-console-reviews", "--verb=create", "--resource=subjectaccessreviews.authorization.k8s.io")
	for _, role := range []string{"weir-console", "weir-console-reviews"} {
		c.run("create", "clusterrolebinding", role, "--clusterrole="+role, "--serviceaccount=weir-system:weir-console")
	}
	keys := filepath.Join(t.TempDir(), "keys.json")
	o := &operatorProcess{t: t, metrics: "http://" + freePort(t), health: "http://" + freePort(t), exited: make(chan struct{})}
	o.command = exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "console", "--url="+o.metrics, "--oidc-issuer-url=https://127.0.0.1:1", "--oidc-client-id=weir",
		"--signing-keys-file="+keys, "--listen="+strings.TrimPrefix(o.metrics, "http://"), "--health-listen="+strings.TrimPrefix(o.health, "http://"), "--drain-delay=0s")
	o.command.Env = append(os.Environ(), asOperator+"=1", "KUBECONFIG="+c.tokenFor("weir-system", "weir-console"))
	o.command.Stdout, o.command.Stderr = &o.log, &o.log
	if err := o.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(o.exited)
		_ = o.command.Wait() // the code says it
		o.code = o.command.ProcessState.ExitCode()
	}()
	t.Cleanup(func() { o.end(syscall.SIGKILL) })
	await(t, "it lives", func() bool { return o.get(o.health+"/healthz") == `{"status":"ok"}` })
	await(t, "it is not ready for want of keys alone", func() bool {
		_, body := o.ask(o.health + "/readyz")
		return strings.Contains(body, `"cache":"ok"`) && strings.Contains(body, "has no keys yet")
	})
	text, err := json.Marshal([]auth.SigningKey{auth.NewSigningKey(time.Now())})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keys, text, 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, "it is ready", func() bool { return o.get(o.health+"/readyz") != "" })
	if page := o.get(o.metrics + "/"); !strings.Contains(page, "<title>") {
		t.Errorf("the page is %s", page)
	}
	for path, want := range map[string]int{"/session": http.StatusUnauthorized, "/api/properties": http.StatusUnauthorized, "/login": http.StatusServiceUnavailable} {
		if status, body := o.ask(o.metrics + path); status != want {
			t.Errorf("%s: got %d %s, want %d", path, status, body, want)
		}
	}
	await(t, "the log says that the provider is away", func() bool { return strings.Contains(o.log.String(), "nobody can sign in") })
	metrics := o.get(o.health + "/metrics")
	for _, want := range []string{`weir_console_sign_ins_total{outcome="unavailable"} 1`, "weir_console_sessions 0", `weir_http_request_duration_seconds_count{code="401",route="/session"} 1`, "go_goroutines"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s is not in the metrics", want)
		}
	}
	o.fine()
	if code := o.end(syscall.SIGTERM); code != 0 {
		t.Errorf("it ends with %d:\n%s", code, o.log.String())
	}
}

// ask returns the status and body of what an address answers.
func (o *operatorProcess) ask(address string) (int, string) {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		o.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(answer.Body); err != nil {
		return 0, ""
	}
	return answer.StatusCode, body.String()
}
