package adapter

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// googleError is the standard error of Google's APIs.
type googleError struct {
	Error struct {
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
	if r.Status < 200 || r.Status > 299 {
		return googleRefusals(r, n)
	}
	var answer struct {
		RequestID string `json:"requestId"`
	}
	switch err := json.Unmarshal(r.Body, &answer); {
	case err != nil, isHTML(r), !a.settings.Test && !isTicket(answer.RequestID):
		// The same transaction's id makes a repeat harmless.
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	case a.settings.Test:
		return forAll(n, Verdict{Class: Delivered}) // there is nothing to wait for
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
	case isHTML(r) && r.Status >= 400:
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
		Destination struct {
			Operating struct {
				ID string `json:"accountId"`
			} `json:"operatingAccount"`
			Product string `json:"productDestinationId"`
		} `json:"destination"`
		Status string `json:"requestStatus"`
		Errors struct {
			Counts []struct {
				Reason string `json:"reason"`
			} `json:"errorCounts"`
		} `json:"errorInfo"`
	} `json:"requestStatusPerDestination"`
}

// Tracked reads what has become of a request.
func (a *googleAdapter) Tracked(r Response, look Look) []Verdict {
	n := len(look.Refunds)
	again := Verdict{Class: Queued, Reason: "queued", After: min(max(look.Age, a.firstLook), googleMostLook)}
	if look.Age >= googlePatience {
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
	account, product, known := strings.Cut(look.Group, "/")
	if named := destination.Destination; known && (differs(named.Operating.ID, account) || differs(named.Product, product)) {
		return forAll(n, again) // it is not what was sent that this is about
	}
	var reasons []string
	for _, count := range destination.Errors.Counts {
		if reason := googleWord(count.Reason, "refused"); !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	alone := look.Sent == 1 || look.Sent == 0 && n == 1
	switch partial := destination.Status == "PARTIAL_SUCCESS"; {
	case destination.Status == "SUCCESS" && len(reasons) == 0:
		return forAll(n, Verdict{Class: Delivered})
	case !partial && destination.Status != "FAILED":
		return forAll(n, again)
	case !alone && (partial || len(reasons) > 1):
		return forAll(n, Verdict{Class: Isolate, Reason: "partial_success"})
	}
	verdicts := make([]Verdict, n)
	for i, refund := range look.Refunds {
		verdicts[i] = googleWorst(reasons, refund)
	}
	return verdicts
}

// differs says whether what an answer names is another than what was sent; it need not name it.
func differs(named, sent string) bool { return named != "" && named != sent }

// googleWorst is the verdict on an event for several reasons: that of the worst.
func googleWorst(reasons []string, refund bool) Verdict {
	worst := Verdict{Class: Permanent, Reason: "request_failed"}
	for i, reason := range reasons {
		if verdict := googleProcessed(reason, refund); i == 0 || googleRank(verdict) > googleRank(worst) {
			worst = verdict
		}
	}
	return worst
}

// googleRank is greater for what is worse. A repeat says least: that Google has the transaction says nothing of what is wrong beside.
func googleRank(v Verdict) int {
	if v.Reason == googleRepeat {
		return 0
	}
	return slices.Index([]Class{Delivered, Retry, Waiting, Expired, Permanent}, v.Class)
}

// googleStatusRefused reads an error of a look. A request that Google does not know has to be made again.
func googleStatusRefused(r Response, again Verdict) Verdict {
	unknown := r.Status == http.StatusNotFound
	var answer googleError
	if err := json.Unmarshal(r.Body, &answer); err == nil {
		for _, detail := range answer.Error.Details {
			unknown = unknown || detail.Reason == "INVALID_REQUEST_ID"
		}
	}
	if unknown {
		return Verdict{Class: Retry, Reason: "request_unknown"} // with growing pauses: it may be so for ever
	}
	return again
}

// googleRepeat is the reason for which Google takes no second event of a transaction.
const googleRepeat = "duplicate_transaction_id"

// googleProcessed is what a reason for which events failed after they were queued means.
func googleProcessed(reason string, refund bool) Verdict {
	switch reason {
	case "event_too_old":
		return Verdict{Class: Expired, Reason: "too_old"}
	case googleRepeat:
		if refund { // Google has the purchase, and has not taken its new value
			return Verdict{Class: Permanent, Reason: reason}
		}
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
