package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// maxBody bounds a delivery; the webhook specification asks senders to stay below 20 kB.
const maxBody = 1 << 20

// delivery is what the receiver reads of a webhook's body.
type delivery struct {
	Type string `json:"type"`
	Data struct {
		EventID  string       `json:"event_id"`
		Value    *json.Number `json:"value"`
		Currency *string      `json:"currency"`
		// User's values are hashes, lists of hashes or null; but the country, which is a code.
		User map[string]any `json:"user"`
	} `json:"data"`
}

// handler receives deliveries: 204 for a good one, 401 for a signature that does not match, 422 for a body in
// which something raw of a person is left or that cannot be read.
type handler struct {
	verifier *standardwebhooks.Webhook

	mu  sync.Mutex // one line at a time
	out io.Writer
}

// ServeHTTP takes one delivery.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "webhooks are POSTed", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	if err := h.verifier.Verify(body, r.Header); err != nil {
		h.print("REJECTED: " + err.Error())
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	line, err := describe(body)
	if err != nil {
		h.print("REJECTED: " + err.Error())
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	h.print(line + " · signature verified · no raw personal data")
	w.WriteHeader(http.StatusNoContent)
}

func (h *handler) print(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintln(h.out, "receiver:", line)
}

// describe checks a body and puts it in one line: the event's name, id and value, and the user's hashes,
// shortened. Its errors name the member that is at error and never repeat its value.
func describe(body []byte) (string, error) {
	var d delivery
	if err := json.Unmarshal(body, &d); err != nil {
		return "", errors.New("the body is not a webhook's JSON")
	}
	if d.Type == "" || d.Data.EventID == "" {
		return "", errors.New("type and data.event_id must be there")
	}
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		return "", errors.New("the body is not a webhook's JSON")
	}
	if path := rawPersonalData(tree, ""); path != "" {
		return "", fmt.Errorf("raw personal data in %s", path)
	}

	parts := []string{d.Type, "id " + d.Data.EventID}
	if d.Data.Value != nil && d.Data.Currency != nil {
		parts = append(parts, d.Data.Value.String()+" "+*d.Data.Currency)
	}
	for _, field := range slices.Sorted(maps.Keys(d.Data.User)) {
		values, isList := d.Data.User[field].([]any)
		if !isList {
			values = []any{d.Data.User[field]}
		}
		for _, value := range values {
			hash, isText := value.(string)
			switch {
			case value == nil, field == "country" && country.MatchString(hash):
			case !isText || !sha256Hex.MatchString(hash):
				return "", fmt.Errorf("data.user.%s must be null or 64 lower-case hex digits", field)
			case !isList: // of lists, the first stands alone as well
				parts = append(parts, fmt.Sprintf("%s %s…", field, hash[:8]))
			}
		}
	}
	return strings.Join(parts, " · "), nil
}

var (
	sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)
	country   = regexp.MustCompile(`^[A-Z]{2}$`)
	email     = regexp.MustCompile(`[^\s@/:]+@[^\s@/]+\.[^\s@/]+`)
	phone     = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)
)

// rawPersonalData returns the path of the first string in value that reads like an e-mail address or an E.164
// phone number, or "".
func rawPersonalData(value any, path string) string {
	switch value := value.(type) {
	case string:
		if email.MatchString(value) || phone.MatchString(value) {
			return path
		}
	case []any:
		for i, item := range value {
			if found := rawPersonalData(item, fmt.Sprintf("%s.%d", path, i)); found != "" {
				return found
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if found := rawPersonalData(value[name], strings.TrimPrefix(path+"."+name, ".")); found != "" {
				return found
			}
		}
	}
	return ""
}
