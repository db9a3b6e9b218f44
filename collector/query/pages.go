package query

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/dashboard"
	"github.com/weir-dev/weir/collector/server"
)

// pagePath is below which a property's page lies. It ends where its cookie's path ends.
func pagePath(property string) string { return "/properties/" + property + "/" }

// pages mounts each property's page: what a browser loads, which is the same for everybody, the session, and below api/ what can be
// asked of the property, for whoever is signed in. Whether there is such a property is told to nobody who is not.
func (h *Handler) pages(r chi.Router) {
	files, err := dashboard.New()
	if err != nil {
		panic(err) // a file is missing or of an unknown type: every test that mounts the routes finds it
	}
	get := func(r chi.Router, pattern string, handler http.HandlerFunc) {
		r.Get(pattern, handler)
		r.Head(pattern, handler)
	}
	if h.local != nil {
		get(r, "/", h.home)
	}
	static := files.ServeStatic(server.NotFound)
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(refuseOrigin))
	const base = "/properties/{" + propertyParameter + "}"
	r.Group(func(r chi.Router) { // no router of its own, which would take any method at its root
		r.Use(pageHeaders, namesProperty, protection.Handler)
		get(r, base, dashboard.WithSlash(files.Shell()))
		get(r, base+"/", dashboard.WithSlash(files.Shell()))
		for _, pattern := range dashboard.FilePatterns() {
			get(r, base+pattern, static)
		}
		r.Group(func(r chi.Router) {
			r.Use(ownPageOnly)
			get(r, base+"/session", h.session)
			r.Post(base+"/session", h.signIn)
			r.Delete(base+"/session", h.signOut)
		})
		r.Route(base+"/api", func(r chi.Router) {
			r.Use(ownPageOnly, tagged)
			h.calls(r, entrance{h.bySession, h.refuseSession})
		})
	})
}

// pageHeaders bound what a browser does with an answer below a page's base.
func pageHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dashboard.Headers(w.Header())
		next.ServeHTTP(w, r)
	})
}

// namesProperty answers 404 where the path names what no Property can be called.
func namesProperty(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !config.IsPropertyName(server.PathParameter(r, propertyParameter)) {
			server.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownPageOnly refuses what a browser asks for a page of another site or host. That a form of such a page has no body of JSON is seen to
// where the body is read.
func ownPageOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !dashboard.FromOwnPage(r) {
			refuseOrigin(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuseOrigin answers a request that another page's script or form has made.
func refuseOrigin(w http.ResponseWriter, _ *http.Request) {
	server.Message(w, http.StatusForbidden, "Only the property's own page may ask this.")
}
