package server

import "github.com/go-chi/chi/v5"

// NewRouter returns a router without routes: every request is observed, and what has no route is answered 404
// or 405 as the rest of the API answers.
func NewRouter(observer *Observer) chi.Router {
	router := chi.NewRouter()
	router.Use(observer.Middleware)
	router.NotFound(NotFound)
	router.MethodNotAllowed(MethodNotAllowed)
	return router
}
