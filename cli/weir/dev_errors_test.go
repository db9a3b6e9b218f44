package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDevErrors starts `weir dev` with wrong input: it must end at once, with a line per error that names
// where it is and what would be right.
func TestDevErrors(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := write("good.yaml", "apiVersion: weir.dev/v1alpha1\nkind: Property\nmetadata: {name: shop}\nspec: {currency: EUR}\n")
	bad := write("bad.yaml", `apiVersion: weir.dev/v1alpha1
kind: Property
metadata: {name: shop}
spec:
  currency: euro
  colour: blue
  platforms:
  - {name: crm, type: Webhook, webhook: {url: "https://crm.example.com/"}, credentialsSecretRef: {name: absent}}
`)
	secretless := write("secretless.yaml", `apiVersion: weir.dev/v1alpha1
kind: Property
metadata: {name: shop}
spec:
  currency: EUR
  platforms:
  - {name: crm, type: Webhook, webhook: {url: "https://crm.example.com/"}, credentialsSecretRef: {name: absent}}
`)
	archived := write("archived.yaml", "apiVersion: weir.dev/v1alpha1\nkind: Property\nmetadata: {name: shop}\nspec: {currency: EUR, history: {type: ClickHouse}}\n")
	clustered := write("clustered.yaml", `apiVersion: weir.dev/v1alpha1
kind: Property
metadata: {name: shop, annotations: {weir.dev/paused: "true"}}
spec: {currency: EUR, redis: {dedicated: {memory: 256Mi, storage: 1Gi}}}
`)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	for _, test := range []struct {
		name string
		args []string
		code int
		// want has a line per line of output, with what must stand in it, parted by "…".
		want []string
	}{
		{"no file", nil, 2, []string{"-f: at least one Property file is needed"}},
		{"an unknown flag", []string{"-f", good, "--port", "80"}, 2, []string{"-port…-h"}},
		{"several wrong flags", []string{"-f", good, "--listen", "8080", "--roles", "collect,fly", "--egress-allow-cidr", "10/8", "--platform-endpoint", "Log=x", "--consent-when-absent", "drop"}, 2,
			[]string{`--listen: "8080"…127.0.0.1:8080`, `--roles: "fly"…collect, deliver, query and archive`, `--egress-allow-cidr: "10/8"…10.0.0.0/8`, `--consent-when-absent: "drop"…Send or Withhold`, "--platform-endpoint: \"Log\"…Meta"}},
		{"a file that is not there", []string{"-f", filepath.Join(folder, "absent.yaml")}, 2, []string{"absent.yaml…no such file"}},
		{"an invalid Property", []string{"-f", bad}, 2, []string{"bad.yaml…spec.colour…is no field here", "bad.yaml…spec.currency…ISO 4217"}},
		{"a missing Secret", []string{"-f", secretless}, 2, []string{"secretless.yaml…spec.platforms[0].credentialsSecretRef…absent"}},
		{"a port in use", []string{"-f", good, "--listen", taken.Addr().String()}, 1, []string{taken.Addr().String() + " is in use by process…--listen 127.0.0.1:"}},
		{"a Redis that does not answer", []string{"-f", good, "--listen", "127.0.0.1:0", "--redis", "redis://:secret@127.0.0.1:1/0"}, 1, []string{"--redis: …connection refused; start that Redis or name another…redis://127.0.0.1:6379"}},
		{"what only an operator heeds, and the same", []string{"-f", clustered, "--listen", "127.0.0.1:0", "--redis", "redis://:secret@127.0.0.1:1/0"}, 1,
			[]string{"WARN…is left alone…weir.dev/paused…default/shop", "WARN…spec.redis.dedicated is left alone…default/shop", "--redis: …connection refused"}},
		{"a ClickHouse that does not answer", []string{"-f", good, "--listen", "127.0.0.1:0", "--clickhouse", "http://admin:secret@127.0.0.1:1"}, 1, []string{"--clickhouse: Property default/shop: ClickHouse cannot be reached"}},
		{"a ClickHouse URL that is none", []string{"-f", good, "--clickhouse", "clickhouse://u:secret@h"}, 2, []string{"--clickhouse: the ClickHouse URL must look like…https://"}},
		{"authorities of no ClickHouse", []string{"-f", good, "--clickhouse", "own", "--clickhouse-ca-file", "absent"}, 2, []string{"--clickhouse-ca-file: goes with the URL"}},
		{"a history in the operator's ClickHouse", []string{"-f", archived}, 2, []string{"archived.yaml: Property default/shop: spec.history: …--clickhouse own"}},
		{"a Redis URL that is none", []string{"-f", good, "--listen", "127.0.0.1:0", "--redis", "http://u:secret@h"}, 1, []string{"--redis: …redis://"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), append([]string{"dev", "--state-dir", filepath.Join(t.TempDir(), "state")}, test.args...), &stdout, &stderr)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
			if len(lines) != len(test.want) {
				t.Fatalf("got %d lines, want %d:\n%s", len(lines), len(test.want), stderr.String())
			}
			for i, want := range test.want {
				for part := range strings.SplitSeq(want, "…") {
					if !strings.Contains(lines[i], part) {
						t.Errorf("line %d lacks %q: %s", i+1, part, lines[i])
					}
				}
			}
			if strings.Contains(stderr.String(), "secret@") {
				t.Error("the password stands in the error")
			}
		})
	}
}

func TestStateDirIsForOneAtATime(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	first, err := openStateDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openStateDir(folder); err == nil || !strings.Contains(err.Error(), "in use by another weir dev") {
		t.Errorf("the second got %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := openStateDir(folder)
	if err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
