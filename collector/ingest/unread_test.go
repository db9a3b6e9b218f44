package ingest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/ingest"
)

// TestAContactThatIsNotUsedIsKeptInNoOtherMember holds that what stands where contacts may is looked for in the other members
// though it could not be read, or another one counts.
func TestAContactThatIsNotUsedIsKeptInNoOtherMember(t *testing.T) {
	many := func(form string, n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(form, i))
		}
		return strings.Join(all, ", ")
	}
	for name, c := range map[string]struct {
		message, properties string
		// phone and email say whether the event is the person's who has the number or the address.
		phone, email bool
	}{
		"a number without its country":                  {`"context":{"traits":{"phone":"015779876543"}}`, `"tel":"015779876543"`, false, false},
		"the same number, written in another way":       {`"context":{"traits":{"phone":"01577 / 987 65 43"}}`, `"tel":"+4915779876543"`, false, false},
		"a number behind a word for none":               {`"context":{"traits":{"phone":"n/a"}},"traits":{"phone":"+4915779876543"}`, `"tel":"+4915779876543"`, true, false},
		"a number behind one that is too short":         {`"context":{"traits":{"phone":"+12"}},"traits":{"phone":"+4915779876543"}`, `"tel":"+4915779876543"`, true, false},
		"a list of numbers":                             {`"context":{"traits":{"phone":["+4915771234567","+4915779876543"]}}`, `"tel":"+4915779876543","old":"+4915771234567"`, false, false},
		"a number that is one of JSON":                  {`"context":{"traits":{"phone":4915779876543}}`, `"tel":4915779876543`, false, false},
		"a second number":                               {`"context":{"traits":{"phone":"+4915779876543"}},"traits":{"phone":"+4915771234567"}`, `"tel":"+4915771234567"`, true, false},
		"two numbers in one text":                       {`"context":{"traits":{"phone":"015771234567, 015779876543 (at work)"}}`, `"tel":"015779876543","old":"01577 1234567"`, false, false},
		"a number in escapes":                           {`"context":{"traits":{"phone":"\u0030157\t79876543"}}`, `"tel":"015779876543"`, false, false},
		"a number in full-width digits":                 {`"context":{"traits":{"phone":"\uff10\uff11\uff15\uff17\uff1779876543"}}`, `"tel":"015779876543"`, false, false},
		"more numbers than are looked for one by one":   {`"context":{"traits":{"phone":"` + many("0157712345%02d", 40) + `"}}`, `"tel":"015771234539"`, false, false},
		"an address behind a word for none":             {`"context":{"traits":{"email":"n/a"}},"traits":{"email":"jane@example.com"}`, `"mail":"jane@example.com"`, false, true},
		"an address of a network's own":                 {`"context":{"traits":{"email":"Jane <jane@localhost>"}}`, `"mail":"mailto:Jane@LOCALHOST"`, false, false},
		"a second address of a network's own":           {`"context":{"traits":{"email":"jane@example.com"}},"traits":{"email":["jane@localhost"]}`, `"mail":"jane@localhost"`, false, true},
		"more addresses than are looked for one by one": {`"context":{"traits":{"email":"` + many("jane%02d@localhost", 40) + `"}}`, `"mail":"jane39@localhost"`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			tenant, kept := inMemory()
			s := newSite(t, tenant)
			body := `{"event":"lead","messageId":"m",` + c.message + `,"properties":{"plan":"pro 100",` + c.properties + `}}`
			if got := s.send(t, request{path: "/v1/track", header: writeKey(shopKey), body: []byte(body)}); got.body != segmentSuccess {
				t.Fatalf("got %d %s", got.status, got.body)
			}
			e := kept.stored(t)[0]
			if got, want := string(e.Properties), `{"plan":"pro 100"}`; got != want {
				t.Errorf("the properties are %s, want %s", got, want)
			}
			if e.User[event.PhoneDigits].IsZero() == c.phone || e.User[event.EmailLower].IsZero() == c.email {
				t.Errorf("the event's number is %s, its address %s", e.User[event.PhoneDigits], e.User[event.EmailLower])
			}
		})
	}
}

// TestAContactThatCannotBeReadIsKeptInNoOtherMember is the same for pages, of which what cannot be read is left out.
func TestAContactThatCannotBeReadIsKeptInNoOtherMember(t *testing.T) {
	for name, c := range map[string]struct{ user, properties string }{
		"a number without its country": {`"phone": "015779876543"`, `"tel": "01577 9876543"`},
		"a number that is one of JSON": {`"phone": 4915779876543`, `"tel": 4915779876543`},
		"one of more than there may be": {`"phone": ["+4915771234561","+4915771234562","+4915771234563","+4915771234564","+4915771234565","+4915779876543"]`,
			`"tel": "+4915779876543"`},
		"one of a list that holds others": {`"phone": ["+4915771234561", "015779876543"]`, `"tel": "015779876543"`},
		"an address of a network's own":   {`"email": "<jane@localhost>"`, `"mail": "jane@localhost"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPage(ingest.Options{})
			body := `{"event": "lead", "user": {` + c.user + `}, "properties": {"plan": "pro 100", ` + c.properties + `}}`
			if got := p.send(http.MethodPost, "/collect/"+webKey, body, nil); got.Code != http.StatusAccepted {
				t.Fatalf("got %d %s", got.Code, got.Body)
			}
			if got, want := string(p.kept.stored(t)[0].Properties), `{"plan":"pro 100"}`; got != want {
				t.Errorf("the properties are %s, want %s", got, want)
			}
		})
	}
}
