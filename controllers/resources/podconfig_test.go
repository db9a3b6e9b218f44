package resources_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/api/validation"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/controllers/resources"
)

var update = flag.Bool("update", false, "write the golden files anew")

// input is a golden pair's question.
type input struct {
	Property          json.RawMessage           `json:"property"`
	APIKeys           map[string]string         `json:"apiKeys"`
	AccessTokens      map[string]string         `json:"accessTokens"`
	EgressAllowCIDRs  []netip.Prefix            `json:"egressAllowCIDRs"`
	TrustedProxyCIDRs []netip.Prefix            `json:"trustedProxyCIDRs"`
	WithholdUnsaid    bool                      `json:"withholdUnsaid"`
	PlatformEndpoints map[platforms.Type]string `json:"platformEndpoints"`
	ConsoleKeys       []auth.PublicKey          `json:"consoleKeys"`
	RedisURL          string                    `json:"redisURL"`
	ClickHouseURL     string                    `json:"clickHouseURL"`
}

// TestPodConfig renders every testdata/podconfig/NAME/input.yaml into testdata/podconfig/NAME/want/.
func TestPodConfig(t *testing.T) {
	inputs, err := filepath.Glob("testdata/podconfig/*/input.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("found %d inputs, error %v", len(inputs), err)
	}
	for _, path := range inputs {
		directory := filepath.Dir(path)
		t.Run(filepath.Base(directory), func(t *testing.T) {
			in, property := readInput(t, path)
			files, err := resources.PodConfig(property, resources.Credentials{APIKeys: in.APIKeys, AccessTokens: in.AccessTokens}, in.options())
			if err != nil {
				t.Fatal(err)
			}
			want := filepath.Join(directory, "want")
			if *update {
				writeFiles(t, want, files)
			}
			if diff := cmp.Diff(readFiles(t, want), text(files)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			checkLoads(t, files, in, property)
			for path, content := range files {
				for _, secret := range slices.Concat(slices.Collect(maps.Values(in.APIKeys)), slices.Collect(maps.Values(in.AccessTokens))) {
					if bytes.Contains(content, []byte(secret)) {
						t.Errorf("%s holds a key or token in the clear", path)
					}
				}
			}
		})
	}
}

func (in input) options() resources.Options {
	return resources.Options{EgressAllowCIDRs: in.EgressAllowCIDRs, TrustedProxyCIDRs: in.TrustedProxyCIDRs, WithholdUnsaid: in.WithholdUnsaid, PlatformEndpoints: in.PlatformEndpoints, ConsoleKeys: in.ConsoleKeys, Redis: config.Redis{URL: in.RedisURL}, ClickHouse: config.ClickHouse{URL: in.ClickHouseURL}}
}

func readInput(t *testing.T, path string) (input, *v1alpha1.Property) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var in input
	if err := yaml.UnmarshalStrict(content, &in); err != nil {
		t.Fatal(err)
	}
	return in, admit(t, in.Property)
}

// admit checks a Property and fills in its defaults, as the API server does.
func admit(t *testing.T, document []byte) *v1alpha1.Property {
	t.Helper()
	var object map[string]any
	if err := utilyaml.Unmarshal(document, &object); err != nil {
		t.Fatal(err)
	}
	definition, err := os.ReadFile("../../config/crd/bases/weir.dev_properties.yaml")
	if err != nil {
		t.Fatal(err)
	}
	validator, err := validation.New(definition)
	if err != nil {
		t.Fatal(err)
	}
	property, errs := validator.Create(t.Context(), object)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return property
}

// checkLoads reads the files the way a pod does.
func checkLoads(t *testing.T, files map[string][]byte, in input, property *v1alpha1.Property) {
	t.Helper()
	directory := t.TempDir()
	writeFiles(t, directory, files)
	loaded, err := config.Load(directory)
	if err != nil {
		t.Error(err)
	}
	rendered, err := resources.PropertyConfig(property, in.options())
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(rendered, loaded, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("what a pod loads is not what was rendered (-rendered +loaded):\n%s", diff)
	}
	keys, err := config.LoadAPIKeys(directory)
	if err != nil {
		t.Error(err)
	}
	for name, secret := range in.APIKeys {
		if key, found := auth.Match(keys, secret, time.Now()); !found || key.Name != name {
			t.Errorf("a pod takes API key %s for %q (found: %t)", name, key.Name, found)
		}
	}
	tokens, err := config.LoadAccessTokens(directory)
	if err != nil {
		t.Error(err)
	}
	for i, token := range property.Spec.AccessTokens {
		if got := tokens[i]; got.Name != token.Name || string(got.Scope) != string(token.GrantedScope()) || got.Hash != auth.HashOf(in.AccessTokens[token.Name]) {
			t.Errorf("a pod knows access token %s as %s, scope %s", token.Name, got.Name, got.Scope)
		}
	}
	console, err := config.LoadConsole(directory)
	if err != nil || len(console.Keys) != len(in.ConsoleKeys) || len(in.ConsoleKeys) > 0 && console.Audience != string(property.UID) {
		t.Errorf("a pod takes what is signed with %d keys for %q, error %v", len(console.Keys), console.Audience, err)
	}
	reached, found, err := config.LoadClickHouse(directory)
	if err != nil || found != (in.ClickHouseURL != "") || reached.URL != in.ClickHouseURL {
		t.Errorf("a pod reaches the history with %q (found: %t, error %v)", reached.URL, found, err)
	}
	if in.RedisURL != "" {
		if redis, err := config.LoadRedis(directory); err != nil || redis.URL != in.RedisURL {
			t.Errorf("a pod's Redis URL is another one, error %v", err)
		}
	}
}

func writeFiles(t *testing.T, directory string, files map[string][]byte) {
	t.Helper()
	if err := os.RemoveAll(directory); err != nil {
		t.Fatal(err)
	}
	for path, content := range files {
		path = filepath.Join(directory, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func readFiles(t *testing.T, directory string) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(directory)
	if err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, path)
		files[path] = string(content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

func text(files map[string][]byte) map[string]string {
	texts := map[string]string{}
	for path, content := range files {
		texts[path] = string(content)
	}
	return texts
}

func TestPodConfigSaysWhatIsMissing(t *testing.T) {
	both := resources.Credentials{APIKeys: map[string]string{"default": "k"}, AccessTokens: map[string]string{"default": "t"}}
	for sentence, test := range map[string]struct {
		currency    string
		credentials resources.Credentials
		want        string
	}{
		"everything there":                    {currency: "EUR", credentials: both},
		"an API key is missing":               {currency: "EUR", credentials: resources.Credentials{AccessTokens: both.AccessTokens}, want: `spec.apiKeys[0]: there is no key "default"`},
		"an access token is missing":          {currency: "EUR", credentials: resources.Credentials{APIKeys: both.APIKeys}, want: `spec.accessTokens[0]: there is no token "default"`},
		"a currency that only looks like one": {currency: "EUQ", credentials: both, want: "currency: must be an ISO 4217 code in capitals, such as EUR"},
	} {
		t.Run(sentence, func(t *testing.T) {
			property := admit(t, []byte("apiVersion: weir.dev/v1alpha1\nkind: Property\nmetadata: {name: shop, namespace: default}\nspec: {currency: "+test.currency+"}"))
			_, err := resources.PodConfig(property, test.credentials, resources.Options{})
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestBroughtAccessToken(t *testing.T) {
	for sentence, test := range map[string]struct {
		value, want string
		refused     bool
	}{
		"16 visible characters are a token":    {value: "0123456789abcdef", want: "0123456789abcdef"},
		"base64 is welcome, with its '/'":      {value: "a/b+0123456789cdef==", want: "a/b+0123456789cdef=="},
		"a line end behind it is left out":     {value: "0123456789abcdef\n", want: "0123456789abcdef"},
		"15 characters are too few":            {value: "0123456789abcde\n", refused: true},
		"a space would end it in the header":   {value: "0123456789 abcdef", refused: true},
		"letters beyond ASCII are refused too": {value: "0123456789abcdéf", refused: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := resources.BroughtAccessToken(test.value)
			if got != test.want || (err != nil) != test.refused {
				t.Errorf("got %q, error %v; want %q, refused: %t", got, err, test.want, test.refused)
			}
			if err != nil && strings.Contains(err.Error(), test.value) {
				t.Errorf("the error repeats the token: %v", err)
			}
		})
	}
}

func TestBroughtAPIKey(t *testing.T) {
	for sentence, test := range map[string]struct {
		value, want string
		refused     bool
	}{
		"16 visible characters are a key":      {value: "0123456789abcdef", want: "0123456789abcdef"},
		"punctuation is welcome":               {value: "~!@#$%^&*()_+-=.", want: "~!@#$%^&*()_+-=."},
		"a line end behind it is left out":     {value: "0123456789abcdef\r\n", want: "0123456789abcdef"},
		"15 characters are too few":            {value: "0123456789abcde", refused: true},
		"a line end does not count as one":     {value: "0123456789abcde\n", refused: true},
		"nothing is no key":                    {value: "", refused: true},
		"a '/' would end it in the URL's path": {value: "0123456789/abcdef", refused: true},
		"a space is refused":                   {value: "0123456789 abcdef", refused: true},
		"a line end within is refused":         {value: "0123456789\nabcdef", refused: true},
		"letters beyond ASCII are refused":     {value: "0123456789abcdéf", refused: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := resources.BroughtAPIKey(test.value)
			if got != test.want || (err != nil) != test.refused {
				t.Errorf("got %q, error %v; want %q, refused: %t", got, err, test.want, test.refused)
			}
			if err != nil && test.value != "" && strings.Contains(err.Error(), test.value) {
				t.Errorf("the error repeats the key: %v", err)
			}
		})
	}
}
