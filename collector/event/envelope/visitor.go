package envelope

import (
	"net/netip"
	"strings"

	"github.com/weir-dev/weir/collector/event/personal"
)

// Visitor is what a connection tells of whoever is at its other end, in place of what an envelope says.
type Visitor struct {
	// Address is the zero address where it is not known.
	Address netip.Addr
	// UserAgent is as it was sent.
	UserAgent string
	// Languages are those that the browser prefers, the first one most: the value of the header Accept-Language.
	Languages string
}

// Name is the event's name, after the aliases.
func (v *Valid) Name() string { return v.event.Name }

// SentBy puts what the visitor's own connection tells in place of what the envelope says: anybody could write that.
func (v *Valid) SentBy(visitor Visitor) {
	v.event.Context.IP, v.event.Context.UserAgent = "", ""
	if visitor.Address.IsValid() {
		v.event.Context.IP = visitor.Address.String()
	}
	if agent := strings.ToValidUTF8(visitor.UserAgent, ""); len(agent) <= maxUserAgentLength && !hasControl(agent) {
		v.event.Context.UserAgent = personal.WithoutNobody(agent)
	}
	if v.event.Context.Language == "" && len(visitor.Languages) <= maxTextLength {
		v.event.Context.Language, _ = parseLanguage(visitor.Languages)
	}
}
