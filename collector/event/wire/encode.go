// Package wire knows how an event is stored: as one message Entry of entry.proto, the one field of an entry in a
// property's stream. It reads and writes protobuf's wire format straight from and into [event.Event].
package wire

import (
	"math"
	"math/bits"
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
)

// variantCount is how many hashes a person may have.
const variantCount = event.Variant(len(event.Hashes{}))

// hashBases maps a variant to the one whose hash it often shares.
var hashBases = [variantCount]event.Variant{
	event.EmailLower: event.EmailLower, event.EmailGoogle: event.EmailLower, event.EmailMicrosoft: event.EmailLower,
	event.EmailAlnum: event.EmailLower, event.PhoneDigits: event.PhoneDigits, event.PhoneE164: event.PhoneDigits,
	event.FirstNameMeta: event.FirstNameLower, event.FirstNameLower: event.FirstNameLower,
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
)

// contextFields returns the texts of a context in the order of their field numbers in entry.proto, from 1.
func contextFields(c *event.Context) [9]*string {
	return [...]*string{
		&c.PageURL, &c.Referrer, &c.IP, &c.UserAgent, &c.UTMSource, &c.UTMMedium, &c.UTMCampaign, &c.UTMTerm, &c.UTMContent,
	}
}

// fieldContextClickIDs is behind the texts; the click ids in it are numbered as in [event.ClickIDNames], from 1.
const fieldContextClickIDs protowire.Number = 10

// Encode returns an event as the stream keeps it: a message Entry of entry.proto.
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
	b = appendClientID(b, e.ClientID)
	var scratch [512]byte
	message := scratch[:0]
	for i := range e.Contents {
		message = appendItem(message[:0], &e.Contents[i])
		b = appendBytes(b, fieldContents, message)
	}
	for _, platform := range e.Platforms {
		b = protowire.AppendString(protowire.AppendTag(b, fieldPlatforms, protowire.BytesType), platform)
	}
	b = appendHashes(b, &e.User)
	b = appendString(b, fieldContentID, e.ContentID)
	b = appendString(b, fieldContentName, e.ContentName)
	if !e.OccurredAt.IsZero() {
		b = protowire.AppendVarint(protowire.AppendTag(b, fieldOccurredAt, protowire.VarintType), uint64(e.OccurredAt.UnixMilli()))
	}
	if message = appendContext(message[:0], &e.Context); len(message) > 0 {
		b = appendBytes(b, fieldContext, message)
	}
	b = appendVarint(b, fieldConsentAdUserData, uint64(e.Consent.AdUserData))
	return appendVarint(b, fieldConsentAdPersonalization, uint64(e.Consent.AdPersonalization))
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
	return b
}

func appendHashes(b []byte, h *event.Hashes) []byte {
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
	b = appendVarint(b, fieldHashVariants, uint64(written))
	b = appendVarint(b, fieldHashesAsBase, uint64(same))
	b = protowire.AppendTag(b, fieldHashes, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(bits.OnesCount16(uint16(written))*len(event.Hash{})))
	for v := range variantCount {
		if written.Has(v) {
			b = append(b, h[v][:]...)
		}
	}
	return b
}

func appendContext(b []byte, c *event.Context) []byte {
	for i, field := range contextFields(c) {
		b = appendString(b, protowire.Number(i+1), *field)
	}
	var scratch [256]byte
	ids := scratch[:0]
	for i, name := range event.ClickIDNames {
		ids = appendString(ids, protowire.Number(i+1), c.ClickIDs[name])
	}
	if len(ids) > 0 {
		b = appendBytes(b, fieldContextClickIDs, ids)
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
