package erasure

import (
	"maps"
	"time"
)

// Forget drops the identifiers that were erased before a time, those that are suppressed apart: of older events there are
// none, in no backup either.
func (l *Ledger) Forget(before time.Time) {
	maps.DeleteFunc(l.entries, func(_ Digest, entry Entry) bool { return !entry.Suppress && entry.At.Before(before) })
}
