// Package snippet is what a shop's web pages load to send events: a script, made small of weir.js beside it.
package snippet

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzhttp"
)

// script is weir.js as it is served; `make generate` writes it.
//
//go:embed weir.min.js
var script []byte

// Stub is what a page has before it loads the script: it remembers what the page tells it meanwhile.
const Stub = `<script>window.weir||((weir=function(){weir.q.push(arguments)}).q=[])</script>`

// maxAge is how long a browser takes a script without asking. It then asks whether there is another, and goes on with the
// one that it has meanwhile, for as long as another week.
const maxAge = "public, max-age=86400, stale-while-revalidate=604800"

// Handler returns what answers GET and HEAD with the script. It finds out where to send events by the address that it was
// loaded from: that of the key, with /weir.js behind it.
func Handler() http.Handler {
	// Weak, since the script is the same however it is compressed.
	tag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(script))[:20] + `"`
	return gzhttp.GzipHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "text/javascript; charset=utf-8")
		header.Set("Cache-Control", maxAge)
		header.Set("ETag", tag)
		header.Set("X-Content-Type-Options", "nosniff")
		// Pages that want to know what their scripts fail with, or that are isolated from others, may load it too.
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Cross-Origin-Resource-Policy", "cross-origin")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(script))
	}))
}
