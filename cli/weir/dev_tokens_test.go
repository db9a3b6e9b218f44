package main

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
)

// TestPodsKnowTokensByTheirHashes looks through all that the pods are given, and takes a token away from them.
func TestPodsKnowTokensByTheirHashes(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	weir := startWeirDev(t, state, "-f", shopFile(t, "http://127.0.0.1:9/"))
	await(t, "the view has replayed", func() bool { return weir.read("/events").status == http.StatusOK })

	pods, token := filepath.Join(state, "pods"), weir.AccessTokens[0].Token
	seen := 0
	err := filepath.WalkDir(pods, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		seen++
		text, err := os.ReadFile(path)
		for _, secret := range []string{token, weir.APIKeys[0].Key} {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s holds a key or token", path)
			}
		}
		return err
	})
	if err != nil || seen == 0 {
		t.Fatalf("%d files, %v", seen, err)
	}
	file := filepath.Join(pods, "default", "shop", filepath.FromSlash(config.AccessTokensFile))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := auth.HashOf(token).MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), string(hash)) {
		t.Errorf("%s lacks the token's hash: %s", file, text)
	}

	if err := os.WriteFile(file, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, "the token that was taken away is refused", func() bool { return weir.read("/events").status == http.StatusUnauthorized })
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, "the token that is back is accepted", func() bool { return weir.read("/events").status == http.StatusOK })
	if strings.Contains(weir.stderr.String(), token) {
		t.Error("the token stands in the log")
	}
}
