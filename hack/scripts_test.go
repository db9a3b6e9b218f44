// Package hack_test runs the scripts of a release against stand-ins for registries and cosign.
package hack_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// checkout copies what the scripts read and write into a folder.
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"Dockerfile", "charts/weir/values.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, name), string(text), 0o600)
	}
	return root
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// script runs one of the scripts; it returns what it said, and whether it succeeded.
func script(t *testing.T, environment []string, args ...string) (string, bool) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", args...)
	command.Env = append(os.Environ(), environment...)
	text, err := command.CombinedOutput()
	return string(text), err == nil
}

func TestDigestsAreWrittenByWhatTheRegistrySays(t *testing.T) {
	root := checkout(t)
	registry := filepath.Join(t.TempDir(), "resolve")
	write(t, registry, "#!/bin/sh\nprintf 'sha256:'; printf %s \"$1\" | sha256sum | cut -d ' ' -f 1\n", 0o700)
	environment := []string{"DIGESTS_ROOT=" + root, "RESOLVE=" + registry}
	values := filepath.Join(root, "charts/weir/values.yaml")
	before, err := os.ReadFile(values)
	if err != nil {
		t.Fatal(err)
	}
	stripped := regexp.MustCompile(`digest: sha256:[0-9a-f]{64}`).ReplaceAllString(string(before), `digest: ""`)
	write(t, values, stripped, 0o600)

	if text, ok := script(t, environment, "digests.sh", "check"); ok || !strings.Contains(text, "docker.io/library/redis:") || !strings.Contains(text, "golang:") {
		t.Errorf("without digests check says: %s", text)
	}
	if text, ok := script(t, environment, "digests.sh"); !ok {
		t.Fatalf("it cannot write: %s", text)
	}
	for _, mode := range []string{"check", "verify"} {
		if text, ok := script(t, environment, "digests.sh", mode); !ok {
			t.Errorf("with digests %s says: %s", mode, text)
		}
	}
	after, err := os.ReadFile(values)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(string(after), "digest: sha256:"), strings.Count(stripped, `digest: ""`)-1; got != want || want < 2 {
		t.Errorf("%d digests are written, want %d: all but that of Weir's own image", got, want)
	}
	write(t, registry, "#!/bin/sh\nprintf 'sha256:'; echo moved | sha256sum | cut -d ' ' -f 1\n", 0o700)
	if text, ok := script(t, environment, "digests.sh", "verify"); ok {
		t.Errorf("a tag has moved, and verify says: %s", text)
	}
	write(t, registry, "#!/bin/sh\necho latest\n", 0o700)
	if text, ok := script(t, environment, "digests.sh"); ok || !strings.Contains(text, "is no digest") {
		t.Errorf("the registry answers nonsense, and it says: %s", text)
	}
}

// cosign stands in for cosign's two commands for files, with openssl and a local key.
const cosign = `#!/bin/bash
set -eu
command=$1; shift
while [ $# -gt 1 ]; do case $1 in --key) key=$2; shift 2;; --bundle) bundle=$2; shift 2;; *) shift;; esac; done
case $command in
  sign-blob) openssl dgst -sha256 -sign "$key" -out "$bundle" "$1";;
  verify-blob) openssl dgst -sha256 -verify "$key" -signature "$bundle" "$1";;
esac
`

func TestWhatIsSignedCanBeVerifiedAndNothingElse(t *testing.T) {
	tools, folder := t.TempDir(), t.TempDir()
	stand := filepath.Join(tools, "cosign")
	write(t, stand, cosign, 0o700)
	private, public := filepath.Join(tools, "key"), filepath.Join(tools, "key.pub")
	for _, args := range [][]string{
		{"openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", private}, {"openssl", "ec", "-in", private, "-pubout", "-out", public},
	} {
		if text, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, text)
		}
	}
	environment := []string{"COSIGN=" + stand, "COSIGN_KEY=" + private, "COSIGN_PUBLIC_KEY=" + public, "VERSION=v0.2.0",
		"REVISION=0123456789012345678901234567890123456789", "SOURCE_DATE_EPOCH=1700000000"}
	write(t, filepath.Join(folder, "weir.oci.tar"), "image", 0o600)
	sums, err := exec.CommandContext(t.Context(), "sh", "-c", "cd \"$1\" && sha256sum weir.oci.tar", "sh", folder).Output()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "SHA256SUMS"), string(sums), 0o600)
	for _, step := range []string{"provenance", "sign", "verify"} {
		if text, ok := script(t, environment, "sign.sh", step, folder); !ok {
			t.Fatalf("%s: %s", step, text)
		}
	}
	checkStatement(t, filepath.Join(folder, "provenance.intoto.json"), strings.Fields(string(sums))[0])

	for name, file := range map[string]string{"another image": "weir.oci.tar", "other sums": "SHA256SUMS", "another provenance": "provenance.intoto.json"} {
		t.Run(name+" is refused", func(t *testing.T) {
			path := filepath.Join(folder, file)
			kept, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, string(kept)+" ", 0o600)
			if text, ok := script(t, environment, "sign.sh", "verify", folder); ok {
				t.Errorf("it is accepted: %s", text)
			}
			write(t, path, string(kept), 0o600)
		})
	}
	if text, ok := script(t, environment, "sign.sh", "image", "ghcr.io/weir-dev/weir:0.2.0"); ok || !strings.Contains(text, "must be a digest") {
		t.Errorf("a tag is signed: %s", text)
	}
}

// checkStatement reads the provenance as in-toto and SLSA have it.
func checkStatement(t *testing.T, path, sum string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Name   string            `json:"name"`
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct {
					Digest map[string]string `json:"digest"`
				} `json:"resolvedDependencies"`
			} `json:"buildDefinition"`
		} `json:"predicate"`
	}
	if err := json.Unmarshal(text, &statement); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("it is a %s of %s", statement.Type, statement.PredicateType)
	}
	if len(statement.Subject) != 1 || statement.Subject[0].Name != "weir.oci.tar" || statement.Subject[0].Digest["sha256"] != sum {
		t.Errorf("its subjects are %v", statement.Subject)
	}
	if made := statement.Predicate.BuildDefinition.ResolvedDependencies; len(made) == 0 || made[0].Digest["gitCommit"] != "0123456789012345678901234567890123456789" {
		t.Errorf("it is made from %v", made)
	}
}

// TestWhatIsInstalledNamesAVersion keeps tags that move out of what people apply.
func TestWhatIsInstalledNamesAVersion(t *testing.T) {
	chart, err := os.ReadFile("../charts/weir/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^appVersion: *"?([0-9.]+)"?$`).FindSubmatch(chart)
	if version == nil {
		t.Fatal("the chart has no appVersion")
	}
	manager, err := os.ReadFile("../config/manager/manager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	images := regexp.MustCompile(`ghcr\.io/weir-dev/weir[^ \n]*`).FindAllString(string(manager), -1)
	if len(images) != 2 {
		t.Errorf("it names the image %d times, want the container's and WEIR_IMAGE's", len(images))
	}
	for _, image := range images {
		if want := "ghcr.io/weir-dev/weir:" + string(version[1]); image != want {
			t.Errorf("config/manager names %s, want %s, the chart's appVersion", image, want)
		}
	}
}

// TestTheStandardLibraryStillLacksTheDecoder reminds of an exchange: see docs/internals/decisions/json.md.
func TestTheStandardLibraryStillLacksTheDecoder(t *testing.T) {
	list := func(experiment string) error {
		command := exec.CommandContext(t.Context(), "go", "list", "encoding/json/v2")
		command.Env = append(os.Environ(), "GOEXPERIMENT="+experiment)
		return command.Run()
	}
	if err := list("jsonv2"); err != nil {
		t.Fatalf("with the experiment: %v; this test no longer finds what it looks for", err)
	}
	if list("") == nil {
		t.Error("encoding/json/v2 needs no flag any more: put it and encoding/json/jsontext in the place of go-json-experiment/json")
	}
}

// TestTheArchiveOfTheCommandUnpacksAndSaysItsVersion packs it for this machine, as for the others.
func TestTheArchiveOfTheCommandUnpacksAndSaysItsVersion(t *testing.T) {
	folder, name := t.TempDir(), "weir-9.8.7-"+runtime.GOOS+"-"+runtime.GOARCH
	environment := []string{"VERSION=v9.8.7", "PLATFORMS=" + runtime.GOOS + "/" + runtime.GOARCH}
	if text, ok := script(t, environment, "dist.sh", folder); !ok {
		t.Fatal(text)
	}
	for _, command := range [][]string{{"sha256sum", "--check", "--strict", "SHA256SUMS"}, {"tar", "-xzf", name + ".tar.gz"}} {
		run := exec.CommandContext(t.Context(), command[0], command[1:]...)
		run.Dir = folder
		if text, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", command, err, text)
		}
	}
	said, err := exec.CommandContext(t.Context(), filepath.Join(folder, name, "weir"), "--version").Output()
	if err != nil || string(said) != "v9.8.7\n" {
		t.Errorf("weir --version says %q, %v", said, err)
	}
	for file, want := range map[string]string{"LICENSE": "Apache License", "licences.txt": "github.com/redis/go-redis"} {
		text, err := os.ReadFile(filepath.Join(folder, name, file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not have %q: %v", file, want, err)
		}
	}
}
