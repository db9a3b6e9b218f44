package adapter

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/platforms"
)

// mixpanelErasureURLs are the hosts of Mixpanel's application, which takes deletions, by where the project's data resides.
var mixpanelErasureURLs = map[platforms.Region]string{
	"":                 "https://mixpanel.com",
	platforms.RegionUS: "https://mixpanel.com",
	platforms.RegionEU: "https://eu.mixpanel.com",
	platforms.RegionIN: "https://in.mixpanel.com",
}

// mixpanelDeletion is the most ids of a deletion; Mixpanel's pages say 2000 in one place and 1999 in another.
const mixpanelDeletion = 1999

// mixpanelDevice is what projects of the simplified identity merge put before a $device_id to make a distinct_id of it.
const mixpanelDevice = "$device:"

// mixpanelErasure is the body of a request for a deletion.
type mixpanelErasure struct {
	ComplianceType string   `json:"compliance_type"`
	DistinctIDs    []string `json:"distinct_ids"`
}

// Erase asks for the deletion of all distinct ids that the persons have. Of e-mail addresses and phone numbers Mixpanel knows
// nothing.
func (a *mixpanelAdapter) Erase(persons []Person, _ time.Time) ([]ErasureRequest, error) {
	by := map[string][]string{}
	for _, person := range persons {
		add := func(id string) { by[id] = append(by[id], person.Erasure) }
		for _, id := range person.ClientIDs {
			add(id)
			add(mixpanelDevice + id)
		}
		for _, id := range person.UserIDs {
			add(id)
		}
	}
	var requests []ErasureRequest
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(by)), mixpanelDeletion) {
		body, err := json.Marshal(mixpanelErasure{"GDPR", ids})
		if err != nil {
			return nil, errUnrenderable
		}
		header := jsonHeader()
		header.Set("Authorization", a.erasureAuthorization)
		requests = append(requests, ErasureRequest{
			Request:  Request{Method: http.MethodPost, URL: a.erasureURL, Header: header, Body: body},
			Erasures: erasuresOf(ids, by),
		})
	}
	return requests, nil
}

// mixpanelTask is what of the answer has a meaning for us: that there is a task which deletes.
type mixpanelTask struct {
	Status  string `json:"status"`
	Results struct {
		TaskID string `json:"task_id"`
	} `json:"results"`
}

// ClassifyErasure believes a success that names the task alone.
func (a *mixpanelAdapter) ClassifyErasure(r Response) Verdict {
	switch {
	case r.Status >= 200 && r.Status < 300:
		var answer mixpanelTask
		if err := json.Unmarshal(r.Body, &answer); err != nil || answer.Status != "ok" || answer.Results.TaskID == "" {
			return Verdict{Class: Retry, Reason: "answer_unreadable"}
		}
		return Verdict{Class: Delivered}
	default:
		return classifyError(r, 1)
	}
}
