package ingest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func TestContentTypeMeansJSONInUTF8(t *testing.T) {
	for value, want := range map[string]bool{
		"application/json":                                true,
		"Application/JSON":                                true,
		" application/json ":                              true,
		"application/json;charset=utf-8":                  true,
		"application/json; charset=UTF-8":                 true,
		`application/json; charset="utf-8"`:               true,
		"application/json; version=1":                     true,
		"application/json; charset=utf8":                  false,
		"application/json; charset=us-ascii":              false,
		"application/json; charset=":                      false,
		"application/json; charset=utf-8; charset=latin1": false,
		"application/jsonl":                               false,
		"application/cloudevents+json":                    false,
		"text/json":                                       false,
		"json":                                            false,
		"*/*":                                             false,
		"":                                                false,
	} {
		if got := isText([]string{value}, jsonAlone); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}

func TestBodiesThatComeInPiecesAreReadWhole(t *testing.T) {
	text := []byte(`{"event": "pageview", "event_id": "` + strings.Repeat("x", 5000) + `"}`)
	var zipped, squeezed bytes.Buffer
	zipper := gzip.NewWriter(&zipped)
	squeezer, err := zstd.NewWriter(&squeezed)
	if err != nil {
		t.Fatal(err)
	}
	for _, writer := range []io.WriteCloser{zipper, squeezer} {
		if _, err := writer.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	bodies := newBodies()
	for name, c := range map[string]struct {
		coding encoding
		sent   []byte
	}{"identity": {identity, text}, "gzip": {gzipped, zipped.Bytes()}, "zstd": {zstandard, squeezed.Bytes()}} {
		for way, wrap := range map[string]func(io.Reader) io.Reader{
			"byte by byte": iotest.OneByteReader, "in halves": iotest.HalfReader, "with its end at once": iotest.DataErrReader,
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", wrap(bytes.NewReader(c.sent)))
				got, err := bodies.read(r, c.coding, 64<<10)
				if err != nil || !bytes.Equal(got.bytes, text) {
					t.Fatalf("got %v, %v", got, err)
				}
				bodies.release(got)
			})
		}
		t.Run(name+" with an end that is none", func(t *testing.T) {
			broken := io.MultiReader(bytes.NewReader(c.sent[:len(c.sent)/2]), iotest.ErrReader(errors.New("jane@example.com")))
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", broken)
			_, err := bodies.read(r, c.coding, 64<<10)
			if want := "The request body did not arrive in full."; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestReleasedBuffersHoldNothing(t *testing.T) {
	bodies := newBodies()
	used := bodies.buffer()
	if err := used.fill(strings.NewReader("jane@example.com"), 100); err != nil {
		t.Fatal(err)
	}
	used.bytes = append(used.reuse(), "short"...)
	bodies.release(used)
	if left := used.bytes[:cap(used.bytes)]; len(used.bytes) != 0 || bytes.ContainsFunc(left, func(r rune) bool { return r != 0 }) {
		t.Errorf("%q is left", left)
	}
}

// FuzzRead feeds any body in any coding: reading ends, within the limit, with the body or one of the refusals.
func FuzzRead(f *testing.F) {
	f.Add("application/json", "", []byte(`{"event": "pageview"}`))
	f.Add("application/json; charset=utf-8", "gzip", []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add("application/json", "zstd", []byte{0x28, 0xb5, 0x2f, 0xfd, 4, 0, 1, 0, 0, 0x99, 0xe9, 0xd8, 0x51})
	f.Add("text/plain; charset=\"", "br", []byte(nil))
	const limit = 1 << 10
	bodies := newBodies()
	f.Fuzz(func(t *testing.T, contentType, contentEncoding string, body []byte) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		if contentEncoding != "" {
			r.Header.Set("Content-Encoding", contentEncoding)
		}
		coding, refused := negotiate(r, limit, jsonOrText)
		if refused != nil {
			if refused.status != http.StatusUnsupportedMediaType && refused.status != http.StatusRequestEntityTooLarge {
				t.Errorf("got %d", refused.status)
			}
			return
		}
		got, err := bodies.read(r, coding, limit)
		if err != nil {
			refused, ok := err.(*refusal) //nolint:errorlint // the contract is this very type
			if !ok || (refused.status != http.StatusBadRequest && refused.status != http.StatusRequestEntityTooLarge) {
				t.Errorf("got %T %v", err, err)
			}
			return
		}
		defer bodies.release(got)
		if len(got.bytes) > limit {
			t.Errorf("read %d bytes, more than %d", len(got.bytes), limit)
		}
		if coding == identity && !bytes.Equal(got.bytes, body) {
			t.Error("the body was changed")
		}
	})
}
