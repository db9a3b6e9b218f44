package event_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
)

// fill sets whatever can be set in a value, so that a member that is new is there as well.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("https://jane@shop.example/account/4711?id=jane#jane")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(int64(time.Second))
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1_700_000_000, 0).UTC()))
			return
		}
		for _, field := range v.Fields() {
			fill(field)
		}
	}
}

func TestAnAnonymousEventIsANumber(t *testing.T) {
	var e event.Event
	fill(reflect.ValueOf(&e).Elem())
	id := uuid.MustParse("0193485a-7b1c-7d2e-9f3a-4b5c6d7e8f90")
	item := e.Contents[0]
	item.Extra = nil
	want := event.Event{
		ID: id.String(), DeliveryID: id, Name: e.Name, OccurredAt: e.OccurredAt, Class: e.Class, EngagementTime: e.EngagementTime,
		Value: e.Value, Currency: e.Currency, Tax: e.Tax, Shipping: e.Shipping, Discount: e.Discount,
		ContentID: e.ContentID, ContentName: e.ContentName, ListID: e.ListID, ListName: e.ListName, Contents: []event.Item{item},
		Context: event.Context{
			PageURL: "https://shop.example/", Referrer: "https://shop.example/", ActionSource: e.Context.ActionSource,
			UTMSource: e.Context.UTMSource, UTMMedium: e.Context.UTMMedium, UTMCampaign: e.Context.UTMCampaign,
		},
	}
	got := e.Anonymous(id)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is kept (-want +got):\n%s", diff)
	}
	if _, somebody := got.Whose("default/shop"); somebody {
		t.Error("it is somebody's")
	}
	if e.Contents[0].Extra == nil {
		t.Error("the event itself has been changed")
	}
}
