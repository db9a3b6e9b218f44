package query

import (
	"embed"
	"net/http"

	"github.com/go-chi/chi/v5"
)

// openAPI describes this API as an OpenAPI 3.1 document; the tests hold it against the answers.
//
//go:embed openapi.json
var openAPI []byte

// docs is the page that shows openAPI to people. Everything it needs is in it.
//
//go:embed docs
var docs embed.FS

// docsPolicy lets the page load its own style, script and the description, and nothing else.
const docsPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// describe mounts the API's description, which needs no token.
func describe(r chi.Router) {
	get := func(pattern, contentType string, text []byte) {
		handle := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Security-Policy", docsPolicy)
			answerText(w, contentType, text)
		}
		r.Get(pattern, handle)
		r.Head(pattern, handle)
	}
	get("/api/v1/openapi.json", typeJSON, openAPI)
	for _, file := range []struct{ pattern, name, contentType string }{
		{"/docs", "docs/index.html", "text/html; charset=utf-8"},
		{"/docs/docs.css", "docs/docs.css", "text/css; charset=utf-8"},
		{"/docs/docs.js", "docs/docs.js", "text/javascript; charset=utf-8"},
	} {
		text, err := docs.ReadFile(file.name)
		if err != nil {
			panic(err) // a file that was renamed: every test that mounts the routes finds it
		}
		get(file.pattern, file.contentType, text)
	}
}
