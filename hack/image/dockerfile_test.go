package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// root is where the product's module, the Dockerfile and .dockerignore lie.
const root = "../.."

// described is what an image is made of, whoever made it.
type described struct {
	User       string
	Entrypoint []string
	Cmd        []string
	Labels     map[string]string
	Env        []string
	WorkingDir string
	// Files are their paths in the image.
	Files []string
}

func TestTheDockerfileAndThePackerMakeTheSameImage(t *testing.T) {
	const version, revision = "1.2.3", "0123456789abcdef"
	stages := parseDockerfile(t)
	got := describeStage(t, stages[len(stages)-1], map[string]string{"VERSION": version, "REVISION": revision})

	binaries := t.TempDir()
	for _, program := range programs {
		writeProgram(t, filepath.Join(binaries, program), program)
	}
	image, err := Build(weirSpec(binaries, version, revision), v1.Platform{OS: "linux", Architecture: "amd64"}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(describeImage(t, image), got); diff != "" {
		t.Errorf("the Dockerfile's image differs (-packer +Dockerfile):\n%s", diff)
	}
}

func TestTheDockerfileBuildsWithTheScriptThatTheImageIsPackedWith(t *testing.T) {
	stages := parseDockerfile(t)
	var lines []string
	for _, command := range stages[0].Commands {
		if run, ok := command.(*instructions.RunCommand); ok {
			lines = append(lines, strings.Join(run.CmdLine, " "))
		}
	}
	want := `GOOS=${TARGETOS} GOARCH=${TARGETARCH} hack/static.sh "${VERSION}" /out . ./collector`
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) }) {
		t.Errorf("the first stage runs %q, want %q among it", lines, want)
	}
}

func TestTheDockerfilesBuilderSeesEveryFileThatIsBuilt(t *testing.T) {
	ignored := ignoredBy(t, filepath.Join(root, ".dockerignore"))
	for _, file := range append(sources(t), "go.mod", "go.sum", "hack/static.sh") {
		if ignored(file) {
			t.Errorf(".dockerignore hides %s, which is built", file)
		}
	}
	for _, file := range []string{".git/config", ".weir/credentials.json", "bin/weir", "docs/README.md", "cli/weir/main.go", "controllers/operator/run_test.go", "charts/weir/values.yaml"} {
		if !ignored(file) {
			t.Errorf(".dockerignore lets %s through, which is not built", file)
		}
	}
}

// parseDockerfile reads the Dockerfile with BuildKit's own parser and linter.
func parseDockerfile(t *testing.T) []instructions.Stage {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range parsed.Warnings {
		t.Errorf("Dockerfile: %s", warning.Short)
	}
	stages, _, err := instructions.Parse(parsed.AST, linter.New(&linter.Config{
		Warn: func(rule, _, _, message string, _ []parser.Range) { t.Errorf("Dockerfile: %s: %s", rule, message) },
	}))
	if err != nil {
		t.Fatal(err)
	}
	return stages
}

// describeStage follows a stage that begins from scratch, with these build arguments.
func describeStage(t *testing.T, stage instructions.Stage, arguments map[string]string) described {
	t.Helper()
	if stage.BaseName != "scratch" {
		t.Fatalf("the last stage begins from %s, want scratch", stage.BaseName)
	}
	lexer, variables := shell.NewLex('\\'), []string{}
	image := described{Labels: map[string]string{}, Env: []string{defaultPath}, WorkingDir: "/"}
	for _, command := range stage.Commands {
		if expands, ok := command.(instructions.SupportsSingleWordExpansion); ok {
			err := expands.Expand(func(word string) (string, error) {
				value, _, err := lexer.ProcessWord(word, shell.EnvsFromSlice(variables))
				return value, err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		switch command := command.(type) {
		case *instructions.ArgCommand:
			for _, argument := range command.Args {
				value, given := arguments[argument.Key]
				if !given {
					t.Fatalf("the last stage takes a build argument %s, which the packer has nothing for", argument.Key)
				}
				variables = append(variables, argument.Key+"="+value)
			}
		case *instructions.LabelCommand:
			for _, label := range command.Labels {
				image.Labels[label.Key] = label.Value
			}
		case *instructions.CopyCommand:
			for _, source := range command.SourcePaths {
				image.Files = append(image.Files, filepath.Join(command.DestPath, filepath.Base(source)))
			}
		case *instructions.UserCommand:
			image.User = command.User
		case *instructions.EntrypointCommand:
			image.Entrypoint = command.CmdLine
		default:
			t.Fatalf("the last stage has %s, which this test does not know: teach it, and the packer", command.Name())
		}
	}
	slices.Sort(image.Files)
	return image
}

// describeImage reads an image back.
func describeImage(t *testing.T, image v1.Image) described {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	result := described{
		User: config.Config.User, Entrypoint: config.Config.Entrypoint, Cmd: config.Config.Cmd, Labels: config.Config.Labels,
		Env: config.Config.Env, WorkingDir: config.Config.WorkingDir,
	}
	for _, header := range headers(t, image) {
		result.Files = append(result.Files, "/"+header.Name)
	}
	return result
}

// ignoredBy tells for a path whether .dockerignore hides it.
func ignoredBy(t *testing.T, file string) func(string) bool {
	t.Helper()
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	patterns, err := ignorefile.ReadAll(text)
	if err != nil {
		t.Fatal(err)
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return func(path string) bool {
		hidden, err := matcher.MatchesOrParentMatches(path)
		if err != nil {
			t.Fatal(err)
		}
		return hidden
	}
}

// sources are the product's files that go build reads for the image, as paths from the root.
func sources(t *testing.T) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Standard,Module,Dir,GoFiles,EmbedFiles", ".", "./collector")
	command.Dir = root
	command.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v", err)
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var listed struct {
			Standard            bool
			Module              *struct{ Main bool }
			Dir                 string
			GoFiles, EmbedFiles []string
		}
		if err := decoder.Decode(&listed); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if listed.Standard || listed.Module == nil || !listed.Module.Main {
			continue
		}
		for _, file := range append(listed.GoFiles, listed.EmbedFiles...) {
			path, err := filepath.Rel(top, filepath.Join(listed.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, path)
		}
	}
	if len(files) < 50 {
		t.Fatalf("go list named only %d files: nothing has been checked", len(files))
	}
	return files
}

// writeProgram puts something executable at a path.
func writeProgram(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, fmt.Appendf(nil, "#!%s\n", content), 0o755); err != nil {
		t.Fatal(err)
	}
}
