package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
)

// hour and dayNumber are the periods of the tests' keys.
const hour, dayNumber = 498_660, 20_777

// keysOf makes keys of a letter, for the parts of which the letters are.
func keysOf(t testing.TB, device, identity byte) [wire.PartCount]wire.PeriodKey {
	t.Helper()
	make := func(letter byte) *wire.Key {
		key, err := wire.NewKey(bytes.Repeat([]byte{letter}, wire.SecretSize))
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	return [wire.PartCount]wire.PeriodKey{{Period: hour, Key: make(device)}, {Period: dayNumber, Key: make(identity)}}
}

// held returns the keys of some parts, as a reader has them.
func held(keys [wire.PartCount]wire.PeriodKey, parts ...wire.Part) func(wire.Part, uint64) *wire.Key {
	return func(part wire.Part, period uint64) *wire.Key {
		for _, own := range parts {
			if own == part && keys[part].Period == period {
				return keys[part].Key
			}
		}
		return nil
	}
}

// whole is an event with everything that is sealed.
func whole() event.Event {
	e := samples()["everything"]
	e.Person = event.Person{}
	e.Context.PageURL = "https://shop.example/p?a=1&gclid=Cj0KCQ&b=2#x"
	e.Context.Referrer = "https://ads.example/?fbclid=IwAR0"
	return e
}

func TestASealedPartOpensWithItsKeyAlone(t *testing.T) {
	withoutDevice := func(e event.Event) event.Event {
		e.Context.IP, e.Context.UserAgent = "", ""
		return e
	}
	anonymous := func(e event.Event) event.Event { e.DropIdentity(); return e }
	// Which click ids there were stands in the clear, also beside those.
	clicked := func(e event.Event) event.Event {
		a := anonymous(e)
		e.Context.Clicked = a.Context.Clicked
		return e
	}
	tests := map[string]struct {
		identity bool
		held     []wire.Part
		want     func(event.Event) event.Event
	}{
		"the deliverer has both keys":                             {true, []wire.Part{wire.Device, wire.Identity}, clicked},
		"a query pod has the identity's":                          {true, []wire.Part{wire.Identity}, func(e event.Event) event.Event { return withoutDevice(clicked(e)) }},
		"the identity's is dropped":                               {true, []wire.Part{wire.Device}, anonymous},
		"both are dropped":                                        {true, nil, func(e event.Event) event.Event { return withoutDevice(anonymous(e)) }},
		"only the device is sealed, and its key is there":         {false, []wire.Part{wire.Device}, func(e event.Event) event.Event { return e }},
		"only the device is sealed, and its key is dropped":       {false, nil, withoutDevice},
		"only the device is sealed, and another's key is there":   {false, []wire.Part{wire.Identity}, withoutDevice},
		"a reader that knows nothing of sealed parts passes over": {true, nil, func(e event.Event) event.Event { return withoutDevice(anonymous(e)) }},
	}
	events := samples()
	events["everything, with click ids in the URLs"] = whole()
	events["an accepted purchase"] = accept(t, purchase+purchaseContext+"}")
	keys := keysOf(t, 'd', 'i')
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for name, e := range events {
				e.Person = event.Person{} // which Redis writes, see below
				parts := wire.Split(&e, tt.identity)
				entry, _ := parts.Seal(nil, keys)
				opened, err := wire.Open(entry, held(keys, tt.held...))
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got, err := wire.Decode(opened)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if diff := cmp.Diff(tt.want(e), got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func TestAMaskedPersonIsReadWithTheIdentitysKeyAlone(t *testing.T) {
	keys, e := keysOf(t, 'd', 'i'), whole()
	parts := wire.Split(&e, true)
	entry, mask := parts.Seal(nil, keys)
	want := event.Person{1, 2, 3, 4, 5, 6, 7, 8}
	masked := want
	for i := range masked {
		masked[i] ^= mask[i]
	}
	entry = append(protowire.AppendTag(entry, 64, protowire.Fixed64Type), masked[:]...) // as Redis does
	for name, tt := range map[string]struct {
		held []wire.Part
		want event.Person
	}{
		"the key is there":    {[]wire.Part{wire.Identity}, want},
		"the key is dropped":  {nil, event.Person{}},
		"the device's key is": {[]wire.Part{wire.Device}, event.Person{}},
		"both keys are there": {[]wire.Part{wire.Device, wire.Identity}, want},
	} {
		t.Run(name, func(t *testing.T) {
			opened, err := wire.Open(entry, held(keys, tt.held...))
			if err != nil {
				t.Fatal(err)
			}
			got, err := wire.Decode(opened)
			if err != nil {
				t.Fatal(err)
			}
			if got.Person != tt.want {
				t.Errorf("the person is %x, want %x", got.Person, tt.want)
			}
			if _, somebody := got.Whose("a/shop"); somebody != (tt.want != event.Person{}) {
				t.Errorf("the event is somebody's: %v", somebody)
			}
		})
	}
	if bytes.Contains(entry, want[:]) {
		t.Error("the person stands in the clear")
	}
}

// TestWhatIsSealedStandsNowhereInTheEntry looks for each value, as text and as bytes.
func TestWhatIsSealedStandsNowhereInTheEntry(t *testing.T) {
	keys, e := keysOf(t, 'd', 'i'), whole()
	e.ClientID = "1234567890.1700000000"
	parts := wire.Split(&e, true)
	entry, _ := parts.Seal(nil, keys)
	secrets := map[string][]byte{
		"ip": []byte(e.Context.IP), "user agent": []byte(e.Context.UserAgent + "\x32"), "client id": []byte(e.ClientID),
		"client id as a pair": protowire.AppendFixed64(nil, 1234567890<<32|1700000000),
		"user id":             []byte(e.UserID), "session id": []byte(e.SessionID), "country": []byte("\x02" + e.Country),
		"click id in a URL": []byte("Cj0KCQ"), "click id in the referrer": []byte("IwAR0"),
	}
	for v := range e.User {
		secrets[fmt.Sprint("hash ", v)] = e.User[v][:]
	}
	for i, more := range e.MoreContacts {
		hash := more.Get(event.EmailLower)
		secrets[fmt.Sprint("further contact ", i)] = hash[:]
	}
	for name, id := range e.Context.ClickIDs {
		secrets[name] = []byte(id)
	}
	plain := wire.Encode(&e)
	for name, secret := range secrets {
		if name != "user agent" && name != "client id" && !bytes.Contains(plain, secret) {
			t.Errorf("%s: the test looks for what is not even in the plain entry", name)
		}
		if bytes.Contains(entry, secret) {
			t.Errorf("%s stands in the entry", name)
		}
	}
	again, _ := parts.Seal(nil, keys)
	if bytes.Equal(entry, again) {
		t.Error("two entries of one event are sealed alike: a nonce came twice")
	}
}

func TestAPartThatDoesNotOpenIsAbsent(t *testing.T) {
	keys, e := keysOf(t, 'd', 'i'), whole()
	parts := wire.Split(&e, true)
	entry, _ := parts.Seal(nil, keys)
	changed := func(at int) []byte {
		b := bytes.Clone(entry)
		b[at] ^= 1
		return b
	}
	boxes := len(entry) - len(parts.Entry)
	tests := map[string]struct {
		entry []byte
		keys  [wire.PartCount]wire.PeriodKey
	}{
		"Redis has made another key for the device's hour":  {entry, keysOf(t, 'x', 'i')},
		"Redis has made another key for the identity's day": {entry, keysOf(t, 'd', 'x')},
		"a byte of a nonce has changed":                     {changed(20 + 6), keys},
		"a byte of the identity has changed":                {changed(20 + boxes - 1), keys},
		"the delivery id is another event's":                {changed(10), keys},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			opened, err := wire.Open(tt.entry, held(tt.keys, wire.Device, wire.Identity))
			if !errors.Is(err, wire.ErrOtherKey) {
				t.Errorf("Open = %v, want %v", err, wire.ErrOtherKey)
			}
			got, err := wire.Decode(opened)
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != e.Name || got.ClientID != "" && got.Context.IP != "" {
				t.Errorf("the event is %+v, want it without what does not open", got)
			}
		})
	}
	if _, err := wire.NewKey(make([]byte, 16)); err == nil {
		t.Error("a key of 16 bytes is made")
	}
}

func TestTheSchemaKnowsSealedParts(t *testing.T) {
	e := whole()
	parts := wire.Split(&e, true)
	entry, _ := parts.Seal(nil, keysOf(t, 'd', 'i'))
	message := dynamicpb.NewMessage(entryType(t))
	if err := proto.Unmarshal(entry, message); err != nil {
		t.Fatal(err)
	}
	if unknown := message.GetUnknown(); len(unknown) > 0 {
		t.Errorf("the schema does not know the fields %x", unknown)
	}
	r := reading{t, message}
	for _, name := range []protoreflect.Name{"device", "identity"} {
		if value, there := r.value(name); !there || len(value.Bytes()) == 0 {
			t.Errorf("the schema reads no %s", name)
		}
	}
}

func FuzzOpen(f *testing.F) {
	keys := keysOf(f, 'd', 'i')
	for _, e := range samples() {
		for _, identity := range []bool{false, true} {
			parts := wire.Split(&e, identity)
			entry, _ := parts.Seal(nil, keys)
			f.Add(entry)
		}
	}
	f.Fuzz(func(t *testing.T, entry []byte) {
		before := bytes.Clone(entry)
		opened, err := wire.Open(entry, held(keys, wire.Device, wire.Identity))
		if !bytes.Equal(before, entry) {
			t.Fatal("opening has changed the entry")
		}
		if !bytes.HasPrefix(opened, entry) {
			t.Fatal("opening has taken something from the entry")
		}
		if err != nil && !errors.Is(err, wire.ErrOtherKey) {
			t.Fatal(err)
		}
		e, err := wire.Decode(opened)
		if err != nil {
			return
		}
		parts := wire.Split(&e, true)
		sealed, _ := parts.Seal(nil, keys)
		if reopened, err := wire.Open(sealed, held(keys, wire.Device, wire.Identity)); err != nil {
			t.Fatal(err)
		} else if again, err := wire.Decode(reopened); err != nil {
			t.Fatal(err)
		} else {
			e.Person = event.Person{}
			whole := e
			whole.DropIdentity()
			e.Context.Clicked = whole.Context.Clicked
			if diff := cmp.Diff(e, again, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("sealed and opened (-before +after):\n%s", diff)
			}
		}
	})
}
