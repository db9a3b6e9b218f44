package adapter

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// googleError is the standard error of Google's APIs.
type googleError struct {
	Error struct {
		Status  string `json:"status"`
		Details []struct {
			Reason     string `json:"reason"`
			Violations []struct {
				Field  string `json:"field"`
				Reason string `json:"reason"`
			} `json:"fieldViolations"`
		} `json:"details"`
	} `json:"error"`
}

var (
	// googleRow finds the event that a violation is about.
	googleRow = regexp.MustCompile(`(?:^|\.)events\[([0-9]{1,5})\]`)
	// googleReason is what a reason may be to be shown.
	googleReason = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,99}$`)
	// googleAccountReasons are reasons that are about the account or its conversion actions, so that another event would fare alike.
	googleAccountReasons = setOf(
		"invalid_destination", "invalid_conversion_action_id", "invalid_conversion_action_type", "terms_and_conditions_not_signed",
		"destination_account_not_enabled_enhanced_conversions_for_leads", "destination_account_data_policy_prohibits_enhanced_conversions",
		"destination_account_enhanced_conversions_terms_not_signed", "permission_denied", "not_found",
	)
)

// googleWord is a reason in the form of those in delivery records, fallback where it is none.
func googleWord(reason, fallback string) string {
	if !googleReason.MatchString(reason) {
		return fallback
	}
	for _, prefix := range []string{"PROCESSING_ERROR_REASON_", "PROCESSING_ERROR_"} {
		reason = strings.TrimPrefix(reason, prefix)
	}
	return strings.ToLower(reason)
}

// Classify: Google takes a request as a whole or not at all. What it has taken is queued.
func (a *googleAdapter) Classify(r Response, n int) []Verdict {
	if r.Status != http.StatusOK {
		return googleRefusals(r, n)
	}
	if a.settings.Test {
		return forAll(n, Verdict{Class: Delivered}) // there is nothing to wait for
	}
	var answer struct {
		RequestID string `json:"requestId"`
	}
	if err := json.Unmarshal(r.Body, &answer); err != nil || !isTicket(answer.RequestID) {
		// The same transaction's id makes a repeat harmless.
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	}
	return forAll(n, Verdict{Class: Queued, Reason: "queued", After: a.firstLook, Ticket: answer.RequestID})
}

// isTicket says whether a request's id can be kept and asked for.
func isTicket(id string) bool {
	return id != "" && len(id) <= 128 && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

// googleRefusals reads an error. Where it names the events to blame, these have failed and the others are sent again.
func googleRefusals(r Response, n int) []Verdict {
	status := classifyStatus(r, n)
	switch {
	case isHTML(r) && (status.Class == Isolate || status.Class == Permanent): // of what stands before Google
		return forAll(n, Verdict{Class: Retry, Reason: "http_" + strconv.Itoa(r.Status)})
	case r.Status != http.StatusBadRequest:
		return forAll(n, status)
	}
	var answer googleError
	if err := json.Unmarshal(r.Body, &answer); err != nil {
		return forAll(n, status)
	}
	verdicts := forAll(n, Verdict{Class: Retry, Reason: "batch_refused"})
	named := 0
	for _, detail := range answer.Error.Details {
		if reason := googleWord(detail.Reason, ""); googleAccountReasons[reason] {
			return forAll(n, Verdict{Class: Config, Reason: reason})
		}
		for _, violation := range detail.Violations {
			reason := googleWord(violation.Reason, "refused")
			if googleAccountReasons[reason] {
				return forAll(n, Verdict{Class: Config, Reason: reason})
			}
			row := googleRow.FindStringSubmatch(violation.Field)
			if row == nil {
				return forAll(n, refused(n, reason))
			}
			i, err := strconv.Atoi(row[1])
			if err != nil || i >= n {
				return forAll(n, refused(n, reason))
			}
			if verdicts[i].Class != Permanent {
				verdicts[i] = Verdict{Class: Permanent, Reason: reason}
				named++
			}
		}
	}
	if named == 0 {
		return forAll(n, status)
	}
	return verdicts
}

// googleStatus is the answer to a look, as far as it is read.
type googleStatus struct {
	Destinations []struct {
		Status string `json:"requestStatus"`
		Errors struct {
			Counts []struct {
				Reason string `json:"reason"`
			} `json:"errorCounts"`
		} `json:"errorInfo"`
	} `json:"requestStatusPerDestination"`
}

// Tracked reads what has become of a request.
func (a *googleAdapter) Tracked(r Response, n int, age time.Duration) []Verdict {
	again := Verdict{Class: Queued, Reason: "queued", After: min(max(age, a.firstLook), googleMostLook)}
	if age >= googlePatience {
		again = Verdict{Class: Permanent, Reason: "status_unknown"}
	}
	if r.Status != http.StatusOK {
		return forAll(n, googleStatusRefused(r, again))
	}
	var answer googleStatus
	if err := json.Unmarshal(r.Body, &answer); err != nil || len(answer.Destinations) != 1 {
		return forAll(n, again)
	}
	destination := answer.Destinations[0]
	var reasons []Verdict
	for _, count := range destination.Errors.Counts {
		reasons = append(reasons, googleProcessed(googleWord(count.Reason, "refused")))
	}
	switch destination.Status {
	case "SUCCESS":
		return forAll(n, Verdict{Class: Delivered})
	case "FAILED", "PARTIAL_SUCCESS":
		alike := len(reasons) > 0
		for _, reason := range reasons {
			alike = alike && reason == reasons[0]
		}
		switch {
		case n > 1 && (destination.Status == "PARTIAL_SUCCESS" || !alike && len(reasons) > 0):
			return forAll(n, Verdict{Class: Isolate, Reason: "partial_success"})
		case len(reasons) > 0:
			return forAll(n, reasons[0])
		}
		return forAll(n, Verdict{Class: Permanent, Reason: "request_failed"})
	}
	return forAll(n, again)
}

// googleStatusRefused reads an error of a look. A request that Google does not know has to be made again.
func googleStatusRefused(r Response, again Verdict) Verdict {
	var answer googleError
	if err := json.Unmarshal(r.Body, &answer); err != nil {
		return again
	}
	unknown := r.Status == http.StatusNotFound && answer.Error.Status == "NOT_FOUND"
	for _, detail := range answer.Error.Details {
		unknown = unknown || detail.Reason == "INVALID_REQUEST_ID"
	}
	if unknown {
		return Verdict{Class: Waiting, Reason: "request_unknown"}
	}
	return again
}

// googleProcessed is what a reason for which events failed after they were queued means.
func googleProcessed(reason string) Verdict {
	switch reason {
	case "event_too_old":
		return Verdict{Class: Expired, Reason: "too_old"}
	case "duplicate_transaction_id", "duplicate_gclid":
		return Verdict{Class: Delivered}
	case "internal_error":
		return Verdict{Class: Retry, Reason: reason}
	case "too_recent_click":
		return Verdict{Class: Waiting, Reason: reason, After: 6 * time.Hour}
	case "destination_account_enhanced_conversions_terms_not_signed":
		return Verdict{Class: Waiting, Reason: reason, After: time.Hour} // until the owner has signed them
	}
	return Verdict{Class: Permanent, Reason: reason}
}
