package wire_test

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bufbuild/protocompile"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
)

func amount(n int64) *event.Amount {
	a := event.Amount(n)
	return &a
}

func hashOf(text string) event.Hash { return sha256.Sum256([]byte(text)) }

// data names the datum that each variant is of.
var data = [...]string{
	event.EmailLower: "email", event.EmailGoogle: "email", event.EmailMicrosoft: "email", event.EmailAlnum: "email",
	event.PhoneDigits: "phone", event.PhoneE164: "phone", event.FirstNameMeta: "name", event.FirstNameLower: "name",
	event.LastNameMeta: "last name", event.LastNameLower: "last name", event.Street: "street", event.City: "city", event.State: "state",
	event.Zip: "zip", event.DateOfBirth: "date of birth", event.Gender: "gender",
}

// hashed is a person whose hashes differ where own says so, and share their base's elsewhere.
func hashed(all string, own map[event.Variant]string) event.Hashes {
	var h event.Hashes
	for v := range h {
		h[v] = hashOf(all + data[v])
	}
	for v, text := range own {
		h[v] = hashOf(text)
	}
	return h
}

// samples are events that between them use every field in every form.
func samples() map[string]event.Event {
	id := deliveryID
	clickIDs := map[string]string{}
	for _, name := range event.ClickIDNames {
		clickIDs[name] = "id of " + name
	}
	return map[string]event.Event{
		"the least that there can be": {ID: id.String(), DeliveryID: id, Name: "pageview"},
		"everything": {
			ID: "order 7/ä", DeliveryID: id, Name: "my own name", OccurredAt: time.UnixMilli(1795176000123).UTC(),
			Value: amount(1299000), Currency: "EUR", OrderID: "7", ContentID: "c", ContentName: "Cup", ClientID: "c-1",
			Contents: []event.Item{
				{ID: "a", Name: "A", Category: "C", Quantity: amount(20000), Price: amount(-50000), Extra: []byte(`{"x":1}`),
					Brand: "B", Variant: "V", Categories: [4]string{"C2", "C3", "C4", "C5"}, Discount: amount(5000)},
				{Categories: [4]string{2: "C4"}},
				{},
				{Quantity: amount(0)},
			},
			User: hashed("x", map[event.Variant]string{event.EmailGoogle: "g", event.PhoneE164: "+", event.FirstNameMeta: "m"}),
			Context: event.Context{PageURL: "https://a.example/", Referrer: "r", IP: "203.0.113.7", UserAgent: "UA", UTMSource: "s",
				UTMMedium: "m", UTMCampaign: "c", UTMTerm: "t", UTMContent: "o", ClickIDs: clickIDs,
				PageTitle: "T", Language: "de-CH", ActionSource: event.InPhysicalStore},
			Consent: event.Consent{AdUserData: event.Granted, AdPersonalization: event.Denied, AdStorage: event.Denied,
				AnalyticsStorage: event.Granted, TCF: "CP.a", GPP: "DB~x", GPPSections: "2,6", USPrivacy: "1YNN", LimitedDataUse: true,
				Categories: map[string]bool{"marketing": false, "statistics": true, "a": true}},
			Class: event.Test, Person: event.Person{1, 2, 3, 4, 5, 6, 7, 8}, Platforms: []string{"meta", "crm", "console"},
			UserID: "u-1", SessionID: "1700000000", EngagementTime: 1500 * time.Millisecond, Country: "CH",
			MoreContacts: []event.Hashes{
				{event.EmailLower: hashOf("e2"), event.EmailGoogle: hashOf("e2"), event.PhoneDigits: hashOf("p2")}, {event.EmailLower: hashOf("e3")},
			},
			Properties: []byte(`{"plan":"gold"}`), Tax: amount(1), Shipping: amount(0), Discount: amount(20000), Coupon: "SPRING",
			SearchTerm: "cups", ListID: "l", ListName: "L",
		},
		"an id that is a UUID":                 {ID: "6f1d3c52-3b0a-4f0e-9a51-0c5f7a3f9e21", DeliveryID: id, Name: "purchase"},
		"a UUID in upper case":                 {ID: "6F1D3C52-3B0A-4F0E-9A51-0C5F7A3F9E21", DeliveryID: id, Name: "purchase"},
		"36 characters that are no UUID":       {ID: strings.Repeat("-", 36), DeliveryID: id, Name: "purchase"},
		"a value of zero":                      {ID: "1", DeliveryID: id, Name: "refund", Value: amount(0), Currency: "USD"},
		"the greatest value":                   {ID: "1", DeliveryID: id, Name: "refund", Value: amount(int64(event.MaxAmount)), Currency: "USD"},
		"a currency that has left the list":    {ID: "1", DeliveryID: id, Name: "refund", Value: amount(1), Currency: "DEM"},
		"a client id of Google's form":         {ID: "1", DeliveryID: id, Name: "lead", ClientID: "1234567890.4294967295"},
		"a client id of two zeros":             {ID: "1", DeliveryID: id, Name: "lead", ClientID: "0.0"},
		"a client id with a leading zero":      {ID: "1", DeliveryID: id, Name: "lead", ClientID: "1.02"},
		"a client id that is too great a pair": {ID: "1", DeliveryID: id, Name: "lead", ClientID: "1.4294967296"},
		"a client id with a plus":              {ID: "1", DeliveryID: id, Name: "lead", ClientID: "+1.2"},
		"a client id of three numbers":         {ID: "1", DeliveryID: id, Name: "lead", ClientID: "1.2.3"},
		"a variant whose base is not known":    {ID: "1", DeliveryID: id, Name: "lead", User: event.Hashes{event.FirstNameMeta: hashOf("a")}},
		"an event of 1970":                     {ID: "1", DeliveryID: id, Name: "lead", OccurredAt: time.UnixMilli(0).UTC()},
	}
}

func TestAnEntryReadsAsItWasWritten(t *testing.T) {
	for name, want := range samples() {
		t.Run(name, func(t *testing.T) {
			entry := wire.Encode(&want)
			got, err := wire.Decode(entry)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(append([]byte("before"), entry...), wire.Append([]byte("before"), &want)); diff != "" {
				t.Errorf("Append does not append what Encode returns (-want +got):\n%s", diff)
			}
		})
	}
}

// identityOf is what of an event tells whose it is.
func identityOf(e event.Event) event.Event {
	return event.Event{ClientID: e.ClientID, UserID: e.UserID, User: e.User, MoreContacts: e.MoreContacts}
}

func TestWhoseAnEventIsReadsAsTheWholeEventDoes(t *testing.T) {
	for name, want := range samples() {
		t.Run(name, func(t *testing.T) {
			got, err := wire.DecodeIdentity(wire.Encode(&want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(identityOf(want), got); diff != "" {
				t.Errorf("identity (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := wire.DecodeIdentity([]byte{1, 2, 3}); err == nil {
		t.Error("what is no entry is read")
	}
}

// entryType returns the message Entry of entry.proto.
func entryType(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{"."}}}
	files, err := compiler.Compile(t.Context(), "entry.proto")
	if err != nil {
		t.Fatal(err)
	}
	return files[0].Messages().ByName("Entry")
}

// reading is an entry as a reader sees it that knows the schema alone.
type reading struct {
	t *testing.T
	protoreflect.Message
}

func (r reading) value(name protoreflect.Name) (protoreflect.Value, bool) {
	field := r.Descriptor().Fields().ByName(name)
	if field == nil {
		r.t.Fatalf("%s has no field %s", r.Descriptor().Name(), name)
	}
	return r.Get(field), r.Has(field)
}

func (r reading) text(name protoreflect.Name) string {
	v, _ := r.value(name)
	return v.String()
}

func (r reading) amount(name protoreflect.Name) *event.Amount {
	if v, ok := r.value(name); ok {
		return amount(v.Int())
	}
	return nil
}

func (r reading) message(name protoreflect.Name) reading {
	v, _ := r.value(name)
	return reading{r.t, v.Message()}
}

func (r reading) decision(name protoreflect.Name) event.Decision {
	v, _ := r.value(name)
	return event.Decision(v.Enum())
}

// event puts the event together as the schema's comments say.
func (r reading) event() event.Event {
	var e event.Event
	delivery, _ := r.value("delivery_id")
	e.DeliveryID = uuid.UUID(delivery.Bytes())
	e.ID = e.DeliveryID.String()
	if v, ok := r.value("event_id_uuid"); ok {
		e.ID = uuid.UUID(v.Bytes()).String()
	} else if v, ok := r.value("event_id"); ok {
		e.ID = v.String()
	}
	e.Name = r.text("name")
	if v, ok := r.value("well_known_name"); ok {
		field := r.Descriptor().Fields().ByName("well_known_name")
		e.Name = strings.ToLower(string(field.Enum().Values().ByNumber(v.Enum()).Name()))
	}
	e.Value, e.Currency = r.amount("value"), r.text("currency")
	e.OrderID, e.ContentID, e.ContentName, e.ClientID = r.text("order_id"), r.text("content_id"), r.text("content_name"), r.text("client_id")
	if v, ok := r.value("client_id_pair"); ok {
		e.ClientID = amountlessDecimal(v.Uint()>>32) + "." + amountlessDecimal(v.Uint()&(1<<32-1))
	}
	if v, ok := r.value("occurred_at_ms"); ok {
		e.OccurredAt = time.UnixMilli(v.Int()).UTC()
	}
	contents, _ := r.value("contents")
	for i := range contents.List().Len() {
		item := reading{r.t, contents.List().Get(i).Message()}
		e.Contents = append(e.Contents, event.Item{ID: item.text("id"), Name: item.text("name"), Category: item.text("category"),
			Quantity: item.amount("quantity"), Price: item.amount("price"), Extra: []byte(item.text("extra")),
			Brand: item.text("brand"), Variant: item.text("variant"), Discount: item.amount("discount"),
			Categories: [4]string{item.text("category2"), item.text("category3"), item.text("category4"), item.text("category5")}})
	}
	platforms, _ := r.value("platforms")
	for i := range platforms.List().Len() {
		e.Platforms = append(e.Platforms, platforms.List().Get(i).String())
	}
	class, _ := r.value("class")
	e.Class = event.Class(class.Enum())
	person, _ := r.value("person")
	binary.LittleEndian.PutUint64(e.Person[:], person.Uint())
	e.User = r.hashes()
	c := r.message("context")
	e.Context = event.Context{PageURL: c.text("page_url"), Referrer: c.text("referrer"), IP: c.text("ip"), UserAgent: c.text("user_agent"),
		UTMSource: c.text("utm_source"), UTMMedium: c.text("utm_medium"), UTMCampaign: c.text("utm_campaign"),
		UTMTerm: c.text("utm_term"), UTMContent: c.text("utm_content"), ClickIDs: map[string]string{}}
	for _, name := range event.ClickIDNames {
		if id := c.message("click_ids").text(protoreflect.Name(name)); id != "" {
			e.Context.ClickIDs[name] = id
		}
	}
	source, _ := c.value("action_source")
	e.Context.PageTitle, e.Context.Language, e.Context.ActionSource = c.text("page_title"), c.text("language"), event.ActionSource(source.Enum())
	e.Consent = r.consent()
	e.UserID, e.SessionID, e.Country = r.text("user_id"), r.text("session_id"), r.text("country")
	engagement, _ := r.value("engagement_time_ms")
	e.EngagementTime = time.Duration(engagement.Uint()) * time.Millisecond
	more, _ := r.value("more_contacts")
	for i := range more.List().Len() {
		e.MoreContacts = append(e.MoreContacts, reading{r.t, more.List().Get(i).Message()}.hashes())
	}
	e.Properties = []byte(r.text("properties"))
	e.Tax, e.Shipping, e.Discount = r.amount("tax"), r.amount("shipping"), r.amount("discount")
	e.Coupon, e.SearchTerm, e.ListID, e.ListName = r.text("coupon"), r.text("search_term"), r.text("list_id"), r.text("list_name")
	return e
}

func (r reading) consent() event.Consent {
	c := r.message("consent")
	limited, _ := c.value("limited_data_use")
	consent := event.Consent{
		AdUserData: r.decision("consent_ad_user_data"), AdPersonalization: r.decision("consent_ad_personalization"),
		AdStorage: c.decision("ad_storage"), AnalyticsStorage: c.decision("analytics_storage"), TCF: c.text("tcf"), GPP: c.text("gpp"),
		GPPSections: c.text("gpp_sections"), USPrivacy: c.text("us_privacy"), LimitedDataUse: limited.Bool(), Categories: map[string]bool{},
	}
	for name, agreed := range map[protoreflect.Name]bool{"granted_categories": true, "denied_categories": false} {
		names, _ := c.value(name)
		for i := range names.List().Len() {
			consent.Categories[names.List().Get(i).String()] = agreed
		}
	}
	return consent
}

func amountlessDecimal(n uint64) string { return event.Amount(n * 10000).String() }

func (r reading) hashes() event.Hashes {
	variants := r.Descriptor().ParentFile().Enums().ByName("HashVariant").Values()
	written, _ := r.value("hash_variants")
	same, _ := r.value("hashes_as_base")
	all, _ := r.value("hashes")
	var h event.Hashes
	rest := all.Bytes()
	for i := range variants.Len() {
		if number := variants.Get(i).Number(); written.Uint()&(1<<number) != 0 {
			h[number], rest = event.Hash(rest[:32]), rest[32:]
		}
	}
	for i := range variants.Len() {
		name, number := variants.Get(i).Name(), variants.Get(i).Number()
		if same.Uint()&(1<<number) == 0 {
			continue
		}
		base := variants.ByName("FIRST_NAME_LOWER")
		switch {
		case strings.HasPrefix(string(name), "EMAIL"):
			base = variants.ByName("EMAIL_LOWER")
		case strings.HasPrefix(string(name), "LAST_NAME"):
			base = variants.ByName("LAST_NAME_LOWER")
		}
		h[number] = h[base.Number()]
	}
	return h
}

func TestAReaderOfTheSchemaSeesTheSameEvent(t *testing.T) {
	entries := samples()
	entries["an accepted purchase"] = accept(t, purchase+purchaseContext+"}")
	schema := entryType(t)
	for name, want := range entries {
		t.Run(name, func(t *testing.T) {
			message := dynamicpb.NewMessage(schema)
			if err := proto.Unmarshal(wire.Encode(&want), message); err != nil {
				t.Fatal(err)
			}
			if unknown := message.GetUnknown(); len(unknown) > 0 {
				t.Errorf("the schema does not know the fields %x", unknown)
			}
			r := reading{t, message}
			if v, _ := r.value("format_version"); v.Uint() != 1 {
				t.Errorf("format_version is %d, want 1", v.Uint())
			}
			if diff := cmp.Diff(want, r.event(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			// Any other writer of the schema orders the fields by number: such an entry reads the same.
			rewritten, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := wire.Decode(rewritten); err != nil {
				t.Error(err)
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("written by another writer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheSchemaNumbersNamesAsTheCodecDoes(t *testing.T) {
	values := entryType(t).ParentFile().Enums().ByName("WellKnownName").Values()
	for i := 1; i < values.Len(); i++ {
		name := strings.ToLower(string(values.Get(i).Name()))
		e := event.Event{ID: "1", DeliveryID: deliveryID, Name: name}
		message := dynamicpb.NewMessage(entryType(t))
		if err := proto.Unmarshal(wire.Encode(&e), message); err != nil {
			t.Fatal(err)
		}
		if got, _ := (reading{t, message}).value("well_known_name"); got.Enum() != values.Get(i).Number() {
			t.Errorf("%s is written as number %d, want %d", name, got.Enum(), values.Get(i).Number())
		}
	}
}

func TestDecodeRefusesWhatCannotBe(t *testing.T) {
	least := event.Event{ID: "1", DeliveryID: deliveryID, Name: "lead"}
	entry := wire.Encode(&least)
	bytesField := func(field protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(wire.Encode(&least), field, protowire.BytesType), value)
	}
	varintField := func(field protowire.Number, value uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(wire.Encode(&least), field, protowire.VarintType), value)
	}
	tests := map[string]struct {
		entry []byte
		want  string
	}{
		"no bytes":                          {nil, "event entry: does not begin with a format version"},
		"text":                              {[]byte(`{"event":"lead"}`), "event entry: does not begin with a format version"},
		"a later version":                   {append([]byte{8, 2}, entry[2:]...), "event entry: has format version 2, but this program reads version 1"},
		"a version of zero":                 {append([]byte{8, 0}, entry[2:]...), "event entry: has format version 0, but this program reads version 1"},
		"a version alone":                   {entry[:2], "event entry: delivery_id is missing"},
		"no name":                           {entry[:20], "event entry: the event's name is missing"},
		"an entry that is cut off":          {entry[:10], "event entry: field 2 is malformed: unexpected EOF"},
		"a tag that is cut off":             {append(wire.Encode(&least), 0x80), "event entry: is malformed: unexpected EOF"},
		"a UUID of 15 bytes":                {bytesField(3, make([]byte, 15)), "event entry: field 3 has 15 bytes and must have 16"},
		"a number for a text":               {varintField(7, 1), "event entry: field 7 has the wrong wire type"},
		"a text for a number":               {bytesField(5, nil), "event entry: field 5 has the wrong wire type"},
		"a text that is not UTF-8":          {bytesField(7, []byte{0xff}), "event entry: field 7 is not UTF-8"},
		"a currency of two letters":         {bytesField(6, []byte("EU")), "event entry: field 6 has 2 bytes and must have 3"},
		"a number that names no name":       {varintField(4, 12), "event entry: field 4 is 12 and must be at most 11"},
		"an amount out of range":            {varintField(5, 1<<63), "event entry: field 5 is an amount out of range"},
		"a decision that there is not":      {varintField(21, 3), "event entry: field 21 is 3 and must be at most 2"},
		"hashes that no variant names":      {bytesField(14, make([]byte, 32)), "event entry: field 14 has 32 bytes and must have 0"},
		"a variant without its hash":        {varintField(12, 1), "event entry: field 14 has 0 bytes and must have 32"},
		"a variant that there cannot be":    {varintField(12, 1<<32), "event entry: field 12 is 4294967296 and must be at most 4294967295"},
		"a hash like a base that is not":    {varintField(13, 1<<event.EmailGoogle), "event entry: field 14 has a hash that is the same as one that is not there, or is written itself"},
		"a base that is like itself":        {varintField(13, 1<<event.EmailLower), "event entry: field 14 has a hash that is the same as one that is not there, or is written itself"},
		"a malformed item":                  {bytesField(10, []byte{0x0a, 5}), "event entry: field 10 field 1 is malformed: unexpected EOF"},
		"a timestamp beyond all timestamps": {varintField(20, 1<<62), "event entry: field 20 is 4611686018427387904 and must be at most 7258118400000"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := wire.Decode(tt.entry)
			if err == nil || err.Error() != tt.want {
				t.Errorf("Decode(%x) = %v, want %s", tt.entry, err, tt.want)
			}
		})
	}
}

func TestFieldsOfLaterSchemasArePassedOver(t *testing.T) {
	want := samples()["everything"]
	entry := wire.Encode(&want)
	entry = protowire.AppendVarint(protowire.AppendTag(entry, 500, protowire.VarintType), 1)
	entry = protowire.AppendString(protowire.AppendTag(entry, 501, protowire.BytesType), "x")
	entry = binary.LittleEndian.AppendUint32(protowire.AppendTag(entry, 502, protowire.Fixed32Type), 1)
	entry = binary.LittleEndian.AppendUint64(protowire.AppendTag(entry, 503, protowire.Fixed64Type), 1)
	entry = protowire.AppendTag(protowire.AppendTag(entry, 504, protowire.StartGroupType), 504, protowire.EndGroupType)
	// A variant that is appended to those of today, which come first.
	later := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1<<event.EmailLower|1<<31)
	later = protowire.AppendBytes(protowire.AppendTag(later, 3, protowire.BytesType), append(slices.Clone(want.User[event.EmailLower][:]), make([]byte, 32)...))
	entry = protowire.AppendBytes(protowire.AppendTag(entry, 26, protowire.BytesType), later)
	want.MoreContacts = append(want.MoreContacts, event.Hashes{event.EmailLower: want.User[event.EmailLower]})
	got, err := wire.Decode(entry)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

// FuzzEntry reads anything: nothing panics, and what is read reads the same once written again.
func FuzzEntry(f *testing.F) {
	for _, e := range samples() {
		f.Add(wire.Encode(&e))
	}
	f.Fuzz(func(t *testing.T, entry []byte) {
		e, err := wire.Decode(entry)
		if err != nil {
			return
		}
		identity, err := wire.DecodeIdentity(entry)
		if diff := cmp.Diff(identityOf(e), identity); diff != "" || err != nil {
			t.Errorf("whose it is reads otherwise: %v (-whole +identity):\n%s", err, diff)
		}
		again, err := wire.Decode(wire.Encode(&e))
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		for i := range e.Contents {
			if len(e.Contents[i].Extra) == 0 {
				e.Contents[i].Extra = nil
			}
		}
		e.Context.ClickIDs = withoutEmpty(e.Context.ClickIDs)
		if diff := cmp.Diff(e, again); diff != "" {
			t.Errorf("read again (-first +second):\n%s", diff)
		}
	})
}

// withoutEmpty drops texts that are empty: another writer may write them, and they say nothing.
func withoutEmpty(ids map[string]string) map[string]string {
	var kept map[string]string
	for name, id := range ids {
		if id == "" {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[name] = id
	}
	return kept
}
