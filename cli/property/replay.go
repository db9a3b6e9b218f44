package property

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/cli/readapi"
	"github.com/weir-dev/weir/cli/terminal"
	"github.com/weir-dev/weir/collector/auth"
)

// replayRequest is what the read API takes.
type replayRequest struct {
	Platform string   `json:"platform"`
	From     string   `json:"from"`
	To       string   `json:"to,omitempty"`
	Status   []string `json:"status,omitempty"`
}

func replay(ctx context.Context, c *call) (err error) {
	c.api.Add(c.set)
	c.addOutput()
	var asked replayRequest
	c.set.StringVar(&asked.Platform, "platform", "", "`NAME` of the platform")
	c.set.StringVar(&asked.From, "from", "", "`TIME` or day from which on events were received, as in 2026-11-01")
	c.set.StringVar(&asked.To, "to", "", "`TIME` before which, or day up to which; default: now")
	c.set.Func("status", "`STATUS` of the deliveries: failed, expired, or skipped for what was skipped in Shadow; may be repeated; default: failed and expired", flags.Repeated(&asked.Status))
	yes := c.set.Bool("yes", false, "do not ask first")
	if err := c.parse("Puts deliveries to one platform that failed or expired back in line. It says how many there are and asks first. What was delivered is never sent again.", true); err != nil {
		return err
	}
	if err := c.checkReplay(asked, *yes); err != nil {
		return err
	}
	client, err := c.open(ctx, auth.ScopeWrite, shortly)
	if err != nil {
		return err
	}
	defer closing(client, &err)
	if !*yes {
		agreed, err := c.agree(ctx, client, asked)
		if err != nil || !agreed {
			return err
		}
	}
	var answer struct {
		Data struct {
			Replayed int `json:"replayed"`
		} `json:"data"`
	}
	if err := client.Post(ctx, "/deliveries/replay", asked, &answer); err != nil {
		return err
	}
	if c.output == outputJSON {
		return c.printJSON(answer)
	}
	c.say("%d deliveries to %s are in line again.", answer.Data.Replayed, terminal.Clean(asked.Platform))
	return nil
}

func (c *call) checkReplay(asked replayRequest, yes bool) error {
	var errs flags.Errors
	if asked.Platform == "" {
		errs.Add("--platform: must name the platform; %s status %s lists them", c.Program, c.name)
	}
	if asked.From == "" {
		errs.Add("--from: must say from when on, as in --from 2026-11-01")
	}
	if !yes && !c.Asks {
		errs.Add("--yes: must be given where nobody can be asked, as in a script")
	}
	return errs.Err()
}

// agree says how many deliveries it is about, and asks.
func (c *call) agree(ctx context.Context, client *readapi.Client, asked replayRequest) (bool, error) {
	query := url.Values{"platform": {asked.Platform}, "from": {asked.From}}
	if asked.To != "" {
		query.Set("to", asked.To)
	}
	var answer deliveriesAnswer
	if _, err := client.Get(ctx, "/deliveries", query, &answer); err != nil {
		return false, err
	}
	statuses := asked.Status
	if len(statuses) == 0 {
		statuses = []string{"failed", "expired"}
	}
	var counts []string
	for _, totals := range answer.Data.Totals {
		for _, count := range []struct {
			status string
			n      int
		}{{"failed", totals.Failed}, {"expired", totals.Expired}, {"skipped", totals.shadowed()}} {
			if slices.Contains(statuses, count.status) {
				counts = append(counts, fmt.Sprintf("%d %s", count.n, count.status))
			}
		}
	}
	if len(counts) == 0 {
		counts = []string{"no"}
	}
	fmt.Fprintf(c.Stderr, "%s deliveries to %s of events from %s are to be made again. Go on? [y/N] ",
		strings.Join(counts, " and "), terminal.Clean(asked.Platform), terminal.Clean(period(asked)))
	line, err := bufio.NewReader(c.Stdin).ReadString('\n')
	if err != nil && line == "" {
		return false, errors.New("nobody has answered; nothing was put back")
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		fmt.Fprintln(c.Stderr, "Nothing was put back.")
		return false, nil
	}
	return true, nil
}

func period(asked replayRequest) string {
	if asked.To == "" {
		return asked.From + " until now"
	}
	return asked.From + " to " + asked.To
}
