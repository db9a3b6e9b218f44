package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// replaceFile writes a file beside its place and moves it there in one step, so that nobody reads half of one.
func replaceFile(file string, write func(io.Writer) error) (err error) {
	if file == "" {
		return errors.New("-o must name the file to write")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temporary.Name()))
		}
	}()
	if err := errors.Join(write(temporary), temporary.Chmod(0o644), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}

// writeDockerArchive writes the image as `docker save` would, and its id to out.
func writeDockerArchive(file, reference string, image v1.Image, out io.Writer) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return fmt.Errorf("-tag: %w", err)
	}
	if err := replaceFile(file, func(w io.Writer) error { return tarball.Write(tag, image, w) }); err != nil {
		return err
	}
	id, err := image.ConfigName()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, tag.Name(), file, id)
	return err
}

// The annotations by which containerd and the tools of registries name an image of a layout.
const (
	annotationTag  = "org.opencontainers.image.ref.name"
	annotationName = "io.containerd.image.name"
)

// writeOCIArchive writes the index and its images as an OCI layout in a tar file, and the index's digest to out.
func writeOCIArchive(file, reference string, index v1.ImageIndex, out io.Writer) (err error) {
	tag, err := name.NewTag(reference)
	if err != nil {
		return fmt.Errorf("-tag: %w", err)
	}
	folder, err := os.MkdirTemp("", "oci-layout-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	annotations := map[string]string{annotationTag: tag.TagStr(), annotationName: tag.Name()}
	if err := written.AppendIndex(index, layout.WithAnnotations(annotations)); err != nil {
		return err
	}
	if err := replaceFile(file, func(w io.Writer) error { return archiveFolder(w, os.DirFS(folder)) }); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, tag.Name(), file, digest)
	return err
}

// archiveFolder writes the folder's files in the order of their names, with nothing of this machine.
func archiveFolder(w io.Writer, folder fs.FS) error {
	archive := tar.NewWriter(w)
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	return errors.Join(err, archive.Close())
}
