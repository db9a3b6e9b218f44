package adapter

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

// typeGoogleAds is, in these tests, Google for the product Ads, and Google's type for Analytics.
const typeGoogleAds platforms.Type = "Google for Ads"

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
	case platforms.TypeS3:
		cfg.S3 = &platforms.S3{Bucket: "shop-events", Region: "eu-central-1"}
	case platforms.TypeSnapchat:
		cfg.Snapchat = &platforms.Snapchat{PixelID: "1ec32188-754e-4be2-8e55-c949a984a39f"}
	case platforms.TypeReddit:
		cfg.Reddit = &platforms.Reddit{PixelID: "a2_42"}
	case platforms.TypeMicrosoft:
		cfg.Microsoft = &platforms.Microsoft{TagID: "42"}
	case platforms.TypeKlaviyo:
		cfg.Klaviyo = &platforms.Klaviyo{}
	case platforms.TypeAmplitude:
		cfg.Amplitude = &platforms.Amplitude{}
	case platforms.TypePostHog:
		cfg.PostHog = &platforms.PostHog{}
	case platforms.TypeSegment:
		cfg.Segment = &platforms.Segment{}
	case platforms.TypeOpenAI:
		cfg.OpenAI = &platforms.OpenAI{PixelID: "px-42"}
	case platforms.TypeGoogle:
		cfg.Google = &platforms.Google{AccountID: "42", Product: platforms.GoogleAnalytics, MeasurementID: "G-42"}
	case typeGoogleAds:
		cfg.Type, cfg.Google = platforms.TypeGoogle, &platforms.Google{AccountID: "42"}
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
		"a custom event as a purchase":                     {platforms.TypeMeta, "quote", "Purchase", "eventNames.quote must be another name than purchase"},
		"a custom event as a purchase of another name":     {platforms.TypePinterest, "quote", "checkout", "eventNames.quote must be none of the names that"},
		"a custom event as a purchase in another spelling": {platforms.TypeTikTok, "quote", "complete-payment", "eventNames.quote must be none"},
		"a custom event as a purchase in full width":       {platforms.TypeMeta, "quote", "Ｐｕｒｃｈａｓｅ", "eventNames.quote must be another name than purchase"},
		"a custom event as a refund":                       {platforms.TypeGA4, "quote", "refund", "eventNames.quote must be another name than refund"},
		"a lookalike as what it looks like":                {platforms.TypeMeta, "Purchase", "Purchase", "eventNames.Purchase must have the key purchase: names are exact"},
		"a lookalike as a conversion":                      {platforms.TypeLinkedIn, "PURCHASE", "104012", "eventNames.PURCHASE must have the key purchase"},
		"one standard event as another":                    {platforms.TypeMeta, "lead", "Contact", ""},
		"a refund where there is none":                     {platforms.TypeMeta, "refund", "Refunded", "eventNames.refund must be absent: the platform has no refund"},
		"a refund where there is one":                      {platforms.TypeGA4, "refund", "shop_refund", ""},
		"a key with space around it":                       {platforms.TypeMeta, " quote", "RequestQuote", "must have as its key an event's name"},
		"a name with space around it":                      {platforms.TypeMeta, "quote", "RequestQuote ", "eventNames.quote must be a name of the platform's"},
		"no name":                                          {platforms.TypeMeta, "quote", "", "eventNames.quote must be a name of the platform's"},
		"GA4: a name as Google's rule has it":              {platforms.TypeGA4, "quote", "request_quote", ""},
		"GA4: a name against Google's rule":                {platforms.TypeGA4, "quote", "request quote", "eventNames.quote must have 1 to 40 letters"},
		"GA4: a name that Google keeps":                    {platforms.TypeGA4, "quote", "session_start", "eventNames.quote must be none of the names that Google keeps"},
		"GA4: a beginning that Google keeps":               {platforms.TypeGA4, "quote", "ga_quote", "eventNames.quote must be none of the names that Google keeps"},
		"Google Analytics: a name as its rule has it":      {platforms.TypeGoogle, "quote", "request_quote", ""},
		"Google Analytics: a name that Google keeps":       {platforms.TypeGoogle, "quote", "session_start", "eventNames.quote must be none of the names that Google keeps"},
		"Google Analytics: another event's":                {platforms.TypeGoogle, "quote", "page_view", ""},
		"Google Ads: a name":                               {typeGoogleAds, "lead", "Lead", "eventNames.lead must be the id of a conversion action of Google's: digits, in quotes"},
		"Google Ads: a refund":                             {typeGoogleAds, "refund", "7001", "eventNames.refund must be absent: a refund goes to the conversion action of purchase"},
		"Pinterest: a name that it knows":                  {platforms.TypePinterest, "video", "watch_video", ""},
		"Pinterest: a name that it does not know":          {platforms.TypePinterest, "video", "video", "eventNames.video must be one of Pinterest's names: add_payment_info"},
		"Snapchat: a custom event of its own":              {platforms.TypeSnapchat, "quote", "CUSTOM_EVENT_5", ""},
		"Snapchat: a name that Weir has no event for":      {platforms.TypeSnapchat, "quote", "SAVE", ""},
		"Snapchat: a sixth custom event":                   {platforms.TypeSnapchat, "quote", "CUSTOM_EVENT_6", "eventNames.quote must be one of Snapchat's names: ACHIEVEMENT_UNLOCKED"},
		"Snapchat: another event's":                        {platforms.TypeSnapchat, "quote", "ADD_CART", ""},
		"Reddit: a name of 64 characters":                  {platforms.TypeReddit, "quote", strings.Repeat("ä", 64), ""},
		"Reddit: a name of 65 characters":                  {platforms.TypeReddit, "quote", strings.Repeat("ä", 65), "eventNames.quote must have 64 characters at most"},
		"Reddit: another event's":                          {platforms.TypeReddit, "quote", "Sign Up", ""},
		"Reddit: a refund":                                 {platforms.TypeReddit, "refund", "Refund", "eventNames.refund must be absent"},
		"Microsoft: an action of the owner's":              {platforms.TypeMicrosoft, "quote", "request quote", ""},
		"Microsoft: another event's":                       {platforms.TypeMicrosoft, "quote", "page view", "eventNames.quote must be none of the"},
		"OpenAI: a custom name":                            {platforms.TypeOpenAI, "quote", "request-quote", ""},
		"OpenAI: a type of events in apps":                 {platforms.TypeOpenAI, "install", "app_installed", ""},
		"OpenAI: the same in another spelling":             {platforms.TypeOpenAI, "install", "app-installed", "eventNames.install must be none of the names that"},
		"OpenAI: another event's type":                     {platforms.TypeOpenAI, "quote", "order_created", "eventNames.quote must be none of the names that"},
		"OpenAI: a name with a space":                      {platforms.TypeOpenAI, "quote", "request quote", "eventNames.quote must be one of OpenAI's types"},
		"OpenAI: the word for all custom events":           {platforms.TypeOpenAI, "quote", "custom", "eventNames.quote must be one of OpenAI's types"},
		"Klaviyo: a metric of the owner's":                 {platforms.TypeKlaviyo, "quote", "Requested Quote", ""},
		"Klaviyo: another event's metric":                  {platforms.TypeKlaviyo, "quote", "placed order", "eventNames.quote must be none of the names that"},
		"LinkedIn: a rule's id":                            {platforms.TypeLinkedIn, "lead", "104012", ""},
		"LinkedIn: a name":                                 {platforms.TypeLinkedIn, "lead", "Lead", "eventNames.lead must be the id of a conversion rule of LinkedIn's: digits, in quotes"},
		"LinkedIn: a refund":                               {platforms.TypeLinkedIn, "refund", "104012", "eventNames.refund must be absent: the platform has no refund"},
		"Mixpanel: any name":                               {platforms.TypeMixpanel, "quote", "Quote requested", ""},
		"Mixpanel: a refund":                               {platforms.TypeMixpanel, "refund", "Refunded", ""},
		"Mixpanel: a name of its own":                      {platforms.TypeMixpanel, "quote", "$identify", "eventNames.quote must not begin with $"},
		"Mixpanel: a purchase's":                           {platforms.TypeMixpanel, "quote", "purchase", "eventNames.quote must be another name than purchase"},
		"Amplitude: any name":                              {platforms.TypeAmplitude, "quote", "Quote requested", ""},
		"Amplitude: a name that changes people":            {platforms.TypeAmplitude, "quote", "$identify", "eventNames.quote must begin neither with $ nor with [Amplitude]"},
		"Amplitude: a name of its own":                     {platforms.TypeAmplitude, "quote", "[amplitude] Page Viewed", "eventNames.quote must begin neither with $ nor with [Amplitude]"},
		"PostHog: any name":                                {platforms.TypePostHog, "quote", "quote requested", ""},
		"PostHog: a name that merges people":               {platforms.TypePostHog, "quote", "$create_alias", "eventNames.quote must not begin with $"},
		"PostHog: another event's":                         {platforms.TypePostHog, "quote", "$pageview", "eventNames.quote must not begin with $"},
		"PostHog: the event's own":                         {platforms.TypePostHog, "pageview", "$pageview", ""},
		"Segment: any name":                                {platforms.TypeSegment, "quote", "Quote Requested", ""},
		"Segment: another event's":                         {platforms.TypeSegment, "quote", "order_completed", "eventNames.quote must be none of the names that"},
		"Segment: another event's older name":              {platforms.TypeSegment, "quote", "Completed Order", "eventNames.quote must be none of the names that"},
		"S3: any name":                                     {platforms.TypeS3, "quote", "other", "eventNames.quote must be absent"},
		"webhook: any name":                                {platforms.TypeWebhook, "quote", "other", "eventNames.quote must be absent"},
		"log: any name":                                    {platforms.TypeLog, "quote", "other", "eventNames.quote must be absent"},
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
			payload, verdict := opened.Map(visit(test.name))
			if verdict.Class != Undecided || !strings.Contains(string(payload.Body), test.own+`"`) {
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
	for kind, table := range map[string]*standardNames{
		"Meta": &metaNames, "TikTok": &tiktokNames, "Pinterest": &pinterestNames, "GA4": &ga4Names, "Snapchat": &snapchatNames,
		"Reddit": &redditNames, "OpenAI": &openaiNames, "Microsoft": &microsoftNames, "Klaviyo": &klaviyoNames,
	} {
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

// TestWhatIsCalledLikeAPurchaseIsNone has the Property name purchases, and other events come by that name or are given it.
func TestWhatIsCalledLikeAPurchaseIsNone(t *testing.T) {
	for kind, own := range map[platforms.Type]string{
		platforms.TypeMeta: "ShopPurchase", platforms.TypeGA4: "shop_purchase", platforms.TypeTikTok: "ShopPurchase",
		platforms.TypeGoogle: "shop_purchase", platforms.TypeMicrosoft: "shop_purchase", platforms.TypeReddit: "ShopPurchase",
		platforms.TypeOpenAI: "shop_purchase", platforms.TypeKlaviyo: "Shop Purchase", platforms.TypeMixpanel: "Shop Purchase",
		platforms.TypeAmplitude: "Shop Purchase", platforms.TypePostHog: "shop purchase", platforms.TypeSegment: "Shop Purchase",
	} {
		opened, err := OpenShadow(named(kind, map[string]string{"purchase": own}), platforms.ConsentRule{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{own, strings.ToUpper(own), own[:4] + "\u200b" + own[4:], " " + own} {
			if _, verdict := opened.Map(visit(name)); verdict.Reason != "name_reserved" {
				t.Errorf("%s: %q: %+v, want it skipped as name_reserved", kind, name, verdict)
			}
		}
		if payload, verdict := opened.Map(visit("purchase")); verdict.Class != Undecided || !strings.Contains(string(payload.Body), own) {
			t.Errorf("%s: a purchase: %s, %+v", kind, payload.Body, verdict)
		}
	}
	for kind, own := range map[platforms.Type]string{
		platforms.TypeMeta: "ShopPurchase", platforms.TypeMixpanel: "ShopPurchase", platforms.TypeSnapchat: "CUSTOM_EVENT_1",
		platforms.TypeLinkedIn: "104012", typeGoogleAds: "7001",
	} {
		_, err := OpenShadow(named(kind, map[string]string{"purchase": own, "quote": own}), platforms.ConsentRule{})
		if want := "eventNames.quote must be another name than that of purchase"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", kind, err, want)
		}
	}
	opened, err := OpenShadow(named(platforms.TypeGA4, map[string]string{"purchase": strings.Repeat("p", ga4NameLength)}), platforms.ConsentRule{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{strings.Repeat("p", ga4NameLength+1), strings.Repeat("p", ga4NameLength) + "ж"} {
		if _, verdict := opened.Map(visit(name)); verdict.Reason != "name_reserved" {
			t.Errorf("%q, which is cut: %+v, want it skipped as name_reserved", name, verdict)
		}
	}
}

// visit is an event that every platform takes as far as its name goes.
func visit(name string) *Event {
	value := event.Amount(50_000)
	e := &Event{ReceivedAt: time.Now(), Event: event.Event{
		Name: name, ID: "e-1", DeliveryID: uuid.New(), ClientID: "1.2", OrderID: "o-1", UserID: "u-1", Value: &value, Currency: "EUR",
		Context: event.Context{IP: "203.0.113.7", UserAgent: "Mozilla/5.0", PageURL: "https://shop.example/"},
	}}
	for variant := range e.User {
		e.User[variant] = event.Hash{1}
	}
	return e
}

// pageColumns says what the columns of the page's tables are of: an event's name on the platform, or why it is not sent.
var pageColumns = map[string]func(e *Event) (name, reason string){
	"Meta":      func(e *Event) (string, string) { return metaNames.of(e, "custom") },
	"TikTok":    func(e *Event) (string, string) { return tiktokNames.of(e, "custom") },
	"Pinterest": func(e *Event) (string, string) { return pinterestNames.of(e, "custom") },
	"Snapchat": func(e *Event) (string, string) {
		name, reason := snapchatNames.of(e, "")
		if name == "" {
			reason = "no_mapping"
		}
		return name, reason
	},
	"Reddit": func(e *Event) (string, string) { return redditNames.of(e, "custom") },
	"OpenAI": func(e *Event) (string, string) { return openaiNames.of(e, "custom") },
	"GA4, Google for Analytics": func(e *Event) (string, string) {
		name, reason := ga4Name(e)
		if ga4Names.standard[e.Name] == "" {
			name = "custom"
		}
		return name, reason
	},
	"Microsoft": func(e *Event) (string, string) { return microsoftNames.of(e, "custom") },
	"Klaviyo":   func(e *Event) (string, string) { return klaviyoNames.of(e, "custom") },
	"PostHog": func(e *Event) (string, string) {
		name, reason := posthogName(e)
		if name == e.Name {
			name = "custom"
		}
		return name, reason
	},
	"Segment": func(e *Event) (string, string) {
		call, reason := segmentCall(e)
		switch {
		case call.call != segmentTrack:
			return "the call " + call.call, reason
		case call.name == e.Name:
			return "custom", reason
		}
		return call.name, reason
	},
}

// TestThePageOfEventNamesIsTrue compares the page's tables with the adapters.
func TestThePageOfEventNamesIsTrue(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/event-names.md")
	if err != nil {
		t.Fatal(err)
	}
	listed, columns := map[string]bool{}, map[string]bool{}
	var header []string
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		switch {
		case strings.HasPrefix(line, "| Event | "):
			header = cells
		case !strings.HasPrefix(line, "|"):
			header = nil
		case header != nil && strings.HasPrefix(line, "| `"):
			name := strings.Trim(cells[0], "`")
			listed[name] = true
			for i, cell := range cells[1:] {
				columns[header[i+1]] = true
				column := pageColumns[header[i+1]]
				if column == nil {
					t.Fatalf("the page has a column of %q", header[i+1])
				}
				want, reason := column(&Event{Event: event.Event{Name: name}})
				if reason != "" {
					want = "nothing"
				}
				if got := strings.ReplaceAll(cell, "`", ""); got != want {
					t.Errorf("%s of %s is %q on the page, want %q", name, header[i+1], got, want)
				}
			}
		}
	}
	if len(columns) != len(pageColumns) {
		t.Errorf("the page has the columns %v", columns)
	}
	for _, table := range []*standardNames{&metaNames, &ga4Names, &tiktokNames, &pinterestNames, &snapchatNames, &redditNames, &openaiNames, &microsoftNames, &klaviyoNames} {
		for name := range table.standard {
			if !listed[name] {
				t.Errorf("%s is not on the page", name)
			}
		}
	}
	for name := range segmentNames {
		if !listed[name] {
			t.Errorf("%s is not on the page", name)
		}
	}
	for _, kind := range platforms.Types() {
		if !strings.Contains(string(page), string(kind)) {
			t.Errorf("the page says nothing of %s", kind)
		}
	}
}
