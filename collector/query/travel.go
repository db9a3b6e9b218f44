package query

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// minCompressed is from how many bytes on an answer is compressed.
const minCompressed = 1024

// compressible are the types of answers that compressing makes smaller.
var compressible = []string{typeJSON, typeCSV, typeNDJSON, "text/html", "text/css", "text/javascript", "image/svg+xml"}

// compressed compresses what a handler answers, for callers who accept gzip. What the handler cuts stays without its end, so that
// it can be taken for whole by nobody.
func compressed(next http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(minCompressed), gzhttp.ContentTypes(compressible), gzhttp.EnableZstd(false), gzhttp.CompressionLevel(gzip.BestSpeed),
	)
	if err != nil {
		panic(err) // one of the options above is wrong: every test that mounts the routes finds it
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &severable{ResponseWriter: w}
		wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			whole := false
			defer func() { out.severed = !whole }()
			next.ServeHTTP(w, r)
			whole = true
		})).ServeHTTP(out, r)
	})
}

// severable keeps what is written after the handler has given up from the caller: the library would end the compressed text
// properly.
type severable struct {
	http.ResponseWriter
	severed bool
}

var errSevered = errors.New("the answer has been cut")

// Write writes until the answer is cut.
func (s *severable) Write(text []byte) (int, error) {
	if s.severed {
		return 0, errSevered
	}
	return s.ResponseWriter.Write(text)
}

// WriteHeader begins the answer, unless it has been cut before.
func (s *severable) WriteHeader(status int) {
	if !s.severed {
		s.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (s *severable) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// tagged gives answers to GET and HEAD that are written as a whole an entity tag, and answers 304 to a caller who has that text
// already. Streams have none.
func tagged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			w = &tagWriter{ResponseWriter: w, known: r.Header.Values("If-None-Match")}
		}
		next.ServeHTTP(w, r)
	})
}

// tagWriter holds an answer's status back until its text is there.
type tagWriter struct {
	http.ResponseWriter
	// known are the caller's If-None-Match headers.
	known  []string
	status int
	// begun says that the header has been written, unchanged that the answer is a 304 and has no text.
	begun, unchanged bool
}

// WriteHeader remembers the status, where what follows may be a whole text.
func (t *tagWriter) WriteHeader(status int) {
	if t.status == 0 && status == http.StatusOK && t.Header().Get("Content-Length") != "" {
		t.status = status
		return
	}
	if !t.begun {
		t.begun = true
		t.ResponseWriter.WriteHeader(status)
	}
}

// Write writes a text; the first decides on the tag.
func (t *tagWriter) Write(text []byte) (int, error) {
	if !t.begun {
		t.begin(text)
	}
	if t.unchanged {
		return len(text), nil
	}
	return t.ResponseWriter.Write(text)
}

// begin writes the header.
func (t *tagWriter) begin(text []byte) {
	t.begun = true
	header := t.Header()
	if header.Get("Content-Length") == strconv.Itoa(len(text)) {
		tag := tagOf(text)
		header.Set("ETag", tag)
		if t.unchanged = isKnown(tag, t.known); t.unchanged {
			header.Del("Content-Length")
			header.Del("Content-Type")
			t.ResponseWriter.WriteHeader(http.StatusNotModified)
			return
		}
	}
	t.ResponseWriter.WriteHeader(http.StatusOK)
}

// Unwrap lets http.ResponseController reach the connection.
func (t *tagWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// tagOf returns a text's entity tag. It is weak: the text is the same, compressed or not.
func tagOf(text []byte) string {
	sum := sha256.Sum256(text)
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// isKnown says whether a list of If-None-Match headers has a tag, as weak tags are compared.
func isKnown(tag string, known []string) bool {
	tags := strings.Split(strings.Join(known, ","), ",")
	return slices.ContainsFunc(tags, func(t string) bool {
		t = strings.TrimSpace(t)
		return t == "*" || strings.TrimPrefix(t, "W/") == strings.TrimPrefix(tag, "W/")
	})
}
