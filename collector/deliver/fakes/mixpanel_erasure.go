package fakes

import (
	"net/http"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/platforms"
)

// mixpanelDeletions is the address of Mixpanel's interface for erasures.
const mixpanelDeletions = "/api/app/data-deletions/v3.0/"

// mixpanelDeletion is all that a request for a deletion may have.
type mixpanelDeletion struct {
	ComplianceType string   `json:"compliance_type"`
	DistinctIDs    []string `json:"distinct_ids"`
}

// failMixpanelErasure words failures as the application's own interface does, which is not the import's.
func failMixpanelErasure(status int) answer {
	return answerJSON(status, map[string]any{"status": "error", "error": http.StatusText(status)})
}

// judgeMixpanelErasure takes a deletion, and names the task that carries it out.
func judgeMixpanelErasure(q *request) answer {
	if !q.isJSON() {
		return failMixpanelErasure(http.StatusNotFound).complain("no such address")
	}
	account := q.erasureAccount()
	if account == nil || q.Header.Get("Authorization") != "Bearer "+account.Credentials["gdprToken"] {
		return failMixpanelErasure(http.StatusUnauthorized).complain("the OAuth token is refused, or the project is not known")
	}
	body, problem := unmarshal[mixpanelDeletion](q.body, strict)
	switch {
	case problem != "":
		return failMixpanelErasure(http.StatusBadRequest).complain("%s", problem)
	case body.ComplianceType != "GDPR" && body.ComplianceType != "CCPA":
		return failMixpanelErasure(http.StatusBadRequest).complain("compliance_type must be GDPR or CCPA")
	case len(body.DistinctIDs) == 0 || len(body.DistinctIDs) > 1999:
		return failMixpanelErasure(http.StatusBadRequest).complain("distinct_ids must be 1 to 1999")
	case slices.ContainsFunc(body.DistinctIDs, isMixpanelNobody):
		return failMixpanelErasure(http.StatusBadRequest).complain("distinct_ids must be somebody's")
	}
	given := answerJSON(http.StatusOK, map[string]any{"status": "ok", "results": map[string]any{"task_id": "1583958653"}})
	given.erasure = &Erasure{Persons: map[string][]string{"distinct_ids": slices.Sorted(slices.Values(body.DistinctIDs))}}
	return given
}

func isMixpanelNobody(id string) bool {
	return id == "" || id == "$device:" || slices.Contains(mixpanelNobody, strings.ToLower(id))
}

// erasureAccount is the account whose project token the request has.
func (q *request) erasureAccount() *Account {
	token := q.URL.Query().Get("token")
	for i := range q.accounts {
		if own := &q.accounts[i]; own.Platform.Mixpanel != nil && token != "" && own.Credentials["projectToken"] == token {
			return q.account(func(p platforms.Platform) bool { return p.Name == own.Platform.Name })
		}
	}
	return nil
}
