package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// manifest is one YAML document of a file: an object of the Kubernetes API.
type manifest struct {
	object map[string]any
	// line is where it begins in its file, from 1.
	line int
}

// manifestFiles returns the files that a path means: itself, or a folder's own *.yaml, *.yml and *.json files by name.
func manifestFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no such file or folder", path)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: the folder has no *.yaml, *.yml or *.json file", path)
	}
	return files, nil
}

// readManifests reads every document of a file that can be read, and returns an error for each that cannot.
// Documents that hold nothing are passed over. Objects without a namespace are given the default one.
func readManifests(file string) (manifests []manifest, errs []error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, []error{err}
	}
	for _, document := range splitDocuments(string(content)) {
		object, err := document.parse()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
		if object == nil {
			continue
		}
		if metadata, ok := object["metadata"].(map[string]any); ok && (metadata["namespace"] == nil || metadata["namespace"] == "") {
			metadata["namespace"] = defaultNamespace
		}
		manifests = append(manifests, manifest{object: object, line: document.line})
	}
	return manifests, errs
}

// document is the text of one YAML document and the line of the file, from 1, that it begins at.
type document struct {
	text string
	line int
}

// splitDocuments parts a file at its document markers. Nothing but a marker may begin a line that way in YAML.
func splitDocuments(content string) []document {
	documents := []document{{line: 1}}
	line := 0
	for text := range strings.Lines(content) {
		line++
		marker := strings.TrimRight(text, " \t\r\n")
		switch {
		case marker == "...":
			documents = append(documents, document{line: line + 1})
			continue
		case marker == "---" || strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "---\t"):
			documents = append(documents, document{line: line})
		}
		documents[len(documents)-1].text += text
	}
	return documents
}

// quotedValue is how the YAML library puts a value, or an anchor that a value was taken for, into its messages.
var quotedValue = regexp.MustCompile("`[^`]*`|'[^']*'")

// parse reads the document, nil where it holds nothing. Its errors name the line in the file and repeat no value.
func (d document) parse() (map[string]any, error) {
	// The lines before it, empty, make the library count from the beginning of the file.
	text, err := yaml.YAMLToJSONStrict([]byte(strings.Repeat("\n", d.line-1) + d.text))
	if err != nil {
		message := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
		message = strings.TrimPrefix(message, "yaml: ")
		message = strings.TrimPrefix(message, "unmarshal errors:\n  ")
		message = strings.ReplaceAll(message, "\n  ", "; ")
		return nil, fmt.Errorf("must be YAML, but: %s", quotedValue.ReplaceAllString(message, "a value"))
	}
	var value any
	if err := utiljson.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("line %d: must be a YAML document whose numbers fit 64 bits", d.line)
	}
	if value == nil {
		return nil, nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("line %d: must be an object with apiVersion, kind and metadata", d.line)
	}
	return object, nil
}

func (m manifest) kind() string {
	kind, _ := m.object["kind"].(string)
	return kind
}

// name returns the object's namespace and name, "" for what it lacks.
func (m manifest) name() objectName {
	metadata, _ := m.object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	return objectName{namespace, name}
}

// String names the object for a person: "Property default/shop", or by its line where it has no name.
func (m manifest) String() string {
	kind, name := m.kind(), m.name()
	if kind == "" {
		kind = "object"
	}
	if name.name == "" {
		return fmt.Sprintf("%s at line %d", kind, m.line)
	}
	return kind + " " + name.String()
}
