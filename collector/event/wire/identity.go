package wire

import (
	"fmt"

	"github.com/weir-dev/weir/collector/event"
)

// DecodeIdentity reads of an entry what tells whose event it is, and nothing else: [event.Event.Identifiers] are those of
// what [Decode] returns. It is for going through all of a stream's entries, and takes little of what
// reading one as a whole does. It fails where these fields hold what cannot be.
func DecodeIdentity(data []byte) (event.Event, error) {
	if err := checkVersion(data); err != nil {
		return event.Event{}, fmt.Errorf("event entry: %w", err)
	}
	var r entryReader
	if err := eachField(data, r.identityField); err != nil {
		return event.Event{}, fmt.Errorf("event entry: %w", err)
	}
	if err := r.hashes.deal(&r.event.User); err != nil {
		return event.Event{}, fmt.Errorf("event entry: field %d %w", fieldHashes, err)
	}
	return r.event, nil
}

func (r *entryReader) identityField(f field) error {
	switch f.number {
	case fieldClientIDPair, fieldClientID, fieldUserID, fieldMoreContacts, fieldHashVariants, fieldHashesAsBase, fieldHashes:
		return r.field(f)
	}
	return nil
}
