package event

import "time"

// ParseTimestamp reads an ISO 8601 date and time with its offset, which may be spelt without a colon; the
// seconds may be left out. A time without an offset is refused, for nobody can say when that is.
func ParseTimestamp(s string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, s)
	for _, layout := range []string{"2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00"} {
		if err == nil {
			break
		}
		at, err = time.Parse(layout, s)
	}
	return at, err
}
