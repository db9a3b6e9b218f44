// Command image packs container images out of static binaries and files, without a container engine, a base image or
// a registry. The same input gives the same bytes.
//
//	image pack -o FILE -tag REFERENCE [-file SOURCE:PATH]… [-tree FOLDER]… [-dir PATH[:UID:GID]]…
//	           [-user UID:GID] [-entrypoint ARG]… [-cmd ARG]… [-env NAME=VALUE]… [-platform linux/ARCH]
//	image weir -binaries FOLDER -tag REFERENCE -version VERSION -revision COMMIT [-o FILE] [-oci FILE] [-platform linux/ARCH]…
//	image materials -o FOLDER -version VERSION BINARY…
//
// pack writes one image as `docker save` would. weir packs the product: -o for one platform as `docker save` would, -oci for
// all of them as an OCI layout in a tar file, as registries' tools take it. Both print a line for each file that they
// write: REFERENCE FILE DIGEST. materials says what the binaries are made of: an SBOM for each and the licences of all.
//
// SOURCE_DATE_EPOCH, in seconds since 1970, is the time of everything in an image; it is 0 by default.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func main() {
	created, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err == nil {
		err = run(os.Args[1:], created, os.Stdout)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// sourceDate reads SOURCE_DATE_EPOCH.
func sourceDate(seconds string) (time.Time, error) {
	if seconds == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%q must be whole seconds since 1970", seconds)
	}
	return time.Unix(n, 0).UTC(), nil
}

// run is the program without its globals.
func run(args []string, created time.Time, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("the commands are pack, weir and materials; -h after one of them lists its flags")
	}
	switch args[0] {
	case "pack":
		return pack(args[1:], created, out)
	case "weir":
		return weir(args[1:], created, out)
	case "materials":
		return materials(args[1:], created)
	default:
		return fmt.Errorf("unknown command %q; the commands are pack, weir and materials", args[0])
	}
}

// repeated makes a flag that may be given several times.
func repeated(flags *flag.FlagSet, name, usage string) *[]string {
	var values []string
	flags.Func(name, usage+"; may be repeated", func(value string) error {
		values = append(values, value)
		return nil
	})
	return &values
}

// noArguments refuses what stands behind the flags.
func noArguments(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return fmt.Errorf("%s: %q is no flag", flags.Name(), flags.Arg(0))
	}
	return nil
}

// parsePlatform reads "linux/amd64".
func parsePlatform(text string) (v1.Platform, error) {
	platform, err := v1.ParsePlatform(text)
	if err != nil || platform.OS != "linux" || platform.Architecture == "" {
		return v1.Platform{}, fmt.Errorf("-platform %q must be linux/ARCHITECTURE, as in linux/amd64", text)
	}
	return *platform, nil
}

// pack is the command of that name.
func pack(args []string, created time.Time, out io.Writer) error {
	flags := flag.NewFlagSet("image pack", flag.ContinueOnError)
	output := flags.String("o", "", "`FILE` to write")
	tag := flags.String("tag", "", "the image's `REFERENCE`, as in example.test/program:1")
	platformName := flags.String("platform", "linux/"+runtime.GOARCH, "`PLATFORM` of the image")
	user := flags.String("user", nonRoot, "`UID:GID` that the program runs as")
	files := repeated(flags, "file", "a file to put at a path of the image, as `SOURCE:PATH`")
	trees := repeated(flags, "tree", "`FOLDER` whose contents become those of the image's root")
	dirs := repeated(flags, "dir", "a folder to make, as `PATH[:UID:GID]`; it belongs to root by default")
	entrypoint := repeated(flags, "entrypoint", "an `ARGUMENT` of the entrypoint")
	cmd := repeated(flags, "cmd", "an `ARGUMENT` of the default command")
	env := repeated(flags, "env", "a `NAME=VALUE` of the environment")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := noArguments(flags); err != nil {
		return err
	}
	platform, err := parsePlatform(*platformName)
	if err != nil {
		return err
	}
	spec := Spec{User: *user, Entrypoint: *entrypoint, Cmd: *cmd, Env: *env}
	for _, file := range *files {
		source, path, found := strings.Cut(file, ":")
		if !found {
			return fmt.Errorf("-file %q must be SOURCE:PATH", file)
		}
		spec.Files = append(spec.Files, File{Source: source, Path: path})
	}
	for _, tree := range *trees {
		found, err := treeFiles(tree)
		if err != nil {
			return fmt.Errorf("-tree: %w", err)
		}
		spec.Files = append(spec.Files, found...)
	}
	for _, text := range *dirs {
		dir, err := parseDir(text)
		if err != nil {
			return err
		}
		spec.Dirs = append(spec.Dirs, dir)
	}
	image, err := Build(spec, platform, created)
	if err != nil {
		return err
	}
	return writeDockerArchive(*output, *tag, image, out)
}
