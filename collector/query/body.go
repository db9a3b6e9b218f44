package query

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

// notObject is told to whoever sends a body that is none.
const notObject = "The body must be a JSON object."

// readBody reads a body of JSON of at most a number of bytes. Where it is false the request has been answered.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != typeJSON {
		server.Message(w, http.StatusUnsupportedMediaType, "The Content-Type must be application/json.")
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		server.Message(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("The body must not be larger than %d bytes.", most))
		return nil, false
	}
	if err != nil {
		server.Message(w, http.StatusBadRequest, notObject)
		return nil, false
	}
	return body, true
}

// readMembers reads a body that is one JSON object, of at most a number of bytes. Where it is false the request has been answered.
func readMembers[V any](w http.ResponseWriter, r *http.Request, most int64) (map[string]V, bool) {
	body, ok := readBody(w, r, most)
	if !ok {
		return nil, false
	}
	var members map[string]V
	if json.Unmarshal(body, &members) != nil || members == nil {
		server.Message(w, http.StatusBadRequest, notObject)
		return nil, false
	}
	return members, true
}

// unknownMembers says which members of a body are not known.
func unknownMembers[V any](members map[string]V, known ...string) (errs event.Errors) {
	are := "are"
	if len(known) == 1 {
		are = "is"
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(known, name) && len(errs) < maxUnknown {
			errs.Add(shortened(name), fmt.Sprintf("The %s field is unknown; known %s %s.", shortened(name), are, strings.Join(known, ", ")))
		}
	}
	return errs
}
