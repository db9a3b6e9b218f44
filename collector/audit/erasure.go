package audit

import (
	"log/slog"
	"strings"

	"github.com/google/uuid"
)

// erasureOf returns an erasure as what is acted on. Ids come by way of Redis, which may be a tenant's and claim anything: what is
// no id of an erasure is not named.
func erasureOf(id string) Party {
	if uuid.Validate(strings.TrimPrefix(id, "restored-")) != nil {
		id = ""
	}
	return Party{Kind: Erasure, Name: id}
}

// RequestedErasure returns the entry of a request for the erasure of an id. It is a failure where nobody has written it to the
// ledger in time: it may be carried out all the same. Nothing of it says who is erased.
func RequestedErasure(property, id string, by Party, err error) Entry {
	entry := Entry{Act: ErasureRequested, Property: property, Actor: by, Object: erasureOf(id), Outcome: Success}
	if err != nil {
		entry.Outcome = Failure
	}
	return entry
}

// ErasureCounts says how much was erased.
type ErasureCounts struct{ Events, Records, Identifiers, Linked int64 }

// HiddenErasure returns the entry of an erasure after which nothing and nobody is told of the person any more.
func HiddenErasure(property, id string, erased ErasureCounts) Entry {
	return Entry{
		Act: ErasureHidden, Property: property, Actor: Party{Kind: Deliverer}, Object: erasureOf(id), Outcome: Success,
		Details: []slog.Attr{
			slog.Int64("events", erased.Events), slog.Int64("records", erased.Records),
			slog.Int64("identifiers", erased.Identifiers), slog.Int64("linked", erased.Linked),
		},
	}
}

// PurgedErasure returns the entry of an erasure of which no file holds anything any more.
func PurgedErasure(property, id string) Entry {
	return Entry{Act: ErasurePurged, Property: property, Actor: Party{Kind: Operator}, Object: erasureOf(id), Outcome: Success}
}
