package adapter

import (
	"crypto/sha256"
	"errors"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/personal"
	"github.com/weir-dev/weir/collector/platforms"
)

// timestampFormat is RFC 3339 with milliseconds.
const timestampFormat = "2006-01-02T15:04:05.000Z07:00"

// jsonHeader is what every request with a JSON body starts from.
func jsonHeader() http.Header {
	return http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Weir"}}
}

// baseURL is the platform's own base URL, or the endpoint that the operator has put in its place.
func baseURL(cfg platforms.Platform, own string) string {
	if cfg.Endpoint != "" {
		return strings.TrimSuffix(cfg.Endpoint, "/")
	}
	return own
}

// hostedURL is the base URL of a platform that owners may have servers of their own of: that of a host where there is one, else the
// region's. member is the settings' name, for an error.
func hostedURL(cfg platforms.Platform, member, host string, regions map[platforms.Region]string, region platforms.Region) (string, error) {
	if host == "" {
		return baseURL(cfg, regions[region]), nil
	}
	if region != "" {
		return "", errors.New(member + ".host must be absent where " + member + ".region is set")
	}
	if strings.ContainsAny(host, "?#") {
		return "", errors.New(member + ".host must be a URL without a query and a fragment: a path is added to it")
	}
	return baseURL(cfg, strings.TrimSuffix(host, "/")), nil
}

// apiVersion is the version of the platform's interface that is spoken.
func apiVersion(cfg platforms.Platform) string { return cfg.Type.Version(cfg.APIVersion).Name }

// bodyPayload renders an event in the platform's own form.
func bodyPayload(own any) (Payload, Verdict) {
	body, err := json.Marshal(own)
	if err != nil {
		return Payload{}, Verdict{Class: Permanent, Reason: "unrenderable"}
	}
	return Payload{Body: body}, Verdict{}
}

// joinBodies writes the payloads as the members of a JSON array, with head before and tail behind them.
func joinBodies(head string, batch []Payload, tail []byte) []byte {
	size := len(head) + len(batch) + len(tail)
	for _, payload := range batch {
		size += len(payload.Body)
	}
	body := append(make([]byte, 0, size), head...)
	for i, payload := range batch {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, payload.Body...)
	}
	return append(body, tail...)
}

// hashes is a list of one, or none for the zero hash.
func hashes(hash event.Hash) []string {
	if hash.IsZero() {
		return nil
	}
	return []string{hash.String()}
}

// first is the first of a list, "" of none.
func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// externalIDs are the hashes of the visitor's account and of their browser or device, as advertising platforms get them.
func (e *Event) externalIDs() []string {
	list := hashes(personal.ExternalID(e.UserID))
	if client := personal.ExternalID(e.ClientID).String(); client != "" && !slices.Contains(list, client) {
		list = append(list, client)
	}
	return list
}

// countryHash is the hash of the country's code in lower case, as Meta and Pinterest have it.
func (e *Event) countryHash() []string {
	if e.Country == "" {
		return nil
	}
	return hashes(sha256.Sum256([]byte(strings.ToLower(e.Country))))
}

// anyNumber is for what takes as many of a person's contacts as there are.
const anyNumber = math.MaxInt

// contacts are the hashes of the person's e-mail addresses or phone numbers in a variant, each once, and not more than most.
func (e *Event) contacts(v event.Variant, most int) []string {
	list := hashes(e.User.Get(v))
	for i := range e.MoreContacts {
		if hash := e.MoreContacts[i].Get(v); !hash.IsZero() && !slices.Contains(list, hash.String()) {
			list = append(list, hash.String())
		}
	}
	return list[:min(len(list), most)]
}

// publicIP is the visitor's address where it is one of the internet's. Those of a private network or of the machine itself
// are shared by all who look at a shop through the same proxy, and tell of nobody.
func publicIP(text string) string {
	address, err := netip.ParseAddr(text)
	if err != nil || !address.IsGlobalUnicast() || address.IsPrivate() {
		return ""
	}
	return text
}

// amountText is an amount as text, "" for none.
func amountText(amount *event.Amount) string {
	if amount == nil {
		return ""
	}
	return amount.String()
}

func setOf(words ...string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, word := range words {
		set[word] = true
	}
	return set
}
