package server

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// NewRouter returns a router without routes: every request is observed, and what has no route is answered 404
// or 405 as the rest of the API answers.
func NewRouter(observer *Observer) chi.Router {
	router := chi.NewRouter()
	router.Use(observer.Middleware)
	router.NotFound(SecurityHeaders(http.HandlerFunc(NotFound)).ServeHTTP)
	router.MethodNotAllowed(SecurityHeaders(http.HandlerFunc(MethodNotAllowed)).ServeHTTP)
	return router
}
