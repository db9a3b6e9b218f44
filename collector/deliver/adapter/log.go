package adapter

import (
	"log/slog"
	"time"

	"github.com/weir-dev/weir/collector/platforms"
)

// logAdapter writes one line per event. A log is read by many and kept for long, so the line holds none of a
// person's hashes, client ids or addresses, only what is listed in Map.
type logAdapter struct{}

func openLog(platforms.Platform, map[string]string) (Adapter, error) { return logAdapter{}, nil }

func (logAdapter) Map(e *Event) (Payload, Verdict) {
	line := []slog.Attr{
		slog.String("event_id", e.ID),
		slog.String("event", e.Name),
		slog.String("received_at", e.ReceivedAt.UTC().Format(timestampFormat)),
	}
	if e.Value != nil {
		line = append(line, slog.String("value", e.Value.String()))
	}
	if e.Currency != "" {
		line = append(line, slog.String("currency", e.Currency))
	}
	if e.OrderID != "" {
		line = append(line, slog.String("order_id", e.OrderID))
	}
	if len(e.Contents) > 0 {
		line = append(line, slog.Int("contents", len(e.Contents)))
	}
	return Payload{Line: line}, Verdict{}
}

func (logAdapter) Build(batch []Payload, _ time.Time) Request {
	lines := make([][]slog.Attr, len(batch))
	for i, payload := range batch {
		lines[i] = payload.Line
	}
	return Request{Lines: lines}
}

// Classify: a line that has been written is delivered.
func (logAdapter) Classify(_ Response, n int) []Verdict { return forAll(n, Verdict{Class: Delivered}) }
