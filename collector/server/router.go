package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
)

// NewRouter returns a router without routes: every request is observed, and what has no route is answered 404
// or 405 as the rest of the API answers.
func NewRouter(observer *Observer) chi.Router {
	router := chi.NewRouter()
	router.Use(observer.Middleware, PlainPath)
	router.NotFound(SecurityHeaders(http.HandlerFunc(NotFound)).ServeHTTP)
	router.MethodNotAllowed(SecurityHeaders(http.HandlerFunc(MethodNotAllowed)).ServeHTTP)
	return router
}

// PlainPath lets requests be routed alike however their path is escaped: what needs no escape is routed without, so that
// /%65vents is /events. A slash that is escaped belongs to its segment.
func PlainPath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawPath != "" {
			plain := *r.URL
			segments := strings.Split(plain.RawPath, "/")
			for i, segment := range segments {
				if text, err := url.PathUnescape(segment); err == nil {
					segments[i] = url.PathEscape(text)
				}
			}
			plain.RawPath = strings.Join(segments, "/")
			copied := *r
			copied.URL = &plain
			r = &copied
		}
		next.ServeHTTP(w, r)
	})
}

// PathParameter returns a parameter of the path that a request was routed by, unescaped once; "" where its escapes are
// wrong.
func PathParameter(r *http.Request, name string) string {
	value := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return value
	}
	value, _ = url.PathUnescape(value)
	return value
}
