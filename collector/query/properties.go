package query

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/server"
)

type propertiesAnswer struct {
	Data []propertyRecord `json:"data"`
}

// propertyRecord is a property that a token may see.
type propertyRecord struct {
	Property  string     `json:"property"`
	Namespace string     `json:"namespace"`
	TimeZone  string     `json:"time_zone"`
	Currency  string     `json:"currency"`
	Scope     auth.Scope `json:"scope"`
}

// properties answers GET /properties: which properties the token may see.
func (h *Handler) properties(w http.ResponseWriter, r *http.Request, _ *Tenant) {
	grants := grantsOf(*h.tenants.Load(), bearerToken(r.Header), h.now())
	if len(grants) == 0 {
		h.refuse(w, r)
		return
	}
	server.Authenticated(r)
	seen := []propertyRecord{}
	for _, g := range grants {
		g.noteUse()
		if p := &g.tenant.Property; g.credential.Scope.Allows(auth.ScopeRead) {
			seen = append(seen, propertyRecord{p.Name, p.Namespace, p.TimeZone, p.Currency, g.credential.Scope})
		}
	}
	if len(seen) == 0 {
		server.Message(w, http.StatusForbidden, "This action is unauthorized.")
		return
	}
	if negotiate(w, r, object) == "" || !withoutParameters(w, r) {
		return
	}
	slices.SortFunc(seen, func(a, b propertyRecord) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Property, b.Property))
	})
	server.JSON(w, http.StatusOK, propertiesAnswer{seen})
}
