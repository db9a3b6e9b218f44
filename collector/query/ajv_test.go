package query

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// npmPackage is a package of npm's registry, pinned.
type npmPackage struct{ name, version, integrity string }

// What JavaScript programs check answers with. The newest versions that have a build for browsers.
var (
	ajv        = npmPackage{"ajv-dist", "8.17.1", "sha512-KzJwANMzTTR/RERGnkx+bHzmxIfMTPMMv7+cH1d6Lx9UQ7BZyhiieq4hnO5lRuBWOtYTUL8hyWs7RJYI/45Rtg=="}
	ajvFormats = npmPackage{"ajv-formats", "3.0.1", "sha512-8iUql50EUR+uUcdRQ3HDqa6EVyo3docL8g5WJ3FNcWmu62IbkGUue/pEyLBW8VGKKucTPgqeks4fIU1DA4yowQ=="}
)

// file returns a file of the package, which is kept below the cache directory that hack/cache.sh names.
func (p npmPackage) file(t *testing.T, name string) string {
	t.Helper()
	cache := os.Getenv("WEIR_CACHE")
	if cache == "" {
		users, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(users, "weir")
	}
	kept := filepath.Join(cache, "npm", p.name+"-"+p.version+".tgz")
	archive, err := os.ReadFile(kept)
	if errors.Is(err, os.ErrNotExist) {
		archive, err = p.fetch(t)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(kept), 0o755), os.WriteFile(kept, archive, 0o600))
		}
	}
	if err != nil {
		t.Fatalf("the package %s of npm's: %v", p.name, err)
	}
	if sum := sha512.Sum512(archive); "sha512-"+base64.StdEncoding.EncodeToString(sum[:]) != p.integrity {
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

func (p npmPackage) fetch(t *testing.T) ([]byte, error) {
	t.Helper()
	address := fmt.Sprintf("https://registry.npmjs.org/%s/-/%s-%s.tgz", p.name, p.name, p.version)
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

// refusedByAjv returns what Ajv, as people make it, has to say of values: of each schema that it does not compile, and of
// each value that it refuses. The schemas' references are to the description's components.
const refusedByAjv = `(groups, components) => {
  const ajv = new ajv2020();
  const formats = {};
  new Function('exports', formatsText)(formats);
  for (const [name, format] of Object.entries(formats.fullFormats)) ajv.addFormat(name, format);
  const local = (schema) => JSON.parse(JSON.stringify(schema).replaceAll('#/components/schemas/', '#/$defs/'));
  const refused = [];
  for (const { schema, values } of groups) {
    let validate;
    try {
      validate = ajv.compile({ ...local(schema), $defs: local(components) });
    } catch (error) {
      refused.push(String(error));
      continue;
    }
    for (const { seen, value } of values) {
      if (!validate(value)) refused.push(seen + ': ' + ajv.errorsText(validate.errors));
    }
  }
  return refused;
}`

// seenValue is a value that the API answered with, or gives as an example.
type seenValue struct {
	Seen  string          `json:"seen"`
	Value json.RawMessage `json:"value"`
}

// schemaGroup are the values of one schema.
type schemaGroup struct {
	Schema any         `json:"schema"`
	Values []seenValue `json:"values"`
}

// openAjv opens a tab that has Ajv and its formats.
func openAjv(t *testing.T) *tab {
	t.Helper()
	page := openTab(t)
	formats, err := json.Marshal(ajvFormats.file(t, "dist/formats.js"))
	if err != nil {
		t.Fatal(err)
	}
	look[bool](page, ajv.file(t, "dist/ajv2020.min.js")+fmt.Sprintf("\nvar formatsText = %s; true", formats))
	return page
}

// askAjv returns what Ajv refuses of the values.
func askAjv(page *tab, groups []*schemaGroup, components any) []string {
	page.t.Helper()
	arguments, err := json.Marshal([]any{groups, components})
	if err != nil {
		page.t.Fatal(err)
	}
	return look[[]string](page, fmt.Sprintf("(%s)(...%s)", refusedByAjv, arguments))
}

func TestAjvRefusesWhatTheDescriptionDoes(t *testing.T) {
	page := openAjv(t)
	day := json.RawMessage(`"2026-11-22"`)
	group := func(schema string, value json.RawMessage) []*schemaGroup {
		var parsed any
		if err := json.Unmarshal([]byte(schema), &parsed); err != nil {
			t.Fatal(err)
		}
		return []*schemaGroup{{Schema: parsed, Values: []seenValue{{"it", value}}}}
	}
	components := map[string]any{"Day": map[string]any{"type": "string", "format": "date"}}
	for name, test := range map[string]struct {
		groups []*schemaGroup
		want   string
	}{
		"what is right is taken":           {group(`{"$ref": "#/components/schemas/Day"}`, day), ""},
		"what is wrong is refused":         {group(`{"$ref": "#/components/schemas/Day"}`, json.RawMessage(`7`)), "must be string"},
		"a format is looked at":            {group(`{"$ref": "#/components/schemas/Day"}`, json.RawMessage(`"2026-13-22"`)), "must match format"},
		"an unknown format is refused":     {group(`{"type": "string", "format": "day"}`, day), "unknown format"},
		"an unknown word is refused":       {group(`{"type": "string", "length": 10}`, day), "unknown keyword"},
		"steps of decimals would be wrong": {group(`{"type": "number", "multipleOf": 0.0001}`, json.RawMessage(`0.6667`)), "must be multiple"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(askAjv(page, test.groups, components), "\n")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
