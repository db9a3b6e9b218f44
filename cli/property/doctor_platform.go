package property

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/cli/terminal"
	"github.com/weir-dev/weir/collector/auth"
)

// The verdicts of a test event that are no fault, as the read API names them, and the reason for which one is not sent.
const (
	testAccepted, testNotSent = "accepted", "not_sent"
	noTestMode                = "no_test_mode"
)

// testAnswer is what the read API answers to a test event.
type testAnswer struct {
	Data struct {
		Platform    string       `json:"platform"`
		Type        string       `json:"type"`
		Verdict     string       `json:"verdict"`
		Reason      *string      `json:"reason"`
		Advice      *string      `json:"advice"`
		Explanation string       `json:"explanation"`
		SentAt      string       `json:"sent_at"`
		TookMS      int64        `json:"took_ms"`
		Status      *int         `json:"status"`
		Request     *testRequest `json:"request"`
		Response    *string      `json:"response"`
	} `json:"data"`
}

type testRequest struct {
	Method       *string           `json:"method"`
	URL          *string           `json:"url"`
	Headers      map[string]string `json:"headers"`
	Body         json.RawMessage   `json:"body"`
	BodyEncoding string            `json:"body_encoding"`
}

// fault is what a platform's verdict means to the exit code.
func (a *testAnswer) fault() error {
	said, reason := a.Data.Verdict, cmp.Or(ptr.Deref(a.Data.Reason, ""), "no reason is given")
	switch {
	case said == testAccepted, said == testNotSent && reason == noTestMode:
		return nil
	}
	return fmt.Errorf("the test event for %s: %s: %s", terminal.Clean(a.Data.Platform), terminal.Clean(said), terminal.Clean(reason))
}

// askPlatform has a made-up event sent to a platform in its own test mode, with the real credentials, and shows what it makes of it.
func (c *call) askPlatform(ctx context.Context, platform, code string) (err error) {
	client, err := c.open(ctx, auth.ScopeWrite, shortly)
	if err != nil {
		return err
	}
	defer closing(client, &err)
	body := map[string]string{}
	if code != "" {
		body["test_event_code"] = code
	}
	var answer testAnswer
	if err := client.Post(ctx, "/platforms/"+url.PathEscape(platform)+"/test", body, &answer); err != nil {
		return err
	}
	if c.output == outputJSON {
		if err := c.printJSON(answer); err != nil {
			return err
		}
		return answer.fault()
	}
	c.showVerdict(&answer)
	return answer.fault()
}

// showVerdict writes it for people.
func (c *call) showVerdict(answer *testAnswer) {
	a := &answer.Data
	c.say("%s (%s): %s", a.Platform, a.Type, a.Verdict)
	c.say("  %s", a.Explanation)
	if reason := ptr.Deref(a.Reason, ""); reason != "" {
		c.say("  reason: %s", reason)
	}
	if advice := ptr.Deref(a.Advice, ""); advice != "" {
		c.say("  > %s", advice)
	}
	if r := a.Request; r != nil {
		verb := "sent"
		if a.Verdict == testNotSent {
			verb = "would be sent"
		}
		c.say("\n%s: %s %s", verb, ptr.Deref(r.Method, ""), ptr.Deref(r.URL, ""))
		for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
			c.say("  %s: %s", name, r.Headers[name])
		}
		var indented bytes.Buffer
		if json.Indent(&indented, r.Body, "  ", "  ") == nil && !bytes.Equal(r.Body, []byte("null")) {
			c.say("  %s", indented.String())
		}
	}
	if a.Status != nil {
		c.say("\nanswered: %d after %d ms", *a.Status, a.TookMS)
	}
	if response := ptr.Deref(a.Response, ""); response != "" {
		c.say("  %s", response)
	}
}
