package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// epoch is the time of the images in these tests.
var epoch = time.Unix(1_700_000_000, 0).UTC()

// amd64 is the platform of the images in these tests.
var amd64 = v1.Platform{OS: "linux", Architecture: "amd64"}

// headers are the entries of an image's one layer.
func headers(t *testing.T, image v1.Image) []*tar.Header {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 1 {
		t.Fatalf("the image has %d layers, want 1", len(layers))
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var found []*tar.Header
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, header)
	}
}

// sound looks whether the image's digests are those of its contents. The library's own judge of layers knows gzip alone.
func sound(t *testing.T, image v1.Image) {
	t.Helper()
	if err := validate.Image(image, validate.Fast); err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		for what, of := range map[string]struct {
			content func() (io.ReadCloser, error)
			said    func() (v1.Hash, error)
		}{"compressed layer": {layer.Compressed, layer.Digest}, "layer": {layer.Uncompressed, layer.DiffID}} {
			content, err := of.content()
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := v1.SHA256(content)
			if want, _ := of.said(); err != nil || content.Close() != nil || got != want {
				t.Errorf("the %s has the digest %s, %v; want %s", what, got, err, want)
			}
		}
	}
}

func TestALayerHoldsFilesLinksAndFolders(t *testing.T) {
	tree := t.TempDir()
	writeProgram(t, filepath.Join(tree, "program"), "sh")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(tree, "etc", "empty"), 0o700),
		os.WriteFile(filepath.Join(tree, "etc", "passwd"), []byte("root:x:0:0::/:\n"), 0o600),
		os.Symlink("program", filepath.Join(tree, "link")),
	); err != nil {
		t.Fatal(err)
	}
	files, err := treeFiles(tree)
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{User: "7:8", Dirs: []Dir{{Path: "/var/data", UID: 7, GID: 8}}, Files: files}
	image, err := Build(spec, amd64, epoch)
	if err != nil {
		t.Fatal(err)
	}

	type item struct {
		Name, Link    string
		Kind          byte
		Mode          int64
		UID, GID      int
		Time          time.Time
		User, UserGrp string
	}
	var got []item
	for _, h := range headers(t, image) {
		got = append(got, item{h.Name, h.Linkname, h.Typeflag, h.Mode, h.Uid, h.Gid, h.ModTime.UTC(), h.Uname, h.Gname})
	}
	want := []item{
		{Name: "etc/", Kind: tar.TypeDir, Mode: 0o755, Time: epoch},
		{Name: "etc/passwd", Kind: tar.TypeReg, Mode: 0o644, Time: epoch},
		{Name: "link", Link: "program", Kind: tar.TypeSymlink, Mode: 0o777, Time: epoch},
		{Name: "program", Kind: tar.TypeReg, Mode: 0o755, Time: epoch},
		{Name: "var/", Kind: tar.TypeDir, Mode: 0o755, Time: epoch},
		{Name: "var/data/", Kind: tar.TypeDir, Mode: 0o755, UID: 7, GID: 8, Time: epoch},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries of the layer (-want +got):\n%s", diff)
	}
}

func TestTheSameContentsMakeTheSameBytes(t *testing.T) {
	var packed [][]byte
	for _, when := range []time.Time{time.Unix(1, 0), time.Now()} {
		folder := t.TempDir()
		program := filepath.Join(folder, "program")
		writeProgram(t, program, "sh")
		if err := os.Chtimes(program, when, when); err != nil {
			t.Fatal(err)
		}
		output := filepath.Join(folder, "image.tar")
		args := []string{
			"pack", "-o", output, "-tag", "example.test/program:1", "-file", program + ":/bin/program", "-platform", "linux/arm64",
			"-entrypoint", "/bin/program", "-cmd", "serve", "-env", "MODE=test",
		}
		if err := run(args, epoch, io.Discard); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(output)
		if err != nil {
			t.Fatal(err)
		}
		packed = append(packed, content)
	}
	if !bytes.Equal(packed[0], packed[1]) {
		t.Error("two archives of the same contents differ")
	}
}

func TestAPackedImageIsWhatItsFlagsSay(t *testing.T) {
	folder := t.TempDir()
	program, output := filepath.Join(folder, "program"), filepath.Join(folder, "new", "image.tar")
	writeProgram(t, program, "sh")
	var said bytes.Buffer
	args := []string{
		"pack", "-o", output, "-tag", "example.test/program:1", "-file", program + ":/bin/program", "-dir", "/data:9:9", "-platform", "linux/arm64",
		"-user", "9:9", "-entrypoint", "/bin/program", "-entrypoint", "-v", "-cmd", "serve", "-env", "MODE=test",
	}
	if err := run(args, epoch, &said); err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(output, nil)
	if err != nil {
		t.Fatal(err)
	}
	sound(t, image)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		User: "9:9", Entrypoint: []string{"/bin/program", "-v"}, Cmd: []string{"serve"}, Env: []string{defaultPath, "MODE=test"}, WorkingDir: "/",
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if config.Architecture != "arm64" || config.OS != "linux" || !config.Created.Equal(epoch) {
		t.Errorf("the image is of %s/%s, made at %s; want linux/arm64, %s", config.OS, config.Architecture, config.Created, epoch)
	}
	id, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if want := "example.test/program:1 " + output + " " + id.String() + "\n"; said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
}

func TestBadInputNamesWhatWouldBeRight(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "program")
	writeProgram(t, program, "sh")
	file := program + ":/program"
	tests := map[string]struct {
		args []string
		want string
	}{
		"no command":                            {want: "the commands are pack, weir and materials"},
		"an unknown command":                    {args: []string{"push"}, want: `unknown command "push"`},
		"no file to write":                      {args: []string{"pack", "-tag", "a.test/b:1", "-file", file}, want: "-o must name the file"},
		"a reference that is none":              {args: []string{"pack", "-o", "x", "-tag", "A B", "-file", file}, want: "-tag: "},
		"an image without files":                {args: []string{"pack", "-o", "x"}, want: "at least one file"},
		"a file without a path":                 {args: []string{"pack", "-file", program}, want: "must be SOURCE:PATH"},
		"a relative path":                       {args: []string{"pack", "-file", program + ":bin/program"}, want: "must be absolute"},
		"a path that climbs out":                {args: []string{"pack", "-file", program + ":/../program"}, want: "must be absolute and clean"},
		"a path that is taken":                  {args: []string{"pack", "-file", file, "-dir", "/program"}, want: "/program is there twice"},
		"a file below a file":                   {args: []string{"pack", "-file", file, "-file", file + "/x"}, want: "/program, which is no folder"},
		"a file that is not there":              {args: []string{"pack", "-file", program + "s:/program"}, want: "no such file"},
		"a folder without files":                {args: []string{"pack", "-tree", t.TempDir()}, want: "holds no file"},
		"a folder of nobody":                    {args: []string{"pack", "-file", file, "-dir", "/data:redis"}, want: "must be PATH or PATH:UID:GID"},
		"a user by name":                        {args: []string{"pack", "-file", file, "-user", "redis"}, want: "must be UID:GID in digits"},
		"an environment without a value":        {args: []string{"pack", "-file", file, "-env", "MODE"}, want: "must be NAME=VALUE"},
		"another system":                        {args: []string{"pack", "-file", file, "-platform", "windows/amd64"}, want: "must be linux/ARCHITECTURE"},
		"an argument that is no flag":           {args: []string{"pack", "-file", file, "program"}, want: `"program" is no flag`},
		"the product without its version":       {args: []string{"weir", "-revision", "1"}, want: "-version and -revision must be given"},
		"a script in the product's place":       {args: []string{"weir", "-version", "1", "-revision", "1", "-binaries", folder, "-oci", "x", "-platform", "linux/x"}, want: "linux-x/weir-operator"},
		"a layout without a platform":           {args: []string{"weir", "-version", "1", "-revision", "1", "-oci", "x"}, want: "at least one -platform"},
		"materials of nothing":                  {args: []string{"materials", "-o", "x", "-version", "1"}, want: "at least one binary"},
		"materials of what is not a Go program": {args: []string{"materials", "-o", "x", "-version", "1", program}, want: "is no Go program"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(tt.args, epoch, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestTheSourceDateIsInSeconds(t *testing.T) {
	tests := map[string]struct {
		text string
		want time.Time
		err  bool
	}{
		"none is the beginning": {want: time.Unix(0, 0).UTC()},
		"whole seconds":         {text: "1700000000", want: epoch},
		"a date":                {text: "2026-01-01", err: true},
		"before the beginning":  {text: "-1", err: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := sourceDate(tt.text)
			if (err != nil) != tt.err || !got.Equal(tt.want) {
				t.Errorf("sourceDate(%q) = %s, %v; want %s, an error: %t", tt.text, got, err, tt.want, tt.err)
			}
		})
	}
}

func TestTheLayoutOfAllPlatforms(t *testing.T) {
	folder := t.TempDir()
	writeProgram(t, filepath.Join(folder, "program"), "sh")
	build := func(platform v1.Platform) (v1.Image, error) {
		return Build(Spec{User: nonRoot, Files: []File{{Source: filepath.Join(folder, "program"), Path: "/program"}}}, platform, epoch)
	}
	index, err := buildIndex([]string{"linux/amd64", "linux/arm64"}, build)
	if err != nil {
		t.Fatal(err)
	}
	var archives [2]bytes.Buffer
	var said bytes.Buffer
	for i := range archives {
		file := filepath.Join(folder, "weir.oci.tar")
		if err := writeOCIArchive(file, "ghcr.io/weir-dev/weir:1", index, &said); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		archives[i].Write(content)
	}
	if !bytes.Equal(archives[0].Bytes(), archives[1].Bytes()) {
		t.Error("two archives of the same layout differ")
	}

	unpacked := t.TempDir()
	if err := os.CopyFS(unpacked, tarFiles(t, &archives[0])); err != nil {
		t.Fatal(err)
	}
	read, err := layout.ImageIndexFromPath(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	top, err := read.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(top.Manifests) != 1 {
		t.Fatalf("the layout has %d entries, want the index alone", len(top.Manifests))
	}
	want := map[string]string{annotationTag: "1", annotationName: "ghcr.io/weir-dev/weir:1"}
	if diff := cmp.Diff(want, top.Manifests[0].Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	inner, err := read.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(inner, validate.Fast); err != nil {
		t.Fatal(err)
	}
	manifest, err := inner.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, image := range manifest.Manifests {
		packed, err := inner.Image(image.Digest)
		if err != nil {
			t.Fatal(err)
		}
		sound(t, packed)
		platforms = append(platforms, image.Platform.String()+" "+string(image.MediaType))
	}
	wantPlatforms := []string{
		"linux/amd64 application/vnd.oci.image.manifest.v1+json", "linux/arm64 application/vnd.oci.image.manifest.v1+json",
	}
	if diff := cmp.Diff(wantPlatforms, platforms); diff != "" {
		t.Errorf("images of the index (-want +got):\n%s", diff)
	}
}

func TestABinaryIsWhatItsImageNeeds(t *testing.T) {
	folder := t.TempDir()
	source := filepath.Join(folder, "program.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "program")
	if _, err := goCommand(t.Context(), "build", "-o", program, source); err != nil {
		t.Fatal(err)
	}
	err := checkBinary(program, v1.Platform{OS: "linux", Architecture: "riscv64"})
	if err == nil {
		t.Fatal("no error found")
	}
	for _, want := range []string{"must be riscv64", "-trimpath=; it must be true", "does not link " + rootsModule} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("errors %q do not name %q", err, want)
		}
	}
}

func TestMaterialsNameEveryLinkedModule(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "image")
	if _, err := goCommand(t.Context(), "build", "-o", program, "."); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"materials", "-o", folder, "-version", "v1.2.3+local", program}, epoch, io.Discard); err != nil {
		t.Fatal(err)
	}
	boms, err := filepath.Glob(filepath.Join(folder, "image-*-*.cdx.json"))
	if err != nil || len(boms) != 1 {
		t.Fatalf("bills of materials %q, %v; want one", boms, err)
	}
	var bom struct {
		BOMFormat string
		Metadata  struct {
			Timestamp string
			Component struct{ Name, PURL string }
		}
		Components []struct {
			PURL   string
			Hashes []struct{ Content string }
		}
	}
	content, err := os.ReadFile(boms[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &bom); err != nil {
		t.Fatal(err)
	}
	if got, want := bom.Metadata.Component.PURL, "pkg:golang/github.com/weir-dev/weir/hack/image@v1.2.3%2Blocal"; got != want {
		t.Errorf("the program is %q, want %q", got, want)
	}
	if got, want := bom.Metadata.Timestamp, "2023-11-14T22:13:20Z"; got != want {
		t.Errorf("made at %q, want %q", got, want)
	}
	texts, err := os.ReadFile(filepath.Join(folder, "licences.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{"std", "github.com/google/go-containerregistry", "github.com/CycloneDX/cyclonedx-go"} {
		if !bytes.Contains(content, []byte(`"purl": "pkg:golang/`+module+"@")) {
			t.Errorf("the bill of materials lacks %s", module)
		}
		if module != "std" && !bytes.Contains(texts, []byte("==== "+module+"@")) {
			t.Errorf("the licences lack those of %s", module)
		}
	}
	if !bytes.Contains(texts, []byte("==== Go: LICENSE")) {
		t.Error("the licences lack Go's own")
	}
}
