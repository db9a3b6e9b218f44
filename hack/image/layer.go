package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

// entry is what stands at one path of a layer.
type entry struct {
	source   string // "" for a folder
	uid, gid int
}

// layer packs the files. Its bytes follow from their contents, their paths, which of them are executable or links,
// and from the time: not from their order, their owners or their times on this machine.
func (s Spec) layer(created time.Time) (v1.Layer, error) {
	entries, err := s.entries()
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if err := entries[name].write(archive, name, created); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	layer, err := compress(packed.Bytes())
	if err != nil {
		return nil, err
	}
	return partial.CompressedToLayer(layer)
}

// entries are the files and folders by their path, with the folders that they lie in.
func (s Spec) entries() (map[string]entry, error) {
	entries := map[string]entry{}
	add := func(name string, e entry) error {
		if !path.IsAbs(name) || path.Clean(name) != name || name == "/" {
			return fmt.Errorf("path %q must be absolute and clean, as in /usr/bin/program", name)
		}
		if _, taken := entries[name]; taken {
			return fmt.Errorf("%s is there twice", name)
		}
		entries[name] = e
		return nil
	}
	for _, dir := range s.Dirs {
		if err := add(dir.Path, entry{uid: dir.UID, gid: dir.GID}); err != nil {
			return nil, err
		}
	}
	for _, file := range s.Files {
		if err := add(file.Path, entry{source: file.Source}); err != nil {
			return nil, err
		}
	}
	if len(s.Files) == 0 {
		return nil, fmt.Errorf("an image needs at least one file")
	}
	for name := range maps.Clone(entries) {
		for parent := path.Dir(name); parent != "/"; parent = path.Dir(parent) {
			above, there := entries[parent]
			if there && above.source != "" {
				return nil, fmt.Errorf("%s lies in %s, which is no folder", name, parent)
			}
			if !there {
				entries[parent] = entry{}
			}
		}
	}
	return entries, nil
}

// write appends the entry to the archive.
func (e entry) write(archive *tar.Writer, name string, created time.Time) error {
	header := &tar.Header{Name: strings.TrimPrefix(name, "/"), Uid: e.uid, Gid: e.gid, ModTime: created, Format: tar.FormatPAX}
	if e.source == "" {
		header.Typeflag, header.Name, header.Mode = tar.TypeDir, header.Name+"/", 0o755
		return archive.WriteHeader(header)
	}
	info, err := os.Lstat(e.source)
	if err != nil {
		return err
	}
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		header.Typeflag, header.Mode = tar.TypeSymlink, 0o777
		if header.Linkname, err = os.Readlink(e.source); err != nil {
			return err
		}
		return archive.WriteHeader(header)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a link", e.source)
	}
	header.Typeflag, header.Mode, header.Size = tar.TypeReg, 0o644, info.Size()
	if info.Mode()&0o111 != 0 {
		header.Mode = 0o755
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	file, err := os.Open(e.source)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(archive, file); err != nil {
		return fmt.Errorf("%s: %w", e.source, err)
	}
	return nil
}
