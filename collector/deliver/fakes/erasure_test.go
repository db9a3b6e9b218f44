package fakes

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/weir-dev/weir/collector/platforms"
)

const erasureID = "3e1f8e44-5a5c-4c0e-9d0b-6b1f4b9a7c21"

// post sends a request and returns the status it is answered with.
func post(t *testing.T, url, body string, header http.Header) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// erasedBy is what the last request had erased, nil where it was refused.
func erasedBy(t *testing.T, fake *Server) map[string][]string {
	t.Helper()
	receipts := fake.Receipts()
	if len(receipts) == 0 {
		t.Fatal("nothing was judged")
	}
	if last := receipts[len(receipts)-1]; last.Erasure != nil {
		return last.Erasure.Persons
	}
	return nil
}

func TestFakeMixpanelTakesDeletions(t *testing.T) {
	const body = `{"compliance_type":"GDPR","distinct_ids":["u-1","1.2"]}`
	for name, test := range map[string]struct {
		token, bearer, body string
		status              int
		want                map[string][]string
	}{
		"a good one":                 {"project", "gdpr", body, 200, map[string][]string{"distinct_ids": {"1.2", "u-1"}}},
		"another project":            {"other", "gdpr", body, 401, nil},
		"no project":                 {"", "gdpr", body, 401, nil},
		"another token":              {"project", "other", body, 401, nil},
		"no law":                     {"project", "gdpr", `{"distinct_ids":["u-1"]}`, 400, nil},
		"nobody":                     {"project", "gdpr", `{"compliance_type":"GDPR","distinct_ids":[]}`, 400, nil},
		"one who is none":            {"project", "gdpr", `{"compliance_type":"GDPR","distinct_ids":["undefined"]}`, 400, nil},
		"too many":                   {"project", "gdpr", `{"compliance_type":"GDPR","distinct_ids":["a"` + strings.Repeat(`,"a"`, 1999) + `]}`, 400, nil},
		"a member that there is not": {"project", "gdpr", `{"compliance_type":"GDPR","distinct_ids":["a"],"colour":1}`, 400, nil},
		"no JSON":                    {"project", "gdpr", `[`, 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fake, server := newFake(t, platforms.TypeMixpanel)
			status := post(t, server.URL+"/api/app/data-deletions/v3.0/?token="+test.token, test.body, http.Header{"Authorization": {"Bearer " + test.bearer}})
			if diff := cmp.Diff(test.want, erasedBy(t, fake)); diff != "" || status != test.status {
				t.Errorf("answered %d, want %d; erased (-want +got):\n%s", status, test.status, diff)
			}
		})
	}
}

func TestFakeWebhookTakesErasures(t *testing.T) {
	const body = `{"type":"person.erased","timestamp":"2026-11-20T12:00:00Z","data":{"erasure_id":"` + erasureID +
		`","client_ids":["1.2"],"user_ids":[],"emails":["` + hash + `"],"phones":[]}}`
	with := func(old, instead string) string { return strings.Replace(body, old, instead, 1) }
	for name, test := range map[string]struct {
		id, body string
		status   int
		want     map[string][]string
	}{
		"a good one":                 {erasureID + "-1", body, 204, map[string][]string{"client_ids": {"1.2"}, "user_ids": {}, "emails": {hash}, "phones": {}}},
		"the id of something else":   {"msg-1", body, 400, nil},
		"an erasure without an id":   {erasureID + "-1", with(erasureID, ""), 400, nil},
		"a list that is missing":     {erasureID + "-1", with(`"user_ids":[],`, ``), 400, nil},
		"a member that there is not": {erasureID + "-1", with(`"user_ids"`, `"colour":1,"user_ids"`), 400, nil},
		"a hash that is none":        {erasureID + "-1", with(hash, "ada"), 400, nil},
		"the hash of nothing":        {erasureID + "-1", with(hash, ofEmpty), 400, nil},
		"nobody":                     {erasureID + "-1", strings.Replace(with(`"1.2"`, ``), `"`+hash+`"`, ``, 1), 400, nil},
		"no time":                    {erasureID + "-1", with(`"timestamp":"2026-11-20T12:00:00Z",`, ``), 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fake, server := newFake(t, platforms.TypeWebhook)
			signer, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			signature, err := signer.Sign(test.id, now, []byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			status := post(t, server.URL+"/hook", test.body, http.Header{
				"Webhook-Id": {test.id}, "Webhook-Timestamp": {strconv.FormatInt(now.Unix(), 10)}, "Webhook-Signature": {signature},
			})
			if diff := cmp.Diff(test.want, erasedBy(t, fake)); diff != "" || status != test.status {
				t.Errorf("answered %d, want %d; erased (-want +got):\n%s", status, test.status, diff)
			}
		})
	}
}
