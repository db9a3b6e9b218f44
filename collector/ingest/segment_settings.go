package ingest

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/weir-dev/weir/collector/server"
)

// segmentSettingsPath is what analytics.js asks for before it sends anything.
const segmentSettingsPath = "/v1/projects/{write_key}/settings"

// segmentSettings is the answer, as far as analytics.js reads it: where to send events, and that it is to tell nobody how it
// fares.
type segmentSettings struct {
	Integrations struct {
		Segment segmentIntegration `json:"Segment.io"`
	} `json:"integrations"`
	Metrics struct {
		SampleRate int `json:"sampleRate"`
	} `json:"metrics"`
}

type segmentIntegration struct {
	APIKey string `json:"apiKey"`
	// APIHost is the host with the beginning of the path.
	APIHost  string `json:"apiHost"`
	Protocol string `json:"protocol"`
	// DeliveryStrategy lets what is sent when a page is left arrive.
	DeliveryStrategy struct {
		Config struct {
			KeepAlive bool `json:"keepalive"`
		} `json:"config"`
	} `json:"deliveryStrategy"`
}

// segmentSettings answers GET /v1/projects/{write_key}/settings: events go to the host that was asked.
func (h *Handler) segmentSettings(w http.ResponseWriter, r *http.Request) {
	key := server.PathParameter(r, "write_key")
	s, found := h.senderOf(viaSegment, key)
	switch {
	case !found:
		refuseKey(w, viaSegment)
		return
	case s.web == nil:
		s.note(w, slog.String("reason", secretInPage))
		segmentMessage(w, http.StatusForbidden, secretInPage)
		return
	case !s.web.share(w, r.Header["Origin"]):
		s.note(w, slog.String("reason", foreignOrigin))
		segmentMessage(w, http.StatusForbidden, foreignOrigin)
		return
	}
	var settings segmentSettings
	to := &settings.Integrations.Segment
	to.APIKey, to.APIHost, to.Protocol = key, r.Host+"/v1", "https"
	if isLocal(r.Host) { // weir dev has no certificate, and a page of its machine needs none
		to.Protocol = "http"
	}
	to.DeliveryStrategy.Config.KeepAlive = true
	w.Header().Set("Cache-Control", "public, max-age=300")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	server.JSON(w, http.StatusOK, settings)
}

// isLocal says whether a host, perhaps with a port, is the visitor's own machine.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && address.IsLoopback()
}
