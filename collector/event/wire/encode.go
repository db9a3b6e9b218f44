// Package wire knows how an event is stored: as one message Entry of entry.proto, the one field of an entry in a
// property's stream. It reads and writes protobuf's wire format straight from and into [event.Event].
package wire

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-dev/weir/collector/event"
)

// formatVersion is the version of entry.proto that is written, and the highest that is read.
const formatVersion = 1

// The field numbers of Entry in entry.proto.
const (
	fieldFormatVersion            protowire.Number = 1
	fieldDeliveryID               protowire.Number = 2
	fieldEventIDUUID              protowire.Number = 3
	fieldWellKnownName            protowire.Number = 4
	fieldValue                    protowire.Number = 5
	fieldCurrency                 protowire.Number = 6
	fieldOrderID                  protowire.Number = 7
	fieldClientIDPair             protowire.Number = 8
	fieldClientID                 protowire.Number = 9
	fieldContents                 protowire.Number = 10
	fieldPlatforms                protowire.Number = 11
	fieldHashVariants             protowire.Number = 12
	fieldHashesAsBase             protowire.Number = 13
	fieldHashes                   protowire.Number = 14
	fieldContext                  protowire.Number = 15
	fieldEventID                  protowire.Number = 16
	fieldName                     protowire.Number = 17
	fieldContentID                protowire.Number = 18
	fieldContentName              protowire.Number = 19
	fieldOccurredAt               protowire.Number = 20
	fieldConsentAdUserData        protowire.Number = 21
	fieldConsentAdPersonalization protowire.Number = 22
	fieldUserID                   protowire.Number = 23
	fieldSessionID                protowire.Number = 24
	fieldEngagementTime           protowire.Number = 25
	fieldMoreContacts             protowire.Number = 26
	fieldCountry                  protowire.Number = 27
	fieldProperties               protowire.Number = 28
	fieldTax                      protowire.Number = 29
	fieldShipping                 protowire.Number = 30
	fieldDiscount                 protowire.Number = 31
	fieldCoupon                   protowire.Number = 32
	fieldSearchTerm               protowire.Number = 33
	fieldListID                   protowire.Number = 34
	fieldListName                 protowire.Number = 35
	fieldConsent                  protowire.Number = 36
	fieldClass                    protowire.Number = 60
	fieldPerson                   protowire.Number = 61
	fieldDevice                   protowire.Number = 62
	fieldIdentity                 protowire.Number = 63
	fieldMaskedPerson             protowire.Number = 64
)

// hashFields are the numbers of the three fields that hold hashes, which Entry and Contact have.
type hashFields struct{ variants, asBase, hashes protowire.Number }

var (
	entryHashes   = hashFields{fieldHashVariants, fieldHashesAsBase, fieldHashes}
	contactHashes = hashFields{1, 2, 3}
)

// The field numbers of Consent in entry.proto.
const (
	fieldAdStorage         protowire.Number = 1
	fieldAnalyticsStorage  protowire.Number = 2
	fieldTCF               protowire.Number = 3
	fieldGPP               protowire.Number = 4
	fieldGPPSections       protowire.Number = 5
	fieldUSPrivacy         protowire.Number = 6
	fieldLimitedDataUse    protowire.Number = 7
	fieldGrantedCategories protowire.Number = 8
	fieldDeniedCategories  protowire.Number = 9
)

// variantCount is how many hashes a person may have.
const variantCount = event.Variant(len(event.Hashes{}))

// hashBases maps a variant to the one whose hash it often shares.
var hashBases = [variantCount]event.Variant{
	event.EmailLower: event.EmailLower, event.EmailGoogle: event.EmailLower, event.EmailMicrosoft: event.EmailLower,
	event.EmailAlnum: event.EmailLower, event.PhoneDigits: event.PhoneDigits, event.PhoneE164: event.PhoneDigits,
	event.FirstNameMeta: event.FirstNameLower, event.FirstNameLower: event.FirstNameLower,
	event.LastNameMeta: event.LastNameLower, event.LastNameLower: event.LastNameLower,
	event.Street: event.Street, event.City: event.City, event.State: event.State, event.Zip: event.Zip,
	event.DateOfBirth: event.DateOfBirth, event.Gender: event.Gender,
}

// wellKnownNames are the names that are written as a number: their index plus one, as in the enum WellKnownName.
// New names are appended; a number is never given to another name.
var wellKnownNames = [...]string{
	event.Purchase, event.Refund, event.AddToCart, event.Pageview,
	"view_content", "search", "begin_checkout", "add_payment_info", "lead", "sign_up", "subscribe",
}

// The field numbers of Item in entry.proto.
const (
	fieldItemID       protowire.Number = 1
	fieldItemName     protowire.Number = 2
	fieldItemCategory protowire.Number = 3
	fieldItemQuantity protowire.Number = 4
	fieldItemPrice    protowire.Number = 5
	fieldItemExtra    protowire.Number = 6
	fieldItemBrand    protowire.Number = 7
	fieldItemVariant  protowire.Number = 8
	// fieldItemCategory2 is followed by those of the other categories.
	fieldItemCategory2 protowire.Number = 9
	fieldItemDiscount  protowire.Number = 13
)

// contextFields returns the texts of a context in the order of their field numbers in entry.proto, from 1.
func contextFields(c *event.Context) [9]*string {
	return [...]*string{
		&c.PageURL, &c.Referrer, &c.IP, &c.UserAgent, &c.UTMSource, &c.UTMMedium, &c.UTMCampaign, &c.UTMTerm, &c.UTMContent,
	}
}

// fieldContextClickIDs is behind the texts; the click ids in it are numbered as in [event.ClickIDNames], from 1.
const fieldContextClickIDs protowire.Number = 10

// The field numbers of Context behind those.
const (
	fieldContextPageTitle    protowire.Number = 11
	fieldContextLanguage     protowire.Number = 12
	fieldContextActionSource protowire.Number = 13
	fieldContextClicked      protowire.Number = 14
)

// Encode returns an event as a message Entry of entry.proto, with nothing sealed. What the stream is to keep is made by
// [Split].
func Encode(e *event.Event) []byte { return Append(make([]byte, 0, 512), e) }

// Append appends what [Encode] returns to b.
func Append(b []byte, e *event.Event) []byte {
	b = appendVarint(b, fieldFormatVersion, formatVersion)
	b = appendBytes(b, fieldDeliveryID, e.DeliveryID[:])
	b = appendID(b, e)
	b = appendName(b, e.Name)
	b = appendAmount(b, fieldValue, e.Value)
	b = appendString(b, fieldCurrency, e.Currency)
	b = appendString(b, fieldOrderID, e.OrderID)
	var scratch [512]byte
	message := scratch[:0]
	for i := range e.Contents {
		message = appendItem(message[:0], &e.Contents[i])
		b = appendBytes(b, fieldContents, message)
	}
	for _, platform := range e.Platforms {
		b = protowire.AppendString(protowire.AppendTag(b, fieldPlatforms, protowire.BytesType), platform)
	}
	b = appendIdentity(b, e)
	b = appendString(b, fieldContentID, e.ContentID)
	b = appendString(b, fieldContentName, e.ContentName)
	if !e.OccurredAt.IsZero() {
		b = protowire.AppendVarint(protowire.AppendTag(b, fieldOccurredAt, protowire.VarintType), uint64(e.OccurredAt.UnixMilli()))
	}
	b = appendContext(b, &e.Context)
	b = appendVarint(b, fieldConsentAdUserData, uint64(e.Consent.AdUserData))
	b = appendVarint(b, fieldConsentAdPersonalization, uint64(e.Consent.AdPersonalization))
	b = appendVarint(b, fieldEngagementTime, uint64(e.EngagementTime.Milliseconds()))
	if len(e.Properties) > 0 {
		b = appendBytes(b, fieldProperties, e.Properties)
	}
	b = appendAmount(b, fieldTax, e.Tax)
	b = appendAmount(b, fieldShipping, e.Shipping)
	b = appendAmount(b, fieldDiscount, e.Discount)
	b = appendString(b, fieldCoupon, e.Coupon)
	b = appendString(b, fieldSearchTerm, e.SearchTerm)
	b = appendString(b, fieldListID, e.ListID)
	b = appendString(b, fieldListName, e.ListName)
	if message = appendConsent(message[:0], &e.Consent); len(message) > 0 {
		b = appendBytes(b, fieldConsent, message)
	}
	b = appendVarint(b, fieldClass, uint64(e.Class))
	if e.Person != (event.Person{}) {
		b = append(protowire.AppendTag(b, fieldPerson, protowire.Fixed64Type), e.Person[:]...)
	}
	return b
}

// appendIdentity writes what tells whose event it is, but for the context and the person.
func appendIdentity(b []byte, e *event.Event) []byte {
	b = appendClientID(b, e.ClientID)
	b = appendHashes(b, &e.User, entryHashes)
	b = appendString(b, fieldUserID, e.UserID)
	b = appendString(b, fieldSessionID, e.SessionID)
	var scratch [256]byte
	for i := range e.MoreContacts {
		b = appendBytes(b, fieldMoreContacts, appendHashes(scratch[:0], &e.MoreContacts[i], contactHashes))
	}
	return appendString(b, fieldCountry, e.Country)
}

// appendID writes the event's id, in 16 bytes where it is a UUID, not at all where it is the delivery's.
func appendID(b []byte, e *event.Event) []byte {
	if id, ok := event.CanonicalUUID(e.ID); ok {
		if id == e.DeliveryID {
			return b
		}
		return appendBytes(b, fieldEventIDUUID, id[:])
	}
	return appendString(b, fieldEventID, e.ID)
}

func appendName(b []byte, name string) []byte {
	for i, known := range wellKnownNames {
		if known == name {
			return appendVarint(b, fieldWellKnownName, uint64(i+1))
		}
	}
	return appendString(b, fieldName, name)
}

// appendClientID writes the form that Google's cookie has, two numbers joined by a dot, in 8 bytes: most
// client ids have it, and every event has one.
func appendClientID(b []byte, id string) []byte {
	first, second, _ := strings.Cut(id, ".")
	high, err := strconv.ParseUint(first, 10, 32)
	if err != nil {
		return appendString(b, fieldClientID, id)
	}
	low, err := strconv.ParseUint(second, 10, 32)
	// Comparing the text keeps "007.1" and the like out.
	var text [maxClientIDPair]byte
	if pair := high<<32 | low; err == nil && string(appendClientIDPair(text[:0], pair)) == id {
		return protowire.AppendFixed64(protowire.AppendTag(b, fieldClientIDPair, protowire.Fixed64Type), pair)
	}
	return appendString(b, fieldClientID, id)
}

// maxClientIDPair is the length of the longest text of two numbers joined by a dot.
const maxClientIDPair = len("4294967295.4294967295")

func appendClientIDPair(b []byte, pair uint64) []byte {
	b = strconv.AppendUint(b, pair>>32, 10)
	return strconv.AppendUint(append(b, '.'), pair&math.MaxUint32, 10)
}

func appendItem(b []byte, item *event.Item) []byte {
	b = appendString(b, fieldItemID, item.ID)
	b = appendString(b, fieldItemName, item.Name)
	b = appendString(b, fieldItemCategory, item.Category)
	b = appendAmount(b, fieldItemQuantity, item.Quantity)
	b = appendAmount(b, fieldItemPrice, item.Price)
	if len(item.Extra) > 0 {
		b = appendBytes(b, fieldItemExtra, item.Extra)
	}
	b = appendString(b, fieldItemBrand, item.Brand)
	b = appendString(b, fieldItemVariant, item.Variant)
	for i, category := range item.Categories {
		b = appendString(b, fieldItemCategory2+protowire.Number(i), category)
	}
	return appendAmount(b, fieldItemDiscount, item.Discount)
}

func appendHashes(b []byte, h *event.Hashes, fields hashFields) []byte {
	var written, same event.VariantSet
	for v := range variantCount {
		switch base := hashBases[v]; {
		case h[v].IsZero():
		case v != base && h[v] == h[base]:
			same = same.Union(event.Variants(v))
		default:
			written = written.Union(event.Variants(v))
		}
	}
	if written == 0 {
		return b // and none is the same as its base, for that is always written
	}
	b = appendVarint(b, fields.variants, uint64(written))
	b = appendVarint(b, fields.asBase, uint64(same))
	b = protowire.AppendTag(b, fields.hashes, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(bits.OnesCount32(uint32(written))*len(event.Hash{})))
	for v := range variantCount {
		if written.Has(v) {
			b = append(b, h[v][:]...)
		}
	}
	return b
}

// appendContext writes a context where there is something in it.
func appendContext(b []byte, c *event.Context) []byte {
	var scratch [512]byte
	message := scratch[:0]
	for i, field := range contextFields(c) {
		message = appendString(message, protowire.Number(i+1), *field)
	}
	var more [256]byte
	ids := more[:0]
	for i, name := range event.ClickIDNames {
		ids = appendString(ids, protowire.Number(i+1), c.ClickIDs[name])
	}
	if len(ids) > 0 {
		message = appendBytes(message, fieldContextClickIDs, ids)
	}
	message = appendString(message, fieldContextPageTitle, c.PageTitle)
	message = appendString(message, fieldContextLanguage, c.Language)
	message = appendVarint(message, fieldContextActionSource, uint64(c.ActionSource))
	message = appendVarint(message, fieldContextClicked, uint64(c.Clicked))
	if len(message) == 0 {
		return b
	}
	return appendBytes(b, fieldContext, message)
}

func appendConsent(b []byte, c *event.Consent) []byte {
	b = appendVarint(b, fieldAdStorage, uint64(c.AdStorage))
	b = appendVarint(b, fieldAnalyticsStorage, uint64(c.AnalyticsStorage))
	b = appendString(b, fieldTCF, c.TCF)
	b = appendString(b, fieldGPP, c.GPP)
	b = appendString(b, fieldGPPSections, c.GPPSections)
	b = appendString(b, fieldUSPrivacy, c.USPrivacy)
	b = appendVarint(b, fieldLimitedDataUse, protowire.EncodeBool(c.LimitedDataUse))
	if len(c.Categories) == 0 {
		return b
	}
	for _, name := range slices.Sorted(maps.Keys(c.Categories)) {
		field := fieldDeniedCategories
		if c.Categories[name] {
			field = fieldGrantedCategories
		}
		b = appendString(b, field, name)
	}
	return b
}

// appendVarint, appendString: as proto3 has it, what is zero is not written.
func appendVarint(b []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendBytes(b []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
}

func appendAmount(b []byte, field protowire.Number, a *event.Amount) []byte {
	if a == nil {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), protowire.EncodeZigZag(int64(*a)))
}
