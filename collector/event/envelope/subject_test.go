package envelope_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/event/outline"
)

const (
	janesHash  = "86e0b9e56c17cc4d12387e1949b85053fbe73bc3ce5a1188713a9d300cc6133d" // of jane.doe@example.com
	janesPhone = "+41791234567"
)

// identifiersOf returns those of an event, as they are when it is taken in.
func identifiersOf(t *testing.T, members string) []event.Identifier {
	t.Helper()
	var sent envelope.Envelope
	if err := sent.Decode([]byte(`{"event": "lead", ` + members + `}`)); err != nil {
		t.Fatal(err)
	}
	valid, errs := sent.Validate(time.Now(), nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	e := envelope.Pseudonymise(valid, envelope.Acceptance{})
	return e.Identifiers("default/shop", nil).List
}

func TestASubjectIsFoundInEventsHoweverItIsSpelt(t *testing.T) {
	for sentence, test := range map[string]struct {
		subject string
		// found has members of events that are the subject's, other those of events that are not.
		found, other []string
	}{
		"an e-mail address in any case, with space around it, hashed by the sender, and as an id": {
			subject: `"email": " Jane.DOE@Example.com "`,
			found: []string{
				`"user": {"email": "jane.doe@example.com"}`, `"user": {"email": "\tJANE.DOE@EXAMPLE.COM"}`, `"user": {"email": "` + janesHash + `"}`,
				`"user": {"email": ["joe@example.com", "jane.doe@example.com"]}`, `"user_id": "Jane.Doe@example.com"`, `"client_id": "jane.doe@example.com"`,
			},
			other: []string{`"user": {"email": "joe@example.com"}`, `"client_id": "jane"`},
		},
		"an e-mail address as its hash": {
			subject: `"email": "` + strings.ToUpper(janesHash) + `"`,
			found:   []string{`"user": {"email": "Jane.Doe@example.com"}`, `"user_id": "jane.doe@example.com"`},
			other:   []string{`"user": {"email": "joe@example.com"}`},
		},
		"a phone number": {
			subject: `"phone": "` + janesPhone + `"`,
			found:   []string{`"user": {"phone": "` + janesPhone + `"}`, `"user": {"phone": ["+12025550143", "` + janesPhone + `"]}`},
			other:   []string{`"user": {"phone": "+12025550143"}`},
		},
		"a client id, also as a number and with space around it": {
			subject: `"client_id": "4711"`,
			found:   []string{`"client_id": 4711`, `"client_id": " 4711 "`},
			other:   []string{`"user_id": "4711"`, `"client_id": "4712"`},
		},
		"a user id, and its spelling counts": {
			subject: `"user_id": "Jane"`,
			found:   []string{`"user_id": "Jane"`},
			other:   []string{`"user_id": "jane"`, `"client_id": "Jane"`},
		},
		"a user id that is a phone number, which is hashed beside that": {
			subject: `"user_id": "41791234567"`,
			found:   []string{`"user_id": "41791234567"`, `"user_id": "41791234567", "user": {"phone": "` + janesPhone + `"}`},
			other:   []string{`"user_id": "41791234568"`},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			object, err := outline.Decode([]byte("{" + test.subject + "}"))
			if err != nil {
				t.Fatal(err)
			}
			ids, errs := envelope.Subject(object, "default/shop")
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			isSubjects := func(members string) bool {
				return slices.ContainsFunc(identifiersOf(t, members), func(id event.Identifier) bool { return slices.Contains(ids, id) })
			}
			for _, members := range test.found {
				if !isSubjects(members) {
					t.Errorf("not found: %s", members)
				}
			}
			for _, members := range test.other {
				if isSubjects(members) {
					t.Errorf("found: %s", members)
				}
			}
		})
	}
}

func TestASubjectThatTellsOfNobodyIsAnError(t *testing.T) {
	for sentence, test := range map[string]struct{ object, want string }{
		"an address that is none":       {`{"email": "jane at example"}`, "email: The email field must be a valid email address."},
		"a number without its country":  {`{"phone": "0791234567"}`, "phone: The phone field format is invalid."},
		"a list of addresses":           {`{"email": ["jane.doe@example.com"]}`, "email: The email field must be a string."},
		"a client id of nobody":         {`{"client_id": "undefined"}`, "client_id: The client_id field format is invalid."},
		"a user id of nobody":           {`{"user_id": 0}`, "user_id: The user_id field format is invalid."},
		"the hash of a placeholder":     {`{"email": "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"}`, "email: The email field format is invalid."},
		"a text that is too long":       {`{"user_id": "` + strings.Repeat("x", 256) + `"}`, "user_id: The user_id field must not be greater than 255 characters."},
		"an object":                     {`{"user_id": {}}`, "user_id: The user_id field must be a string."},
		"none, where there is no field": {`{"email": "", "phone": null}`, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			ids, errs := envelope.Subject(test.object, "default/shop")
			got := ""
			for _, err := range errs {
				got += err.Field + ": " + err.Message
			}
			if diff := cmp.Diff(test.want, got); diff != "" || len(ids) > 0 {
				t.Errorf("%d identifiers, errors (-want +got):\n%s", len(ids), diff)
			}
		})
	}
}

func FuzzSubject(f *testing.F) {
	for _, object := range []string{
		`{"email": " Jane.DOE@Example.com "}`, `{"phone": "+41791234567"}`, `{"client_id": 4711}`, `{"user_id": "null"}`, `{"email": "` + janesHash + `"}`,
		`{"user_id": "41791234567"}`, `{"email": [], "user_id": {}}`,
	} {
		f.Add(object)
	}
	f.Fuzz(func(t *testing.T, body string) {
		object, err := outline.Decode([]byte(body))
		if err != nil {
			return
		}
		ids, errs := envelope.Subject(object, "default/shop")
		if len(ids) > 0 && len(errs) > 0 || len(ids) > 16 {
			t.Errorf("%d identifiers and the errors %v", len(ids), errs)
		}
		for _, err := range errs {
			if !slices.Contains(envelope.SubjectMembers[:], err.Field) {
				t.Errorf("an error of the field %q", err.Field)
			}
		}
	})
}
