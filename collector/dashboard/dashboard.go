// Package dashboard holds the page on which people look at a property's numbers: HTML, styles and scripts, the same for
// everybody, without any data. Whoever mounts it says below which path, and who may read what the page asks for.
package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// Policy lets the page load what is served beside it, and nothing else; nobody else's page may show it in a frame.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Headers set what keeps a browser from doing more with an answer below the page's base than the page needs.
func Headers(header http.Header) {
	header.Set("Content-Security-Policy", Policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
}

// contentTypes are those of the files' endings.
var contentTypes = map[string]string{
	".html":  "text/html; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".mjs":   "text/javascript; charset=utf-8",
	".json":  "application/json",
	".svg":   "image/svg+xml",
	".png":   "image/png",
	".ico":   "image/x-icon",
	".woff2": "font/woff2",
	".txt":   "text/plain; charset=utf-8",
}

// Files are the page's, ready to be served. They are safe for concurrent use.
type Files map[string]*file

// shell is the file that a browser opens for one property, consoleShell for all of a cluster's.
const (
	shell        = "index.html"
	consoleShell = "console.html"
)

// New reads the files. It fails where one is of a type that is not known.
func New() (Files, error) { return load(static) }

func load(files fs.FS) (Files, error) {
	all := Files{}
	err := fs.WalkDir(files, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		kind, known := contentTypes[path.Ext(name)]
		if !known {
			return fmt.Errorf("%s: must end in .html, .css, .js or another ending whose type is known", name)
		}
		all[strings.TrimPrefix(name, "static/")] = newFile(kind, text)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the page: %w", err)
	}
	for _, needed := range []string{shell, consoleShell} {
		if all[needed] == nil {
			return nil, fmt.Errorf("the page: static/%s is missing", needed)
		}
	}
	return all, nil
}

// Shell serves the HTML that a browser opens for one property.
func (f Files) Shell() http.Handler { return f[shell] }

// Console serves the HTML that a browser opens for all properties of a cluster.
func (f Files) Console() http.Handler { return f[consoleShell] }

// FilePatterns are the paths of the pages' files below a page's base, some folders deep. A pattern for each file would be a time series
// of metrics, too.
func FilePatterns() []string {
	return []string{"/static/{file}", "/static/{folder}/{file}", "/static/{folder}/{subfolder}/{file}"}
}

// ServeStatic serves the files that a page loads by what stands after static/, whatever the page's base; notFound answers for others.
func (f Files) ServeStatic(notFound http.HandlerFunc) http.HandlerFunc {
	byPath := maps.Collect(f.Static())
	return func(w http.ResponseWriter, r *http.Request) {
		_, name, _ := strings.Cut(r.URL.Path, "/static/")
		if file, found := byPath[name]; found {
			file.ServeHTTP(w, r)
			return
		}
		notFound(w, r)
	}
}

// WithSlash serves a page at its base, and sends a browser there that asks without the slash at the end, by which the page finds what
// is beside it. The way is relative: it leads to no other host, whatever the path.
func WithSlash(page http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			page.ServeHTTP(w, r)
			return
		}
		to := url.URL{Path: path.Base(r.URL.Path) + "/", RawQuery: r.URL.RawQuery}
		w.Header().Set("Location", to.String())
		w.WriteHeader(http.StatusFound)
	}
}

// FromOwnPage says whether a request is not one that a browser makes for a page of another origin. Browsers that do not say are kept
// from that by the cookie's SameSite.
func FromOwnPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none"
}

// Static returns the other files, by their paths below static/.
func (f Files) Static() iter.Seq2[string, http.Handler] {
	return func(yield func(string, http.Handler) bool) {
		for _, name := range slices.Sorted(maps.Keys(f)) {
			if name != shell && name != consoleShell && !yield(name, f[name]) {
				return
			}
		}
	}
}

// file is one of them.
type file struct {
	contentType, etag string
	// packed is the text in gzip, nil where that is not shorter.
	text, packed []byte
}

func newFile(contentType string, text []byte) *file {
	sum := sha256.Sum256(text)
	f := &file{contentType: contentType, text: text, etag: `W/"` + hex.EncodeToString(sum[:12]) + `"`}
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is one that there is
	_, err := w.Write(text)
	if err == nil && w.Close() == nil && packed.Len() < len(text) {
		f.packed = packed.Bytes()
	}
	return f
}

// ServeHTTP answers GET and HEAD. A browser asks each time whether what it has is still the same.
func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	Headers(header)
	header.Set("Cache-Control", "no-cache")
	header.Set("Content-Type", f.contentType)
	header.Set("Etag", f.etag)
	text := f.text
	if f.packed != nil {
		header.Set("Vary", "Accept-Encoding")
		if acceptsGzip(r.Header.Values("Accept-Encoding")) {
			header.Set("Content-Encoding", "gzip")
			text = f.packed
		}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
}

// acceptsGzip reads the header Accept-Encoding.
func acceptsGzip(lines []string) bool {
	for coding := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		text, given := strings.CutPrefix(strings.ToLower(strings.TrimSpace(weight)), "q=")
		q, err := strconv.ParseFloat(text, 64)
		return !given || err != nil || q > 0
	}
	return false
}
