package query

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/collector/server"
)

// The media types of answers.
const (
	typeJSON   = "application/json"
	typeCSV    = "text/csv"
	typeNDJSON = "application/x-ndjson"
)

// format is a media type that a call can answer in.
type format string

// The formats of calls, the one for callers who have no preference first.
var (
	object = []format{typeJSON}
	table  = []format{typeJSON, typeCSV, typeNDJSON}
)

// negotiate returns the offer that the request's Accept header likes best, the first of several. Where it accepts
// none it answers 406 and returns "".
func negotiate(w http.ResponseWriter, r *http.Request, offers []format) format {
	w.Header().Add("Vary", "Accept")
	ranges := acceptedRanges(r.Header.Values("Accept"))
	if len(ranges) == 0 {
		return offers[0]
	}
	best, bestQuality := format(""), 0
	for _, offer := range offers {
		if quality := qualityOf(string(offer), ranges); quality > bestQuality {
			best, bestQuality = offer, quality
		}
	}
	if best == "" {
		names := make([]string, len(offers))
		for i, offer := range offers {
			names[i] = string(offer)
		}
		server.Message(w, http.StatusNotAcceptable, "This call answers in "+strings.Join(names, ", ")+".")
	}
	return best
}

// mediaRange is an element of an Accept header.
type mediaRange struct {
	// kind and sub are lower-case; "*" stands for any.
	kind, sub string
	// quality counts thousandths.
	quality int
}

// acceptedRanges reads Accept headers. What is malformed is passed over, as if it were not there.
func acceptedRanges(headers []string) []mediaRange {
	var ranges []mediaRange
	for element := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		full, parameters, err := mime.ParseMediaType(element)
		if err != nil {
			continue
		}
		kind, sub, found := strings.Cut(full, "/")
		quality, valid := parseQuality(parameters["q"])
		if !found || !valid || (kind == "*" && sub != "*") {
			continue
		}
		ranges = append(ranges, mediaRange{kind, sub, quality})
	}
	return ranges
}

// parseQuality reads a weight, "0" to "1" with at most three decimals; without one it is 1.
func parseQuality(text string) (thousandths int, valid bool) {
	if text == "" {
		return 1000, true
	}
	whole, decimals, _ := strings.Cut(text, ".")
	if len(whole) != 1 || len(decimals) > 3 {
		return 0, false
	}
	n, err := strconv.ParseUint(whole+decimals+strings.Repeat("0", 3-len(decimals)), 10, 16)
	return int(n), err == nil && n <= 1000
}

// qualityOf returns the weight of a media type: that of the most specific range it is in, 0 where it is in none.
func qualityOf(offer string, ranges []mediaRange) int {
	kind, sub, _ := strings.Cut(offer, "/")
	for _, wanted := range []mediaRange{{kind: kind, sub: sub}, {kind: kind, sub: "*"}, {kind: "*", sub: "*"}} {
		i := slices.IndexFunc(ranges, func(r mediaRange) bool { return r.kind == wanted.kind && r.sub == wanted.sub })
		if i >= 0 {
			return ranges[i].quality
		}
	}
	return 0
}
