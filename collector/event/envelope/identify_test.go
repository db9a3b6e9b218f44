package envelope

import (
	"testing"
	"time"
)

func TestARefusedEventIsKnownByItsNameAndIDWhereNothingOfAPersonIsInThem(t *testing.T) {
	for name, test := range map[string]struct{ envelope, wantName, wantID string }{
		"both are valid":         {`{"event": "purchase", "event_id": "order-77"}`, "purchase", "order-77"},
		"none was given":         {`{}`, "", ""},
		"the name is invalid":    {`{"event": 1, "event_id": "order-77"}`, "", "order-77"},
		"the id is invalid":      {`{"event": "purchase", "event_id": {}}`, "purchase", ""},
		"an address in the id":   {`{"event": "purchase", "event_id": "anna@shop.example"}`, "purchase", ""},
		"an address in the name": {`{"event": "anna@shop.example"}`, "", ""},
		"the person's number in the id": {
			`{"event": "purchase", "event_id": "o-1711234567", "user": {"phone": "+491711234567"}, "data": 1}`, "purchase", "",
		},
		"the person's number in the name": {
			`{"event": "call 1711234567", "user": {"phone": "+491711234567"}, "data": 1}`, "", "",
		},
		"a number that could not be read, perhaps in the id":   {`{"event": "purchase", "event_id": "o-1711234567", "user": {"phone": "1711234567"}}`, "purchase", ""},
		"a number that could not be read, perhaps in the name": {`{"event": "call ١٧١١٢٣٤٥", "user": {"phone": "0"}}`, "", ""},
		"a number that could not be read, and a UUID": {
			`{"event": "purchase", "event_id": "0190163d-8694-739b-aea5-966c26f8ad91", "user": {"phone": "1"}}`, "purchase", "0190163d-8694-739b-aea5-966c26f8ad91",
		},
		"an address that could not be read, perhaps in the id":   {`{"event": "purchase", "event_id": "jane@intranet", "user": {"email": "<jane@intranet>"}}`, "purchase", ""},
		"an address that could not be read, perhaps in the name": {`{"event": "jane@intranet", "user": {"email": "<jane@intranet>"}}`, "", ""},
		"a number that could not be read, perhaps in the id in Base64": {
			`{"event": "purchase", "event_id": "NDkxNTExMjM0NTY3OA==", "user": {"phone": "x"}}`, "purchase", "",
		},
		"the person's address in the name, which is none to anybody else": {`{"event": "jane@intranet", "user": {"email": "jane@intranet"}}`, "", ""},
		"an alias": {`{"event": "Order Completed", "event_id": "x"}`, "purchase", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			var envelope Envelope
			if err := envelope.Decode([]byte(test.envelope)); err != nil {
				t.Fatal(err)
			}
			_, errs := envelope.Validate(time.Unix(1700000000, 0), map[string]string{"Order Completed": "purchase"})
			if len(errs) == 0 {
				t.Fatal("the envelope is valid")
			}
			gotName, gotID := envelope.Identify(errs)
			if gotName != test.wantName || gotID != test.wantID {
				t.Errorf("got %q, %q, want %q, %q", gotName, gotID, test.wantName, test.wantID)
			}
		})
	}
}
