package connect

import (
	"net/url"
	"strconv"
)

// Port is where a URL of http or https leads: what it names, or else what its scheme has. It is 0 where neither is a port.
func Port(u *url.URL) uint16 {
	if text := u.Port(); text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return 0
		}
		return uint16(port)
	}
	return map[string]uint16{"http": 80, "https": 443}[u.Scheme]
}
