package property

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/cli/terminal"
	"github.com/weir-dev/weir/collector/auth"
)

// exportFormats are the media types by the words for them.
func exportFormats() map[string]string {
	return map[string]string{"ndjson": "application/x-ndjson", "csv": "text/csv"}
}

func export(ctx context.Context, c *call) (err error) {
	c.api.Add(c.set)
	f := c.addFilters(true)
	format := c.set.String("format", "ndjson", "`FORMAT`: ndjson, with everything that was sent, or csv")
	limit := c.set.Int("limit", 0, "how `MANY` events at most; default: all of the period")
	if err := c.parse("Writes all events of a period to the standard output, the newest first, as the read API exports them. Where it ends with an error, what was written is not the whole.", true); err != nil {
		return err
	}
	accept, known := exportFormats()[*format]
	var errs flags.Errors
	if !known {
		errs.Add("--format: %q must be ndjson or csv", *format)
	}
	if *limit < 0 {
		errs.Add("--limit: must be at least 1")
	}
	if err := errs.Err(); err != nil {
		return err
	}
	if *limit > 0 {
		f.values.Set("limit", strconv.Itoa(*limit))
	}
	client, err := c.open(ctx, auth.ScopeRead, 24*time.Hour)
	if err != nil {
		return err
	}
	defer closing(client, &err)
	body, err := client.Stream(ctx, "/events", f.values, accept)
	if err != nil {
		return err
	}
	defer body.Close()
	out := c.Stdout
	if c.Terminal {
		out = terminal.Safe(out)
	}
	if n, err := io.Copy(out, body); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("the export broke off after %d bytes, and is not the whole: %w", n, err)
	}
	return nil
}
