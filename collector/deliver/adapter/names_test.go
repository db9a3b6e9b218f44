package adapter

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

func named(kind platforms.Type, names map[string]string) platforms.Platform {
	cfg := platforms.Platform{Name: "p", Type: kind, EventNames: names}
	switch kind {
	case platforms.TypeMeta:
		cfg.Meta = &platforms.Meta{PixelID: "42"}
	case platforms.TypeGA4:
		cfg.GA4 = &platforms.GA4{MeasurementID: "G-42"}
	case platforms.TypeTikTok:
		cfg.TikTok = &platforms.TikTok{EventSourceID: "C42"}
	case platforms.TypePinterest:
		cfg.Pinterest = &platforms.Pinterest{AdAccountID: "42"}
	case platforms.TypeMixpanel:
		cfg.Mixpanel = &platforms.Mixpanel{ProjectID: "42"}
	case platforms.TypeWebhook:
		cfg.Webhook = &platforms.Webhook{URL: "https://crm.example/hook"}
	}
	return cfg
}

func TestNamesThatAPropertyMayGiveEvents(t *testing.T) {
	tests := map[string]struct {
		kind      platforms.Type
		name, own string
		want      string // a part of the error; "" where there is none
	}{
		"a custom event under another name":                {platforms.TypeMeta, "quote", "RequestQuote", ""},
		"a purchase under a custom name":                   {platforms.TypeMeta, "purchase", "ShopPurchase", ""},
		"the name that it has anyway":                      {platforms.TypeMeta, "purchase", "Purchase", ""},
		"a custom event as a purchase":                     {platforms.TypeMeta, "quote", "Purchase", "eventNames.quote must be none of the platform's names for other events"},
		"a custom event as a purchase in another spelling": {platforms.TypeTikTok, "quote", "complete-payment", "eventNames.quote must be none"},
		"a custom event as a purchase in full width":       {platforms.TypeMeta, "quote", "Ｐｕｒｃｈａｓｅ", "eventNames.quote must be none"},
		"a lookalike as what it looks like":                {platforms.TypeMeta, "Purchase", "Purchase", "eventNames.Purchase must be none"},
		"one standard event as another":                    {platforms.TypeMeta, "lead", "Contact", "eventNames.lead must be none"},
		"a refund where there is none":                     {platforms.TypeMeta, "refund", "Refunded", "eventNames.refund must be absent: the platform has no refund"},
		"a refund where there is one":                      {platforms.TypeGA4, "refund", "shop_refund", ""},
		"a name as Google's rule has it":                   {platforms.TypeGA4, "quote", "request_quote", ""},
		"a name against Google's rule":                     {platforms.TypeGA4, "quote", "request quote", "eventNames.quote must have 1 to 40 letters"},
		"a name that Google keeps":                         {platforms.TypeGA4, "quote", "session_start", "eventNames.quote must be none of the names that Google keeps"},
		"a beginning that Google keeps":                    {platforms.TypeGA4, "quote", "ga_quote", "eventNames.quote must be none of the names that Google keeps"},
		"a name that Pinterest knows":                      {platforms.TypePinterest, "video", "watch_video", ""},
		"a name that Pinterest does not know":              {platforms.TypePinterest, "video", "video", "eventNames.video must be one of Pinterest's names: add_payment_info"},
		"a name of another event's at Pinterest":           {platforms.TypePinterest, "video", "checkout", "eventNames.video must be none"},
		"any name at Mixpanel":                             {platforms.TypeMixpanel, "quote", "Quote requested", ""},
		"a refund at Mixpanel":                             {platforms.TypeMixpanel, "refund", "Refunded", ""},
		"a name of Mixpanel's own":                         {platforms.TypeMixpanel, "quote", "$identify", "eventNames.quote must not begin with $"},
		"any name in a webhook":                            {platforms.TypeWebhook, "quote", "other", "eventNames.quote must be absent"},
		"any name in the log":                              {platforms.TypeLog, "quote", "other", "eventNames.quote must be absent"},
		"a key with space around it":                       {platforms.TypeMeta, " quote", "RequestQuote", "must have as its key an event's name"},
		"a name with space around it":                      {platforms.TypeMeta, "quote", "RequestQuote ", "eventNames.quote must be a name of the platform's"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := named(test.kind, map[string]string{test.name: test.own})
			opened, err := OpenShadow(cfg, platforms.ConsentRule{})
			if test.want != "" {
				if err == nil || !errors.Is(err, ErrConfiguration) || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("got %v, want an error with %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			e := &Event{ReceivedAt: time.Now(), Event: event.Event{
				Name: test.name, ID: "e-1", DeliveryID: uuid.New(), ClientID: "1.2", OrderID: "o-1", UserID: "u-1",
				Context: event.Context{IP: "203.0.113.7", UserAgent: "Mozilla/5.0"},
			}}
			payload, verdict := opened.Map(e)
			if verdict.Class != Undecided || !strings.Contains(string(payload.Body), `"`+test.own+`"`) {
				t.Errorf("got %s, %+v; want it under the name %s", payload.Body, verdict, test.own)
			}
		})
	}
}

// TestNoOtherSpellingIsAStandardEvent tries spellings of all names that a platform's table has.
func TestNoOtherSpellingIsAStandardEvent(t *testing.T) {
	spellings := map[string]func(string) string{
		"upper case":                strings.ToUpper,
		"in lower case with spaces": func(s string) string { return strings.Join(strings.Split(strings.ToLower(s), "_"), " ") + " " },
		"with hyphens":              func(s string) string { return strings.ReplaceAll(s, "_", "-") + "-" },
		"with a zero width space":   func(s string) string { return s[:1] + "\u200b" + s[1:] },
		"with a soft hyphen":        func(s string) string { return s[:1] + "\u00ad" + s[1:] },
		"in full width": func(s string) string {
			return strings.Map(func(r rune) rune {
				if r > 0x20 && r < 0x7f {
					return r + 0xfee0
				}
				return r
			}, s)
		},
	}
	for kind, table := range map[string]*standardNames{"Meta": &metaNames, "TikTok": &tiktokNames, "Pinterest": &pinterestNames, "GA4": &ga4Names} {
		for name, own := range table.standard {
			for how, spell := range spellings {
				for _, text := range []string{spell(name), spell(own)} {
					if table.standard[text] != "" || nameKey(text) != nameKey(own) && name != event.Purchase && name != event.Refund {
						continue // it is Weir's own name, or another one than the platform's
					}
					e := &Event{Event: event.Event{Name: text}}
					if got, reason := table.of(e, text); reason != "name_reserved" {
						t.Errorf("%s, %s %s: %q is sent as %q, reason %q", kind, name, how, text, got, reason)
					}
				}
			}
		}
	}
	if diff := cmp.Diff("purchase", nameKey("P\u00adUR chase")); diff != "" {
		t.Error(diff)
	}
}

var nameRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|$")

// TestThePageOfEventNamesIsTrue compares the page's table with the adapters'.
func TestThePageOfEventNamesIsTrue(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/event-names.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := []*standardNames{&metaNames, &ga4Names, &tiktokNames, &pinterestNames}
	listed := make([]map[string]string, len(tables))
	for i := range listed {
		listed[i] = map[string]string{}
	}
	for _, row := range nameRow.FindAllStringSubmatch(string(page), -1) {
		for i := range tables {
			switch cell := row[2+i]; cell {
			case "custom", "nothing":
				if (cell == "nothing") != (row[1] == event.Refund) {
					t.Errorf("%s: %s", row[1], cell)
				}
			default:
				listed[i][row[1]] = strings.Trim(cell, "`")
			}
		}
	}
	for i, table := range tables {
		if diff := cmp.Diff(table.standard, listed[i]); diff != "" {
			t.Errorf("column %d (-adapter +page):\n%s", i+1, diff)
		}
	}
}
