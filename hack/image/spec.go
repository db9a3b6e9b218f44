package main

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// nonRoot is the user that images run as unless they say otherwise: the one that the field calls nonroot.
const nonRoot = "65532:65532"

// Spec says what an image consists of.
type Spec struct {
	// Files are put into one layer. They belong to root.
	Files []File
	// Dirs are made beside the folders that the files lie in.
	Dirs []Dir
	// User is UID:GID, in digits, so that a cluster can tell that it is not root.
	User string
	// Entrypoint and Cmd are the program and its default arguments.
	Entrypoint, Cmd []string
	// Env is NAME=VALUE, added to the PATH that every image gets.
	Env []string
	// Labels describe the image; their keys are those of the OCI image specification's annotations.
	Labels map[string]string
}

// File is a regular file or a symbolic link of an image.
type File struct {
	// Source is where it is read from on this machine.
	Source string
	// Path is where it stands in the image: absolute.
	Path string
}

// Dir is a folder of an image.
type Dir struct {
	// Path is where it stands in the image: absolute.
	Path string
	// UID and GID own it.
	UID, GID int
}

// defaultPath is the PATH that a container engine gives to images that are built from scratch.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

var userPattern = regexp.MustCompile(`^[0-9]+:[0-9]+$`)

// Build makes the image of a spec. Created is the time of the image and of everything in it.
func Build(spec Spec, platform v1.Platform, created time.Time) (v1.Image, error) {
	if !userPattern.MatchString(spec.User) {
		return nil, fmt.Errorf("user %q must be UID:GID in digits", spec.User)
	}
	for _, variable := range spec.Env {
		if name, _, found := strings.Cut(variable, "="); !found || name == "" {
			return nil, fmt.Errorf("environment: %q must be NAME=VALUE", variable)
		}
	}
	layer, err := spec.layer(created)
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "image"},
	})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Created = v1.Time{Time: created}
	config.Config = v1.Config{
		User: spec.User, Entrypoint: spec.Entrypoint, Cmd: spec.Cmd, Labels: spec.Labels,
		Env: append([]string{defaultPath}, spec.Env...), WorkingDir: "/",
	}
	return mutate.ConfigFile(image, config)
}

// parseDir reads PATH[:UID:GID].
func parseDir(text string) (Dir, error) {
	parts := strings.Split(text, ":")
	dir := Dir{Path: parts[0]}
	var err error
	switch len(parts) {
	case 1:
		return dir, nil
	case 3:
		if dir.UID, err = strconv.Atoi(parts[1]); err == nil {
			dir.GID, err = strconv.Atoi(parts[2])
		}
		if err == nil {
			return dir, nil
		}
	}
	return Dir{}, fmt.Errorf("-dir %q must be PATH or PATH:UID:GID", text)
}

// treeFiles are the files and links below a folder, at their paths from there. Empty folders are not among them.
func treeFiles(root string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		files = append(files, File{Source: name, Path: path.Join("/", filepath.ToSlash(relative))})
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s holds no file", root)
	}
	return files, err
}
