package fakes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/platforms"
)

func TestFakeLinkedInGoesByTheHeaders(t *testing.T) {
	d := dialects[platforms.TypeLinkedIn]
	hashedNames := `"user":{"userInfo":{"hashedFirstName":"` + hash + `","hashedLastName":"` + hash + `"},`
	hashedIP := `"user":{"userIds":[{"idType":"SHA256_IP_ADDRESS","idValue":"` + hash + `"},`
	for name, test := range map[string]struct {
		header, value string
		old, instead  string
		want          exchanged
	}{
		"no version": {header: "LinkedIn-Version", want: exchanged{Status: 400, Body: `"code":"VERSION_MISSING"`, Complaint: "there is no LinkedIn-Version"}},
		"a version that has ended": {
			header: "LinkedIn-Version", value: "202511", want: exchanged{Status: 426, Body: `"code":"NONEXISTENT_VERSION"`, Complaint: "the version is none that LinkedIn takes"},
		},
		"a version that has not begun": {
			header: "LinkedIn-Version", value: "202612", want: exchanged{Status: 426, Body: `"code":"NONEXISTENT_VERSION"`, Complaint: "the version is none that LinkedIn takes"},
		},
		"a version that is none": {
			header: "LinkedIn-Version", value: "2026-09", want: exchanged{Status: 426, Body: `"code":"NONEXISTENT_VERSION"`, Complaint: "the version is none that LinkedIn takes"},
		},
		"another protocol": {
			header: "X-Restli-Protocol-Version", value: "1.0.0",
			want: exchanged{Status: 400, Body: `"code":"ILLEGAL_ARGUMENT"`, Complaint: "X-Restli-Protocol-Version must be 2.0.0"},
		},
		"a list without saying so": {
			header: "X-RestLi-Method", want: exchanged{Status: 400, Body: `"code":"ILLEGAL_ARGUMENT"`, Complaint: "X-RestLi-Method must be BATCH_CREATE for a list of elements"},
		},
		"an older version that is still taken": {header: "LinkedIn-Version", value: "202601", want: exchanged{Status: 200, Body: `"status":201`, Refusals: []string{""}}},
		"hashed names before there were any": {
			header: "LinkedIn-Version", value: "202608", old: `"user":{`, instead: hashedNames,
			want: exchanged{Status: 422, Body: "Index: 0, ERROR ::", Refusals: []string{"userInfo has hashed names since version 202609"}},
		},
		"a hashed IP address before there were any": {
			header: "LinkedIn-Version", value: "202606", old: `"user":{"userIds":[`, instead: hashedIP,
			want: exchanged{Status: 422, Body: "Index: 0, ERROR ::", Refusals: []string{"idType is none of LinkedIn's"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fake, server := newFake(t, platforms.TypeLinkedIn)
			more := d.further.Clone()
			more.Set(test.header, test.value)
			body := strings.Replace(fmt.Sprintf(d.body, fmt.Sprintf(d.event, d.seconds(now), "e-1")), test.old, test.instead, 1)
			got := send(t, fake, server.URL, d.url, d.header, d.value, body, more)
			if !strings.Contains(got.Body, test.want.Body) {
				t.Errorf("got %s, want it with %s", got.Body, test.want.Body)
			}
			got.Body = test.want.Body
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Who does not ask Microsoft to go on has all events refused for one.
func TestFakeMicrosoftGoesOnWhereItIsAsked(t *testing.T) {
	for name, test := range map[string]struct {
		goOn string
		want map[string]int
	}{
		"it is asked to go on": {"true", map[string]int{"e-1": 1, "e-3": 1}},
		"it is not":            {"false", map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			fake, server := newFake(t, platforms.TypeMicrosoft)
			fake.Refuse("e-2")
			d := dialects[platforms.TypeMicrosoft]
			var events []string
			for _, id := range []string{"e-1", "e-2", "e-3"} {
				events = append(events, fmt.Sprintf(d.event, d.seconds(now), id))
			}
			body := strings.Replace(fmt.Sprintf(d.body, strings.Join(events, ",")), "true", test.goOn, 1)
			send(t, fake, server.URL, d.url, d.header, d.value, body, d.further)
			if diff := cmp.Diff(test.want, fake.Taken()); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
		})
	}
}
