package main

import (
	"archive/tar"
	"errors"
	"io"
	"testing"
	"testing/fstest"
)

// tarFiles reads an archive of regular files.
func tarFiles(t *testing.T, packed io.Reader) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for archive := tar.NewReader(packed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = &fstest.MapFile{Data: content, Mode: 0o644}
	}
}
