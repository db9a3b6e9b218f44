package main

import (
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// programs are the binaries of the product's image.
var programs = []string{"weir-operator", "collector"}

// rootsModule holds the certificates of public authorities, which an image from scratch has no files for.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// weirSpec is the product's image, out of the binaries in a folder. The Dockerfile says the same, and a test compares
// the two.
func weirSpec(folder, version, revision string) Spec {
	spec := Spec{
		User:       nonRoot,
		Entrypoint: []string{"/weir-operator"},
		Labels: map[string]string{
			"org.opencontainers.image.title":         "weir",
			"org.opencontainers.image.description":   "Collects a website's events, delivers them to ad and analytics platforms, and answers questions about them",
			"org.opencontainers.image.source":        "https://github.com/weir-dev/weir",
			"org.opencontainers.image.documentation": "https://github.com/weir-dev/weir/tree/main/docs",
			"org.opencontainers.image.licenses":      "Apache-2.0",
			"org.opencontainers.image.version":       version,
			"org.opencontainers.image.revision":      revision,
		},
	}
	for _, program := range programs {
		spec.Files = append(spec.Files, File{Source: filepath.Join(folder, program), Path: "/" + program})
	}
	return spec
}

// weir is the command of that name.
func weir(args []string, created time.Time, out io.Writer) error {
	flags := flag.NewFlagSet("image weir", flag.ContinueOnError)
	binaries := flags.String("binaries", "", "`FOLDER` with a folder of binaries for each platform: linux-amd64 and so on")
	tag := flags.String("tag", "", "the image's `REFERENCE`")
	version := flags.String("version", "", "the `VERSION` that the binaries are stamped with")
	revision := flags.String("revision", "", "the `COMMIT` that they were built from")
	archive := flags.String("o", "", "`FILE` to write the image of this machine's architecture to, as docker save would")
	oci := flags.String("oci", "", "`FILE` to write the image of all platforms to, as an OCI layout")
	platforms := repeated(flags, "platform", "a `PLATFORM` of the OCI layout, as in linux/amd64")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := noArguments(flags); err != nil {
		return err
	}
	if *version == "" || *revision == "" {
		return errors.New("image weir: -version and -revision must be given")
	}
	build := func(platform v1.Platform) (v1.Image, error) {
		spec := weirSpec(filepath.Join(*binaries, platform.OS+"-"+platform.Architecture), *version, *revision)
		for _, file := range spec.Files {
			if err := checkBinary(file.Source, platform); err != nil {
				return nil, err
			}
		}
		return Build(spec, platform, created)
	}
	if *archive != "" {
		image, err := build(v1.Platform{OS: "linux", Architecture: runtime.GOARCH})
		if err != nil {
			return err
		}
		if err := writeDockerArchive(*archive, *tag, image, out); err != nil {
			return err
		}
	}
	if *oci == "" {
		return nil
	}
	index, err := buildIndex(*platforms, build)
	if err != nil {
		return err
	}
	return writeOCIArchive(*oci, *tag, index, out)
}

// buildIndex builds the image of each platform and puts them into one index.
func buildIndex(platforms []string, build func(v1.Platform) (v1.Image, error)) (v1.ImageIndex, error) {
	if len(platforms) == 0 {
		return nil, errors.New("image weir: -oci needs at least one -platform")
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, text := range platforms {
		platform, err := parsePlatform(text)
		if err != nil {
			return nil, err
		}
		image, err := build(platform)
		if err != nil {
			return nil, err
		}
		image = mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	return index, nil
}

// checkBinary reports what would keep a binary from running alone in an image of that platform.
func checkBinary(file string, platform v1.Platform) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s is no Go program: %w", file, err)
	}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	wanted := map[string]string{
		"GOOS": platform.OS, "GOARCH": platform.Architecture, "CGO_ENABLED": "0", "-trimpath": "true",
	}
	var errs []error
	for key, want := range wanted {
		if settings[key] != want {
			errs = append(errs, fmt.Errorf("%s was built with %s=%s; it must be %s", file, key, settings[key], want))
		}
	}
	linked := func(module string) bool {
		return slices.ContainsFunc(info.Deps, func(dependency *debug.Module) bool { return dependency.Path == module })
	}
	if !linked(rootsModule) {
		errs = append(errs, fmt.Errorf("%s does not link %s: it could trust no platform's certificate", file, rootsModule))
	}
	program, err := elf.Open(file)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	defer program.Close()
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP {
			errs = append(errs, fmt.Errorf("%s is linked dynamically; it must be static", file))
		}
	}
	return errors.Join(errs...)
}
