package property

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/collector/auth"
)

// mostRejections is how many the read API has.
const mostRejections = 1000

// rejection is what people are shown of one.
type rejection struct {
	ReceivedAt string              `json:"received_at"`
	Endpoint   string              `json:"endpoint"`
	APIKey     *string             `json:"api_key"`
	Event      *string             `json:"event"`
	EventID    *string             `json:"event_id"`
	Message    string              `json:"message"`
	Errors     map[string][]string `json:"errors"`
}

func rejections(ctx context.Context, c *call) (err error) {
	c.api.Add(c.set)
	c.addOutput()
	limit := c.set.Int("limit", fewEvents, "how `MANY` at most, up to 1000")
	if err := c.parse("Lists what the collect API refused for what it held, the newest first. Nothing that a sender wrote is kept of it but name and id of the event.", true); err != nil {
		return err
	}
	if *limit < 1 || *limit > mostRejections {
		return flags.Errors{fmt.Sprintf("--limit: must be 1 to %d", mostRejections)}
	}
	client, err := c.open(ctx, auth.ScopeRead, shortly)
	if err != nil {
		return err
	}
	defer closing(client, &err)
	var page struct {
		Data []json.RawMessage `json:"data"`
	}
	if _, err := client.Get(ctx, "/rejections", url.Values{"limit": {strconv.Itoa(*limit)}}, &page); err != nil {
		return err
	}
	if c.output == outputJSON {
		return c.printJSON(page)
	}
	if len(page.Data) == 0 {
		c.say("Nothing was refused within a month.")
		return nil
	}
	table := c.table("", "RECEIVED", "WAY IN", "KEY", "EVENT", "ID", "WHY")
	for _, raw := range page.Data {
		var r rejection
		if err := json.Unmarshal(raw, &r); err != nil {
			return fmt.Errorf("the read API's answer cannot be read: %w", err)
		}
		table.Row(clock(r.ReceivedAt), r.Endpoint, dash(r.APIKey), dash(r.Event), dash(r.EventID), r.why())
	}
	return table.Flush()
}

// why is each field's errors, or the message where there is none.
func (r *rejection) why() string {
	var all []string
	for _, field := range slices.Sorted(maps.Keys(r.Errors)) {
		all = append(all, r.Errors[field]...)
	}
	if len(all) == 0 {
		return r.Message
	}
	return strings.Join(all, " ")
}
