package ingest

import (
	"net/http"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

// way is a way by which events come in: whose protocol they and the answers are of.
type way struct {
	// index is its place among the ways, and name what rejections and metrics call it.
	index int
	name  string
	// message answers {"message": …} in the protocol's form, and invalid the errors of what was sent.
	message func(w http.ResponseWriter, status int, text string)
	invalid func(w http.ResponseWriter, errs event.Errors)
}

// ways is how many there are.
const ways = 4

// The ways in. They are never changed.
var (
	viaCollect = &way{0, "collect", server.Message, server.Invalid}
	viaBatch   = &way{1, "batch", server.Message, server.Invalid}
	viaSegment = &way{2, "segment", segmentMessage, segmentInvalid}
	viaSources = &way{3, "sources", server.Message, server.Invalid}
)

// allWays has each at its index.
var allWays = [ways]*way{viaCollect, viaBatch, viaSegment, viaSources}
