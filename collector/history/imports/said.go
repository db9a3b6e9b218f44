package imports

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/schema"
)

// sayBegin notes in the history up to where events are imported, before the first is; sayEnd notes that an import has ended, also one
// that has added nothing: the one before it may have been killed. The archive looks for both: it remembers nothing of before then, and
// tells those who read the streams alone what they lack. A note is a gap of the streams rather than of the tables, and so one that ends
// before it begins: at 0.
func (w *writer) sayBegin(ctx context.Context) error {
	if w.said {
		return nil
	}
	err := w.say(ctx, positionOf(w.newest+1)-1)
	w.said = err == nil
	return err
}

func (w *writer) sayEnd(ctx context.Context) error { return w.say(ctx, 0) }

func (w *writer) say(ctx context.Context, begin uint64) error {
	type gap struct {
		Begin uint64 `ch:"begin"`
		End   uint64 `ch:"end"`
	}
	if err := clickhouse.Insert(ctx, w.client, schema.Gaps, []gap{{Begin: begin}}, ""); err != nil {
		return fmt.Errorf("note the import: %w", err)
	}
	return nil
}
