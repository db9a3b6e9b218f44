package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
)

func TestTheRestOfAnEventIsWhatStandsInNoColumnAndNotOnItsDevice(t *testing.T) {
	for name, e := range samples() {
		t.Run(name, func(t *testing.T) {
			for _, anonymous := range []bool{false, true} {
				e.Anonymous = anonymous
				rest := wire.RestOf(&e)
				got, err := rest.Event()
				if err != nil {
					t.Fatal(err)
				}
				want := e
				want.ID, want.DeliveryID, want.Name, want.Value, want.Currency, want.OrderID = "", uuid.Nil, "", nil, "", ""
				want.Platforms, want.Class, want.Person = nil, 0, event.Person{}
				want.Context.IP, want.Context.UserAgent = "", ""
				if !anonymous {
					want.ClientID = ""
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("anonymous %t (-want +got):\n%s", anonymous, diff)
				}

				without := wire.Rest{Entry: rest.Entry}
				if got, err = without.Event(); err != nil {
					t.Fatal(err)
				}
				want.DropIdentity()
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("anonymous %t, without the identity (-want +got):\n%s", anonymous, diff)
				}
			}
		})
	}
}

func TestARestThatIsNoneIsRefused(t *testing.T) {
	for name, rest := range map[string]wire.Rest{
		"no message":  {Entry: "\xff"},
		"has a name":  {Entry: string(wire.Encode(&event.Event{Name: "purchase", DeliveryID: uuid.Max})[20:])},
		"cut short":   {Identity: "\x0a\x09abc"},
		"another one": {Entry: string(wire.Encode(&event.Event{Name: "purchase", DeliveryID: deliveryID}))},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := rest.Event(); err == nil {
				t.Error("it is read")
			}
		})
	}
}
