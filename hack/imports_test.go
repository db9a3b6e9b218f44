package hack_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// The import rules are checked on parsed files rather than through `go list`: the test cache notices a changed
// file that the test has read, but not what another process has read.

const (
	modulePath  = "github.com/weir-dev/weir"
	chiPath     = "github.com/go-chi/chi"
	goRedisPath = "github.com/redis/go-redis"

	// maxDepth bounds the longest chain of imports below a main package: from a package that main imports to the
	// last one, counted in imports.
	maxDepth = 7
)

var (
	// shipped are the programs of the image.
	shipped = []string{".", "collector"}
	// equipment is what only people's machines and tests need.
	equipment = []string{"cli/weir", "collector/clickhouse/clickhousetest", "collector/clickhouseserver", "collector/consent/consenttest", "collector/demo", "collector/deliver/fakes", "collector/redisserver", "collector/sources/fakes", "config", "controllers/kubetest", "hack"}
)

// eventImports are what the packages of the domain and below it may import of ours.
var eventImports = map[string][]string{
	"collector/event":          {},
	"collector/event/personal": {"collector/event"},
	"collector/event/outline":  {},
	"collector/event/envelope": {"collector/event", "collector/event/outline", "collector/event/personal"},
	"collector/event/segment":  {"collector/event", "collector/event/outline"},
	"collector/event/iab":      {},
	"collector/event/erasure":  {"collector/event"},
	"collector/event/wire":     {"collector/event"},
	"collector/event/document": {"collector/event"},
}

// tables say what a Property may name.
var tables = []string{"collector/platforms", "collector/sources"}

// console are what the cluster's page for people takes of the collector beside what other controllers do: it is an HTTP server that
// answers as the pods' do, shows the same page, and says in the same form what is wrong with a field.
var console = map[string][]string{
	"controllers/console":  {"collector/dashboard", "collector/event", "collector/server"},
	"controllers/operator": {"collector/server"},
}

// drawers are package names that say nothing about what is inside.
var drawers = []string{"base", "common", "helper", "helpers", "lib", "misc", "pkg", "shared", "util", "utils"}

// sourceFile is one Go file outside of tests.
type sourceFile struct {
	path    string
	imports []string
}

// sourceTree is the module's packages by folder, "." for the root.
type sourceTree map[string][]sourceFile

// parseTree reads the imports of every package below root. Test files, testdata, hidden folders and modules
// within the module are passed over.
func parseTree(root fs.FS) (sourceTree, error) {
	tree := sourceTree{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipFolder(root, name)
		}
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ImportsOnly)
		if err != nil {
			return err
		}
		file := sourceFile{path: name}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			file.imports = append(file.imports, imported)
		}
		tree[path.Dir(name)] = append(tree[path.Dir(name)], file)
		return nil
	})
	return tree, err
}

// skipFolder returns [fs.SkipDir] for a folder that holds no packages of this module.
func skipFolder(root fs.FS, name string) error {
	if name == "." {
		return nil
	}
	if base := path.Base(name); strings.HasPrefix(base, ".") || base == "testdata" || base == "bin" {
		return fs.SkipDir
	}
	if _, err := fs.Stat(root, path.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// inTree says whether folder is top or lies below it.
func inTree(folder, top string) bool { return folder == top || strings.HasPrefix(folder, top+"/") }

// ours returns the folder of an imported package of this module.
func ours(imported string) (folder string, ok bool) {
	if imported == modulePath {
		return ".", true
	}
	return strings.CutPrefix(imported, modulePath+"/")
}

// brokenImportRule says in a few words why folder may not import what it does, or "" where it may. hack is for development: it
// may import what it likes.
func brokenImportRule(folder, imported string) string {
	if inTree(folder, "hack") {
		return ""
	}
	target, isOurs := ours(imported)
	switch {
	case isOurs && inTree(folder, "collector/event") && !slices.Contains(eventImports[folder], target):
		return "the domain imports no other package of ours; personal, erasure, wire and document import the domain, and envelope personal and outline as well, segment outline"
	case (target == "collector/event/envelope" || target == "collector/event/segment") && folder != "collector/ingest" &&
		(target != "collector/event/envelope" || folder != "collector/query"):
		return "what senders write is read by ingest alone, and by query where somebody names whom to erase"
	case target == "collector/event/personal" &&
		!slices.Contains([]string{"collector/event/envelope", "collector/deliver/adapter", "collector/sources/shop"}, folder):
		return "what tells of a person is known to envelope alone; adapters have a client's id hashed, and shops ask which ids are none"
	case isOurs && inTree(folder, "collector") && !inTree(target, "collector"):
		return "the collector reaches no package outside of collector"
	case isOurs && folder == "collector/audit" && target != "collector/auth":
		return "the audit log knows keys and tokens, and nothing of events"
	case isOurs && folder == "collector/session" && target != "collector/auth":
		return "sessions know access tokens, and nothing else of ours"
	case isOurs && folder == "collector/dashboard":
		return "the page imports no package of ours"
	case isOurs && slices.Contains(tables, folder):
		return "the tables of platforms and sources import no other package of ours"
	case isOurs && folder == "collector/consent" && !slices.Contains([]string{"collector/event", "collector/event/iab", "collector/platforms"}, target):
		return "consent is decided by the domain and the table of platforms alone"
	case isOurs && inTree(folder, "api") && !inTree(target, "api") && !slices.Contains(tables, target):
		return "the Property type reaches no package outside of api but the tables of platforms and sources"
	case isOurs && inTree(target, "collector/redisserver") && !inTree(folder, "collector/redisserver") && folder != "cli/weir":
		return "a Redis is started by weir dev and by tests alone"
	case target == "collector/clickhouseserver" && folder != "collector/clickhouse/clickhousetest" && folder != "cli/weir":
		return "a ClickHouse is started by weir dev and by tests alone"
	case isOurs && slices.Contains(console[folder], target):
		return ""
	case isOurs && inTree(folder, "controllers") && inTree(target, "collector") &&
		!slices.Contains([]string{"collector/audit", "collector/auth", "collector/config", "collector/egress", "collector/event/erasure", "collector/ledger", "collector/platforms", "collector/session", "collector/sources", "collector/stream",
			"collector/clickhouse", "collector/connect", "collector/history/access", "collector/history/schema"}, target):
		return "of the collector, controllers reach audit, auth, config, egress, erasure, ledger, platforms, session and sources alone, stream where Redis is administered, and what administers a history"
	case inTree(imported, chiPath) &&
		!slices.Contains([]string{"collector/ingest", "collector/query", "collector/server", "collector/role", "controllers/console"}, folder):
		return "routes belong to ingest, query, server, role and console"
	case inTree(imported, goRedisPath) && folder != "collector/stream" &&
		!inTree(folder, "collector/redisserver") && !inTree(folder, "controllers"):
		return "stream is the only package that speaks Redis"
	}
	return ""
}

// breaches lists every breach of the import rules, in order.
func (t sourceTree) breaches() []string {
	var found []string
	for _, folder := range slices.Sorted(maps.Keys(t)) {
		if slices.Contains(drawers, path.Base(folder)) {
			found = append(found, folder+": a package is named for what it knows")
		}
		for _, file := range t[folder] {
			for _, imported := range file.imports {
				if problem := brokenImportRule(folder, imported); problem != "" {
					found = append(found, fmt.Sprintf("%s imports %s: %s", file.path, imported, problem))
				}
				if inTree(folder, "collector") && (imported == "html/template" || imported == "text/template") {
					// Templates call methods by their names, so the linker keeps every method of every type.
					found = append(found, file.path+" imports "+imported+": a program that links templates is half as large again")
				}
				if inTree(folder, "controllers") && folder != "controllers/operator" && !strings.HasPrefix(path.Base(file.path), "redis") &&
					(inTree(imported, goRedisPath) || imported == modulePath+"/collector/stream") {
					found = append(found, file.path+": files of the controllers that have to do with Redis are called redis…")
				}
			}
		}
	}
	found = append(found, t.equipmentShipped()...)
	return append(found, t.deepChains()...)
}

// equipmentShipped lists what is for people's machines and for tests but linked into a program of the image, each with the
// chain of imports that does so.
func (t sourceTree) equipmentShipped() []string {
	var found []string
	for _, program := range shipped {
		chains := map[string]string{program: program}
		for queue := []string{program}; len(queue) > 0; queue = queue[1:] {
			for _, next := range t.imports(queue[0]) {
				if _, known := chains[next]; known {
					continue
				}
				chains[next] = chains[queue[0]] + " → " + next
				queue = append(queue, next)
				if slices.ContainsFunc(equipment, func(top string) bool { return inTree(next, top) }) {
					found = append(found, chains[next]+": no program of the image links what is for people's machines and tests")
				}
			}
		}
	}
	return found
}

// deepChains lists the main packages below which a chain of imports is longer than [maxDepth].
func (t sourceTree) deepChains() []string {
	chains := map[string][]string{}
	var found []string
	for _, folder := range slices.Sorted(maps.Keys(t)) {
		imported := slices.ContainsFunc(slices.Collect(maps.Keys(t)), func(other string) bool {
			return slices.Contains(t.imports(other), folder)
		})
		if imported { // what is imported is no main package
			continue
		}
		chain := t.longestChain(folder, chains)
		if depth := len(chain) - 2; depth > maxDepth {
			found = append(found, fmt.Sprintf("%s: %d imports deep, at most %d", strings.Join(chain, " → "), depth, maxDepth))
		}
	}
	return found
}

// longestChain returns the longest chain of our packages from folder on, folder first. The compiler sees to it
// that imports have no cycle.
func (t sourceTree) longestChain(folder string, known map[string][]string) []string {
	if chain, ok := known[folder]; ok {
		return chain
	}
	var longest []string
	for _, next := range t.imports(folder) {
		if chain := t.longestChain(next, known); len(chain) > len(longest) {
			longest = chain
		}
	}
	known[folder] = append([]string{folder}, longest...)
	return known[folder]
}

// imports returns the folders of our packages that a package imports.
func (t sourceTree) imports(folder string) []string {
	var folders []string
	for _, file := range t[folder] {
		for _, imported := range file.imports {
			if target, ok := ours(imported); ok {
				folders = append(folders, target)
			}
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

func TestImportsPointOneWay(t *testing.T) {
	tree, err := parseTree(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range slices.Concat(shipped, equipment, []string{"collector/event"}) {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(tree)), func(other string) bool { return inTree(other, folder) }) {
			t.Errorf("no files found in %s: the rules have been checked on nothing", folder)
		}
	}
	if files := tree["."]; len(files) != 1 || files[0].path != "main.go" {
		t.Errorf("the root holds %v, want main.go alone", files)
	}
	for _, problem := range tree.breaches() {
		t.Error(problem)
	}
}

func TestTheProgramsOfTheImageBringWhatAnImageFromScratchLacks(t *testing.T) {
	tree, err := parseTree(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range shipped {
		for _, needed := range []string{"time/tzdata", "golang.org/x/crypto/x509roots/fallback"} {
			if !slices.ContainsFunc(tree[program], func(file sourceFile) bool { return slices.Contains(file.imports, needed) }) {
				t.Errorf("%s does not import %s, and an image from scratch has no files in its place", program, needed)
			}
		}
	}
}

func TestImportRulesBite(t *testing.T) {
	const chi, goRedis = `"github.com/go-chi/chi/v5"`, `"github.com/redis/go-redis/v9"`
	const domainAlone = "the domain imports no other package of ours; personal, erasure, wire and document import the domain, and envelope personal and outline as well, segment outline"
	tests := map[string]struct {
		// files maps paths to their imports.
		files map[string]string
		want  []string
	}{
		"a tree that keeps the rules has no errors": {
			files: map[string]string{
				"main.go":                          `"github.com/weir-dev/weir/controllers/operator"`,
				"cli/weir/main.go":                 `"github.com/weir-dev/weir/collector/role"; "github.com/weir-dev/weir/collector/redisserver"`,
				"controllers/operator/check.go":    `"github.com/weir-dev/weir/collector/stream"`,
				"collector/role/role.go":           chi + `; "github.com/weir-dev/weir/collector/stream"`,
				"collector/stream/append.go":       goRedis + `; "github.com/weir-dev/weir/collector/event"`,
				"collector/event/event.go":         `"time"`,
				"collector/event/personal/hash.go": `"github.com/weir-dev/weir/collector/event"`,
				"collector/event/envelope/user.go": `"github.com/weir-dev/weir/collector/event/personal"; "github.com/weir-dev/weir/collector/event"`,
				"collector/event/wire/encode.go":   `"github.com/weir-dev/weir/collector/event"`,
				"collector/ingest/collect.go":      `"github.com/weir-dev/weir/collector/event/envelope"`,
				"collector/deliver/adapter/a.go":   `"github.com/weir-dev/weir/collector/event/personal"`,
				"collector/redisserver/start.go":   `"os/exec"`,
				"controllers/redis.go":             goRedis + `; "github.com/weir-dev/weir/collector/stream"`,
				"controllers/redis_problems.go":    `"github.com/weir-dev/weir/collector/stream"`,
				"controllers/resources/pod.go":     `"github.com/weir-dev/weir/collector/config"; "github.com/weir-dev/weir/collector/auth"`,
				"controllers/console/server.go":    chi + `; "github.com/weir-dev/weir/collector/dashboard"; "github.com/weir-dev/weir/collector/server"`,
				"controllers/operator/console.go":  `"github.com/weir-dev/weir/collector/server"; "github.com/weir-dev/weir/controllers/console"`,
				"collector/query/http_test.go":     `"github.com/weir-dev/weir/controllers"`,
				"collector/query/testdata/main.go": `"github.com/weir-dev/weir/controllers"`,
				"hack/tools/go.mod":                ``,
				"hack/tools/util/main.go":          chi,
			},
		},
		"the domain that imports another package of ours": {
			files: map[string]string{
				"collector/event/event.go":       `"github.com/weir-dev/weir/collector/config"`,
				"collector/event/hash.go":        `"github.com/weir-dev/weir/collector/event/personal"`,
				"collector/event/iab/tcf.go":     `"github.com/weir-dev/weir/collector/event"`,
				"collector/event/wire/encode.go": `"github.com/weir-dev/weir/collector/event"; "github.com/weir-dev/weir/collector/stream"`,
			},
			want: []string{
				"collector/event/event.go imports github.com/weir-dev/weir/collector/config: " + domainAlone,
				"collector/event/hash.go imports github.com/weir-dev/weir/collector/event/personal: " + domainAlone,
				"collector/event/iab/tcf.go imports github.com/weir-dev/weir/collector/event: " + domainAlone,
				"collector/event/wire/encode.go imports github.com/weir-dev/weir/collector/stream: " + domainAlone,
			},
		},
		"others that read what senders write, or look for personal data": {
			files: map[string]string{
				"collector/stream/append.go":     `"github.com/weir-dev/weir/collector/event/envelope"`,
				"collector/ingest/rejections.go": `"github.com/weir-dev/weir/collector/event/personal"`,
			},
			want: []string{
				"collector/ingest/rejections.go imports github.com/weir-dev/weir/collector/event/personal: " +
					"what tells of a person is known to envelope alone; adapters have a client's id hashed, and shops ask which ids are none",
				"collector/stream/append.go imports github.com/weir-dev/weir/collector/event/envelope: what senders write is read by ingest alone, and by query where somebody names whom to erase",
			},
		},
		"the collector that reaches the Property type, the operator or the root": {
			files: map[string]string{
				"collector/config/load.go": `"github.com/weir-dev/weir/api/v1alpha1"`,
				"collector/role/role.go":   `"github.com/weir-dev/weir/controllers/resources"; "github.com/weir-dev/weir"`,
			},
			want: []string{
				"collector/config/load.go imports github.com/weir-dev/weir/api/v1alpha1: the collector reaches no package outside of collector",
				"collector/role/role.go imports github.com/weir-dev/weir/controllers/resources: the collector reaches no package outside of collector",
				"collector/role/role.go imports github.com/weir-dev/weir: the collector reaches no package outside of collector",
			},
		},
		"a table of platforms that reaches what speaks to them": {
			files: map[string]string{
				"api/v1alpha1/types.go":       `"github.com/weir-dev/weir/collector/platforms"`,
				"collector/platforms/meta.go": `"github.com/weir-dev/weir/collector/deliver/adapter"`,
			},
			want: []string{"collector/platforms/meta.go imports github.com/weir-dev/weir/collector/deliver/adapter: the tables of platforms and sources import no other package of ours"},
		},
		"consent that depends on what ingest has": {
			files: map[string]string{
				"collector/ingest/consent.go": `"github.com/weir-dev/weir/collector/consent"`,
				"collector/consent/rule.go":   `"github.com/weir-dev/weir/collector/event"; "github.com/weir-dev/weir/collector/config"`,
			},
			want: []string{"collector/consent/rule.go imports github.com/weir-dev/weir/collector/config: consent is decided by the domain and the table of platforms alone"},
		},
		"the Property type that reaches the controllers": {
			files: map[string]string{"api/v1alpha1/types.go": `"github.com/weir-dev/weir/controllers"`},
			want: []string{"api/v1alpha1/types.go imports github.com/weir-dev/weir/controllers: " +
				"the Property type reaches no package outside of api but the tables of platforms and sources"},
		},
		"controllers that reach into the collector": {
			files: map[string]string{"controllers/property.go": `"github.com/weir-dev/weir/collector/event"`},
			want: []string{"controllers/property.go imports github.com/weir-dev/weir/collector/event: of the collector, " +
				"controllers reach audit, auth, config, egress, erasure, ledger, platforms, session and sources alone, stream where Redis is administered, and what administers a history"},
		},
		"an audit log that knows events": {
			files: map[string]string{"collector/audit/audit.go": `"github.com/weir-dev/weir/collector/auth"; "github.com/weir-dev/weir/collector/event"`},
			want:  []string{"collector/audit/audit.go imports github.com/weir-dev/weir/collector/event: the audit log knows keys and tokens, and nothing of events"},
		},
		"sessions that know events": {
			files: map[string]string{"collector/session/session.go": `"github.com/weir-dev/weir/collector/auth"; "github.com/weir-dev/weir/collector/event"`},
			want:  []string{"collector/session/session.go imports github.com/weir-dev/weir/collector/event: sessions know access tokens, and nothing else of ours"},
		},
		"a page that knows anything of ours": {
			files: map[string]string{"collector/dashboard/dashboard.go": `"github.com/weir-dev/weir/collector/server"`},
			want:  []string{"collector/dashboard/dashboard.go imports github.com/weir-dev/weir/collector/server: the page imports no package of ours"},
		},
		"a page that is made by a template": {
			files: map[string]string{"collector/query/local.go": `"html/template"`},
			want:  []string{"collector/query/local.go imports html/template: a program that links templates is half as large again"},
		},
		"controllers that administer Redis where nobody looks for it": {
			files: map[string]string{
				"controllers/redis.go":        `"github.com/weir-dev/weir/collector/stream"`,
				"controllers/resources/a.go":  goRedis,
				"controllers/credentials.go":  `"github.com/weir-dev/weir/collector/auth"`,
				"controllers/redis_access.md": ``,
			},
			want: []string{"controllers/resources/a.go: files of the controllers that have to do with Redis are called redis…"},
		},
		"a router outside of the packages that route": {
			files: map[string]string{"collector/deliver/worker.go": `"github.com/go-chi/chi/v5/middleware"`},
			want:  []string{"collector/deliver/worker.go imports github.com/go-chi/chi/v5/middleware: routes belong to ingest, query, server, role and console"},
		},
		"a second package that speaks Redis": {
			files: map[string]string{"collector/analytics/view.go": goRedis},
			want:  []string{"collector/analytics/view.go imports github.com/redis/go-redis/v9: stream is the only package that speaks Redis"},
		},
		"a role that starts a Redis": {
			files: map[string]string{"collector/role/role.go": `"github.com/weir-dev/weir/collector/redisserver"`},
			want: []string{"collector/role/role.go imports github.com/weir-dev/weir/collector/redisserver: " +
				"a Redis is started by weir dev and by tests alone"},
		},
		"a program of the image that links the fakes and a Redis": {
			files: map[string]string{
				"main.go":                         `"github.com/weir-dev/weir/controllers/operator"`,
				"controllers/operator/flags.go":   `"github.com/weir-dev/weir/cli/flags"`,
				"cli/flags/flags.go":              `"github.com/weir-dev/weir/collector/deliver/fakes"`,
				"collector/deliver/fakes/meta.go": `"net/http"`,
			},
			want: []string{
				". → controllers/operator → cli/flags → collector/deliver/fakes: no program of the image links what is for people's machines and tests",
			},
		},
		"a drawer": {
			files: map[string]string{"collector/util/strings.go": `"strings"`},
			want:  []string{"collector/util: a package is named for what it knows"},
		},
		"a chain of imports that is too long": {
			files: map[string]string{
				"main.go":             `"github.com/weir-dev/weir/collector/a"`,
				"collector/a/file.go": `"github.com/weir-dev/weir/collector/b"; "github.com/weir-dev/weir/collector/f"`,
				"collector/b/file.go": `"github.com/weir-dev/weir/collector/c"`,
				"collector/c/file.go": `"github.com/weir-dev/weir/collector/d"`,
				"collector/d/file.go": `"github.com/weir-dev/weir/collector/e"`,
				"collector/e/file.go": `"github.com/weir-dev/weir/collector/f"`,
				"collector/f/file.go": `"github.com/weir-dev/weir/collector/g"`,
				"collector/g/file.go": `"github.com/weir-dev/weir/collector/h"`,
				"collector/h/file.go": `"github.com/weir-dev/weir/collector/i"`,
				"collector/i/file.go": ``,
			},
			want: []string{". → collector/a → collector/b → collector/c → collector/d → collector/e → collector/f → collector/g → collector/h → collector/i: 8 imports deep, at most 7"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tree, err := parseTree(fileSystem(tt.files))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tree.breaches()); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// fileSystem makes Go files that hold nothing but the imports.
func fileSystem(imports map[string]string) fstest.MapFS {
	files := fstest.MapFS{}
	for name, list := range imports {
		files[name] = &fstest.MapFile{Data: fmt.Appendf(nil, "package p\n\nimport (%s)\n", list)}
	}
	return files
}
