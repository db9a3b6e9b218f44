package envelope

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
	"github.com/weir-dev/weir/collector/event/wire"
)

func TestAnEnvelopeIsReadIntoAgain(t *testing.T) {
	const full = `{"event":"purchase","event_id":"1","client_id":"jane","user":{"email":"jane@shop.example","phone":"+14155550123"},` +
		`"data":{"value":1,"currency":"EUR","contents":[{"id":"a","color":"red"},{"id":"b","price":2}]},"context":{"ip":"203.0.113.7"}}`
	accept := func(e *Envelope) event.Event {
		valid, errs := e.Validate(time.Now(), nil)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return Pseudonymise(valid, Acceptance{Platforms: []string{"log"}})
	}
	envelope := new(Envelope)
	if err := envelope.Decode([]byte(full)); err != nil {
		t.Fatal(err)
	}
	first := accept(envelope)
	before := wire.Encode(&first)

	const short = `{"event":"lead","event_id":"2","data":{"contents":[{}]}}`
	if err := envelope.Decode([]byte(short)); err != nil {
		t.Fatal(err)
	}
	fresh := new(Envelope)
	if err := fresh.Decode([]byte(short)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(accept(fresh), accept(envelope)); diff != "" {
		t.Errorf("the second event (-from a new envelope +from a used one):\n%s", diff)
	}
	if after := wire.Encode(&first); !slices.Equal(before, after) {
		t.Errorf("the first event became %q, want %q", after, before)
	}

	envelope.Reset()
	if used := envelope.outline[:cap(envelope.outline)]; slices.ContainsFunc(used, func(e outline.Value) bool { return e != outline.Value{} }) {
		t.Errorf("after Reset the outline still holds %v", used)
	}
	if diff := cmp.Diff(Valid{}, envelope.valid, cmp.AllowUnexported(Valid{})); diff != "" {
		t.Errorf("after Reset the valid envelope is not empty (-want +got):\n%s", diff)
	}
}
