package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"testing"
)

// Package is a package of npm's registry, pinned: what it brings for browsers needs no Node.
type Package struct {
	Name, Version string
	// Integrity is as lock files have it: sha512-, and the digest in base64.
	Integrity string
}

// File returns a file of the package, which is kept below the cache directory that hack/cache.sh names.
func (p Package) File(t *testing.T, name string) string {
	t.Helper()
	cache := os.Getenv("WEIR_CACHE")
	if cache == "" {
		users, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(users, "weir")
	}
	kept := filepath.Join(cache, "npm", path.Base(p.Name)+"-"+p.Version+".tgz")
	archive, err := os.ReadFile(kept)
	if errors.Is(err, os.ErrNotExist) {
		archive, err = p.fetch(t)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(kept), 0o750), os.WriteFile(kept, archive, 0o600))
		}
	}
	if err != nil {
		t.Fatalf("the package %s of npm's: %v", p.Name, err)
	}
	if sum := sha512.Sum512(archive); "sha512-"+base64.StdEncoding.EncodeToString(sum[:]) != p.Integrity {
		t.Fatalf("%s is not what is pinned; remove it", kept)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err != nil {
			t.Fatalf("%s in %s: %v", name, kept, err)
		}
		if header.Name == "package/"+name {
			text, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
}

func (p Package) fetch(t *testing.T) ([]byte, error) {
	t.Helper()
	address := fmt.Sprintf("https://registry.npmjs.org/%s/-/%s-%s.tgz", p.Name, path.Base(p.Name), p.Version)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, answer.Status)
	}
	return io.ReadAll(answer.Body)
}
