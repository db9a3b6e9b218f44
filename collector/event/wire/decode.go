package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-dev/weir/collector/event"
)

// Decode reads an event that [Encode] wrote, or what stands in the clear of one with sealed parts: [Open] comes before.
// It passes over fields that it does not know and fails for a format version above its own, for bytes that are no message, and for fields that hold what cannot be.
func Decode(data []byte) (event.Event, error) {
	// The version decides how everything else is to be read, so it is looked at before anything else.
	if err := checkVersion(data); err != nil {
		return event.Event{}, fmt.Errorf("event entry: %w", err)
	}
	var r entryReader
	if err := eachField(data, r.field); err != nil {
		return event.Event{}, fmt.Errorf("event entry: %w", err)
	}
	e := &r.event
	switch {
	case e.DeliveryID == uuid.Nil:
		return event.Event{}, errors.New("event entry: delivery_id is missing")
	case e.Name == "":
		return event.Event{}, errors.New("event entry: the event's name is missing")
	case e.ID == "":
		e.ID = e.DeliveryID.String()
	}
	if err := r.hashes.deal(&e.User); err != nil {
		return event.Event{}, fmt.Errorf("event entry: field %d %w", fieldHashes, err)
	}
	return *e, nil
}

func checkVersion(data []byte) error {
	field, kind, n := protowire.ConsumeTag(data)
	if n < 0 || field != fieldFormatVersion || kind != protowire.VarintType {
		return errors.New("does not begin with a format version")
	}
	version, n := protowire.ConsumeVarint(data[n:])
	if n < 0 {
		return errors.New("does not begin with a format version")
	}
	if version != formatVersion {
		return fmt.Errorf("has format version %d, but this program reads version %d", version, formatVersion)
	}
	return nil
}

// entryReader gathers an event from the fields of its entry.
type entryReader struct {
	event  event.Event
	hashes hashReader
}

func (r *entryReader) field(f field) error {
	e := &r.event
	switch f.number {
	case fieldDeliveryID:
		return f.fixed(e.DeliveryID[:])
	case fieldEventIDUUID:
		var id uuid.UUID
		err := f.fixed(id[:])
		e.ID = id.String()
		return err
	case fieldEventID:
		return f.text(&e.ID)
	case fieldWellKnownName:
		return r.wellKnownName(f)
	case fieldName:
		return f.text(&e.Name)
	case fieldValue:
		return f.amount(&e.Value)
	case fieldCurrency:
		return r.currency(f)
	case fieldOrderID:
		return f.text(&e.OrderID)
	case fieldClientIDPair:
		if f.kind != protowire.Fixed64Type {
			return errWireType
		}
		e.ClientID = string(appendClientIDPair(make([]byte, 0, maxClientIDPair), f.fixed64))
		return nil
	case fieldClientID:
		return f.text(&e.ClientID)
	case fieldContents:
		var read item
		err := f.message(read.field)
		e.Contents = append(e.Contents, event.Item(read))
		return err
	case fieldPlatforms:
		var name string
		err := f.text(&name)
		e.Platforms = append(e.Platforms, name)
		return err
	case fieldHashVariants, fieldHashesAsBase, fieldHashes:
		return r.hashes.field(f, entryHashes)
	}
	return r.rareField(f)
}

// latestInstant bounds when an event may have occurred.
var latestInstant = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

func (r *entryReader) rareField(f field) error {
	e := &r.event
	switch f.number {
	case fieldContentID:
		return f.text(&e.ContentID)
	case fieldContentName:
		return f.text(&e.ContentName)
	case fieldOccurredAt:
		var ms uint64
		err := f.number64(&ms, uint64(latestInstant.UnixMilli()))
		e.OccurredAt = time.UnixMilli(int64(ms)).UTC()
		return err
	case fieldContext:
		return f.message((*context)(&e.Context).field)
	case fieldConsentAdUserData:
		return f.decision(&e.Consent.AdUserData)
	case fieldConsentAdPersonalization:
		return f.decision(&e.Consent.AdPersonalization)
	case fieldUserID:
		return f.text(&e.UserID)
	case fieldSessionID:
		return f.text(&e.SessionID)
	case fieldEngagementTime:
		var ms uint64
		err := f.number64(&ms, uint64(longestEngagement.Milliseconds()))
		e.EngagementTime = time.Duration(ms) * time.Millisecond
		return err
	case fieldMoreContacts:
		return r.moreContacts(f)
	case fieldCountry:
		return f.text(&e.Country)
	case fieldProperties:
		return f.json(&e.Properties)
	case fieldConsent:
		return f.message((*consent)(&e.Consent).field)
	}
	return r.commerceField(f)
}

// longestEngagement bounds for how long a page may be looked at.
const longestEngagement = 1 << 20 * time.Second

func (r *entryReader) commerceField(f field) error {
	e := &r.event
	switch f.number {
	case fieldTax:
		return f.amount(&e.Tax)
	case fieldShipping:
		return f.amount(&e.Shipping)
	case fieldDiscount:
		return f.amount(&e.Discount)
	case fieldCoupon:
		return f.text(&e.Coupon)
	case fieldSearchTerm:
		return f.text(&e.SearchTerm)
	case fieldListID:
		return f.text(&e.ListID)
	case fieldListName:
		return f.text(&e.ListName)
	case fieldClass:
		var n uint64
		err := f.number64(&n, uint64(event.Classes-1))
		e.Class = event.Class(n)
		return err
	case fieldPerson:
		if f.kind != protowire.Fixed64Type {
			return errWireType
		}
		binary.LittleEndian.PutUint64(e.Person[:], f.fixed64)
	}
	return nil
}

func (r *entryReader) moreContacts(f field) error {
	var hashes hashReader
	if err := f.message(func(f field) error { return hashes.field(f, contactHashes) }); err != nil {
		return err
	}
	var contact event.Hashes
	err := hashes.deal(&contact)
	r.event.MoreContacts = append(r.event.MoreContacts, contact)
	return err
}

func (r *entryReader) wellKnownName(f field) error {
	var n uint64
	if err := f.number64(&n, uint64(len(wellKnownNames))); err != nil {
		return err
	}
	if n > 0 {
		r.event.Name = wellKnownNames[n-1]
	}
	return nil
}

func (r *entryReader) currency(f field) error {
	if code, ok := event.CurrencyCode(f.bytes); ok {
		r.event.Currency = code
		return nil
	}
	// A code that has left the list since: it was valid when the event was accepted.
	if len(f.bytes) != 3 {
		return fmt.Errorf("has %d bytes and must have 3", len(f.bytes))
	}
	return f.text(&r.event.Currency)
}

// item is an item into which its fields are read.
type item event.Item

func (i *item) field(f field) error {
	switch f.number {
	case fieldItemID:
		return f.text(&i.ID)
	case fieldItemName:
		return f.text(&i.Name)
	case fieldItemCategory:
		return f.text(&i.Category)
	case fieldItemQuantity:
		return f.amount(&i.Quantity)
	case fieldItemPrice:
		return f.amount(&i.Price)
	case fieldItemExtra:
		return f.json(&i.Extra)
	case fieldItemBrand:
		return f.text(&i.Brand)
	case fieldItemVariant:
		return f.text(&i.Variant)
	case fieldItemDiscount:
		return f.amount(&i.Discount)
	}
	if n := int(f.number - fieldItemCategory2); n >= 0 && n < len(i.Categories) {
		return f.text(&i.Categories[n])
	}
	return nil
}

// context is a context into which its fields are read.
type context event.Context

func (c *context) field(f field) error {
	switch f.number {
	case fieldContextClickIDs:
		return f.message(c.clickID)
	case fieldContextPageTitle:
		return f.text(&c.PageTitle)
	case fieldContextLanguage:
		return f.text(&c.Language)
	case fieldContextActionSource:
		var n uint64
		err := f.number64(&n, uint64(event.Elsewhere))
		c.ActionSource = event.ActionSource(n)
		return err
	case fieldContextClicked:
		var n uint64
		err := f.number64(&n, math.MaxUint32)
		c.Clicked = event.ClickSet(n) & (1<<len(event.ClickIDNames) - 1)
		return err
	}
	fields := contextFields((*event.Context)(c))
	if int(f.number) > len(fields) {
		return nil
	}
	return f.text(fields[f.number-1])
}

func (c *context) clickID(f field) error {
	if int(f.number) > len(event.ClickIDNames) {
		return nil
	}
	var id string
	if err := f.text(&id); err != nil {
		return err
	}
	if c.ClickIDs == nil {
		c.ClickIDs = map[string]string{}
	}
	c.ClickIDs[event.ClickIDNames[f.number-1]] = id
	return nil
}

// consent is a consent into which the fields of its message are read.
type consent event.Consent

func (c *consent) field(f field) error {
	switch f.number {
	case fieldAdStorage:
		return f.decision(&c.AdStorage)
	case fieldAnalyticsStorage:
		return f.decision(&c.AnalyticsStorage)
	case fieldTCF:
		return f.text(&c.TCF)
	case fieldGPP:
		return f.text(&c.GPP)
	case fieldGPPSections:
		return f.text(&c.GPPSections)
	case fieldUSPrivacy:
		return f.text(&c.USPrivacy)
	case fieldLimitedDataUse:
		var n uint64
		err := f.number64(&n, 1)
		c.LimitedDataUse = n == 1
		return err
	case fieldGrantedCategories, fieldDeniedCategories:
		var name string
		if err := f.text(&name); err != nil {
			return err
		}
		if c.Categories == nil {
			c.Categories = map[string]bool{}
		}
		c.Categories[name] = f.number == fieldGrantedCategories
	}
	return nil
}

// hashReader gathers hashes: those that are written, one behind the other; written and same are sets of variants. Of
// variants that a later program has appended nothing is read.
type hashReader struct {
	hashes        []byte
	written, same uint64
}

func (r *hashReader) field(f field, fields hashFields) error {
	switch f.number {
	case fields.variants:
		return f.number64(&r.written, math.MaxUint32)
	case fields.asBase:
		return f.number64(&r.same, math.MaxUint32)
	case fields.hashes:
		if f.kind != protowire.BytesType {
			return errWireType
		}
		r.hashes = f.bytes
	}
	return nil
}

// deal deals the hashes out to their variants.
func (r *hashReader) deal(h *event.Hashes) error {
	size := len(event.Hash{})
	if want := bits.OnesCount64(r.written) * size; len(r.hashes) != want {
		return fmt.Errorf("has %d bytes and must have %d", len(r.hashes), want)
	}
	for v := range variantCount {
		if event.VariantSet(r.written).Has(v) {
			copy(h[v][:], r.hashes)
			r.hashes = r.hashes[size:]
		}
	}
	for v := range variantCount {
		base := hashBases[v]
		if !event.VariantSet(r.same).Has(v) {
			continue
		}
		if v == base || r.written&r.same != 0 || !event.VariantSet(r.written).Has(base) {
			return errors.New("has a hash that is the same as one that is not there, or is written itself")
		}
		h[v] = h[base]
	}
	return nil
}
