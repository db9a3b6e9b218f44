package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// materials is the command of that name: PROGRAM-OS-ARCH.cdx.json for each binary, and licences.txt.
func materials(args []string, created time.Time) error {
	flags := flag.NewFlagSet("image materials", flag.ContinueOnError)
	folder := flags.String("o", "", "`FOLDER` to write to")
	version := flags.String("version", "", "the `VERSION` that the binaries are stamped with")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *folder == "" || *version == "" || flags.NArg() == 0 {
		return errors.New("image materials: -o, -version and at least one binary must be given")
	}
	modules := map[string]*debug.Module{}
	for _, file := range flags.Args() {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s is no Go program: %w", file, err)
		}
		for _, module := range linked(info) {
			modules[module.Path] = module
		}
		bom, err := billOfMaterials(file, *version, info, created)
		if err != nil {
			return err
		}
		name := filepath.Base(file) + "-" + setting(info, "GOOS") + "-" + setting(info, "GOARCH") + ".cdx.json"
		err = replaceFile(filepath.Join(*folder, name), func(w io.Writer) error {
			return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
		})
		if err != nil {
			return err
		}
	}
	texts, err := licences(context.Background(), modules)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(*folder, "licences.txt"), func(w io.Writer) error {
		_, err := w.Write(texts)
		return err
	})
}

// setting is one of the settings that a binary was built with.
func setting(info *buildinfo.BuildInfo, key string) string {
	for _, setting := range info.Settings {
		if setting.Key == key {
			return setting.Value
		}
	}
	return ""
}

// linked are the modules whose packages are in a binary, each as what replaces it where something does.
func linked(info *buildinfo.BuildInfo) []*debug.Module {
	var modules []*debug.Module
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		modules = append(modules, module)
	}
	return modules
}

// billOfMaterials lists what is linked into a binary, as its linker wrote it down: not what go.mod might bring along.
func billOfMaterials(file, version string, info *buildinfo.BuildInfo, created time.Time) (*cyclonedx.BOM, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	program := component(cyclonedx.ComponentTypeApplication, info.Main.Path, version)
	program.Name = filepath.Base(file)
	program.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	program.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}

	components := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))}
	references := []string{components[0].BOMRef}
	for _, module := range linked(info) {
		library := component(cyclonedx.ComponentTypeLibrary, module.Path, module.Version)
		if module.Sum != "" {
			// go.sum's hash of the module's files, which is a SHA-256.
			hash, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:"))
			if err != nil {
				return nil, fmt.Errorf("%s: checksum of %s: %w", file, module.Path, err)
			}
			library.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(hash)}}
		}
		components = append(components, library)
		references = append(references, library.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: created.Format(time.RFC3339), Component: &program}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &references}}
	return bom, nil
}

// component names a Go module as package URLs do.
func component(kind cyclonedx.ComponentType, path, version string) cyclonedx.Component {
	// A plus sign stands for a space in some readers of package URLs.
	url := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cyclonedx.Component{Type: kind, BOMRef: url, Name: path, Version: version, PackageURL: url}
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([-._].*)?$`)

// licences are the texts of the licences and notices of all modules, and of Go itself.
func licences(ctx context.Context, modules map[string]*debug.Module) ([]byte, error) {
	folders, err := moduleFolders(ctx, modules)
	if err != nil {
		return nil, err
	}
	goRoot, err := goCommand(ctx, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	folders["Go"] = strings.TrimSpace(string(goRoot))
	var texts bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		if err := appendLicences(&texts, name, folders[name]); err != nil {
			return nil, err
		}
	}
	return texts.Bytes(), nil
}

// appendLicences writes the texts that lie in a module's folder. Those of Go lie at its top.
func appendLicences(texts *bytes.Buffer, module, folder string) error {
	found, files := false, os.DirFS(folder)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || module == "Go" && name != "."):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !licenceFile.MatchString(entry.Name()) || strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(texts, "==== %s: %s\n\n%s\n\n", module, name, bytes.TrimSpace(text))
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("%s has no licence in %s", module, folder)
	}
	return err
}

// moduleFolders says where the modules lie in Go's cache, by PATH@VERSION.
func moduleFolders(ctx context.Context, modules map[string]*debug.Module) (map[string]string, error) {
	args := []string{"mod", "download", "-json"}
	for _, module := range modules {
		args = append(args, module.Path+"@"+module.Version)
	}
	output, err := goCommand(ctx, args...)
	if err != nil {
		return nil, err
	}
	folders := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var module struct{ Path, Version, Dir string }
		if err := decoder.Decode(&module); errors.Is(err, io.EOF) {
			return folders, nil
		} else if err != nil {
			return nil, fmt.Errorf("go mod download: %w", err)
		}
		folders[module.Path+"@"+module.Version] = module.Dir
	}
}

// goCommand runs go and returns what it prints.
func goCommand(ctx context.Context, args ...string) ([]byte, error) {
	var said bytes.Buffer
	command := exec.CommandContext(ctx, "go", args...)
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", args[0], err, bytes.TrimSpace(said.Bytes()))
	}
	return output, nil
}
