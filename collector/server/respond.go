package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/event"
)

// JSON answers with status and body as JSON. body must be a value that marshals without error.
func JSON(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		// Only a programming error gets here; the recoverer turns it into a 500 and a log line.
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // the caller has gone: there is nobody left to tell
}

// Message answers {"message": …}.
func Message(w http.ResponseWriter, status int, text string) { JSON(w, status, message{text}) }

// message is the body of an error.
type message struct {
	Message string `json:"message"`
}

// Invalid answers 422 with the errors.
func Invalid(w http.ResponseWriter, errs event.Errors) {
	JSON(w, http.StatusUnprocessableEntity, errs)
}

// Unavailable answers 503 and asks the caller to come back after the given time.
func Unavailable(w http.ResponseWriter, message string, after time.Duration) {
	RetryAfter(w, after)
	Message(w, http.StatusServiceUnavailable, message)
}

// RetryAfter asks the caller, in the header, to come back after the given time: in whole seconds, rounded up, at
// least one.
func RetryAfter(w http.ResponseWriter, after time.Duration) {
	seconds := (after + time.Second - 1) / time.Second
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(seconds))))
}
