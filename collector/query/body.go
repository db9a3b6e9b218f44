package query

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/weir-dev/weir/collector/server"
)

// notObject is told to whoever sends a body that is none.
const notObject = "The body must be a JSON object."

// readBody reads a body of JSON of at most a number of bytes. Where it is false the request has been answered.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
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
