package query

import (
	"fmt"
	"html"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/dashboard"
	"github.com/weir-dev/weir/collector/server"
)

// Local is what `weir dev` adds on the machine of its user, who can read its files anyway: whoever asks from a browser there is let
// in without a token, and is shown the API keys.
type Local struct {
	// APIKeys are the keys themselves, by property, as NAMESPACE/NAME, and by name.
	APIKeys map[string]map[string]string
}

// forwardedBy are what headers begin with that proxies, tunnels and content delivery networks add to requests that they pass on.
var forwardedBy = []string{
	"Forwarded", "Via", "X-Forwarded", "X-Original-", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Cdn-Loop", "Cf-", "Fly-",
}

// atTheMachine says whether a request is made by a browser, or another program, on the machine of `weir dev`, for a page of its own:
// by an address of this machine, to a name of this machine, by nobody in between, and by no other site's page. A name that
// somebody else has let point here is none of this machine's. Old proxies speak HTTP/1.0, and say nothing of themselves.
func (h *Handler) atTheMachine(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if h.local == nil || err != nil || !peer.Addr().Unmap().IsLoopback() || !isLoopbackHost(r.Host) || !dashboard.FromOwnPage(r) || !fromOwnOrigin(r) ||
		!r.ProtoAtLeast(1, 1) {
		return false
	}
	for name := range r.Header {
		if slices.ContainsFunc(forwardedBy, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return false
		}
	}
	return true
}

// fromOwnOrigin says whether the page that asks, where the browser names its origin, is of the host that is asked.
func fromOwnOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	page, err := url.Parse(origin)
	return err == nil && page.Host != "" && strings.EqualFold(page.Host, r.Host)
}

// isLoopbackHost says whether the header Host names the machine itself, whatever the port.
func isLoopbackHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.EqualFold(name, "localhost") || name == "127.0.0.1" || name == "::1"
}

// front is the page that lists those of several properties. It is written as it stands here: a program that links the library's
// templates is half as large again.
const front = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Weir</title>
<link rel="stylesheet" href="properties/%s/static/app.css"></head>
<body><main class="alone"><div class="login panel"><h1>Properties</h1><ul>%s</ul></div></main></body>
</html>
`

// home leads to the page of the property that there is, or lists those of several, for whom one click lets in: others are not told
// which properties there are.
func (h *Handler) home(w http.ResponseWriter, r *http.Request) {
	if !h.atTheMachine(r) {
		server.NotFound(w, r)
		return
	}
	var names []string
	for _, tenant := range *h.tenants.Load() {
		names = append(names, tenant.Property.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 1 {
		w.Header().Set("Location", "properties/"+names[0]+"/")
		w.WriteHeader(http.StatusFound)
		return
	}
	if len(names) == 0 {
		server.NotFound(w, r)
		return
	}
	var items strings.Builder
	for i, name := range names {
		names[i] = html.EscapeString(name)
		fmt.Fprintf(&items, `<li><a href="properties/%[1]s/">%[1]s</a></li>`, names[i])
	}
	dashboard.Headers(w.Header())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(w, front, names[0], items.String()) // the caller has gone: there is nobody left to tell
}
