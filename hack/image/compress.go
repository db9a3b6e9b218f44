package main

import (
	"bytes"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
)

// window is how far back the compression looks. The product's two programs lie next to each other and have half of their
// packages in common, 30 MB apart. It costs whoever unpacks the image as much memory for a moment.
const window = 64 << 20

// compressed is a layer as registries keep it: a tar file, compressed by zstd.
type compressed struct {
	digest  v1.Hash
	content []byte
}

// compress packs the tar file. Its bytes follow from its contents: one encoder works, so that nothing hangs on how many
// processors there are.
func compress(archive []byte) (compressed, error) {
	var packed bytes.Buffer
	writer, err := zstd.NewWriter(&packed, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(window),
		zstd.WithEncoderConcurrency(1))
	if err != nil {
		return compressed{}, err
	}
	if _, err := writer.Write(archive); err != nil {
		return compressed{}, err
	}
	if err := writer.Close(); err != nil {
		return compressed{}, err
	}
	digest, _, err := v1.SHA256(bytes.NewReader(packed.Bytes()))
	return compressed{digest, packed.Bytes()}, err
}

func (l compressed) Digest() (v1.Hash, error)          { return l.digest, nil }
func (l compressed) Size() (int64, error)              { return int64(len(l.content)), nil }
func (compressed) MediaType() (types.MediaType, error) { return types.OCILayerZStd, nil }
func (l compressed) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(l.content)), nil
}
