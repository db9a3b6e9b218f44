package ingest_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/bots"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/ingest"
)

const (
	crawler = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
	browser = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
)

// audienceSite is a collector whose property leaves out an office, a staging host, all below another and a tester.
func audienceSite(t *testing.T, keepBots bool) (*site, *memory) {
	t.Helper()
	tenant, kept := inMemory()
	tenant.Property.Exclude = config.Exclude{
		CIDRs: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/32")},
		Hosts: []string{"staging.shop.example", "*.test.shop.example"}, ClientIDs: []string{"tester-1"}, KeepBots: keepBots,
	}
	detector, err := bots.New()
	if err != nil {
		t.Fatal(err)
	}
	return newSiteWith(t, ingest.Options{Bots: detector}, tenant), kept
}

func TestWhoAnEventCountsFor(t *testing.T) {
	context := func(format string, values ...any) string {
		return fmt.Sprintf(`{"event":"pageview","context":{`+format+`}}`, values...)
	}
	for sentence, test := range map[string]struct {
		body string
		want event.Class
	}{
		"an event of which nothing is known is a human's":   {`{"event":"purchase","data":{"value":1,"currency":"EUR"}}`, event.Human},
		"a browser's is a human's":                          {context(`"user_agent":%q`, browser), event.Human},
		"a crawler's is a bot's":                            {context(`"user_agent":%q`, crawler), event.Bot},
		"an address of the office is internal":              {context(`"ip":"203.0.113.77"`), event.Internal},
		"another address is not":                            {context(`"ip":"203.0.114.77"`), event.Human},
		"an IPv6 address of the office is internal":         {context(`"ip":"2001:DB8::7"`), event.Internal},
		"an IPv4 address written as IPv6 is internal":       {context(`"ip":"::ffff:203.0.113.77"`), event.Internal},
		"a page of the staging host is internal":            {context(`"page_url":"https://Staging.Shop.Example:8443/cart?a=1"`), event.Internal},
		"a page of a host below it is not":                  {context(`"page_url":"https://a.staging.shop.example/"`), event.Human},
		"a page of a host below the one with * is internal": {context(`"page_url":"http://a.b.test.shop.example"`), event.Internal},
		"a page of the one with * itself is not":            {context(`"page_url":"http://test.shop.example"`), event.Human},
		"a page that names the host elsewhere is not":       {context(`"page_url":"https://shop.example/staging.shop.example"`), event.Human},
		"a page that is no URL is not":                      {context(`"page_url":"staging.shop.example:%%zz"`), event.Human},
		"a tester's client id is internal":                  {`{"event":"lead","client_id":" tester-1 "}`, event.Internal},
		"one who begins alike is not":                       {`{"event":"lead","client_id":"tester-12"}`, event.Human},
		"what its sender marks is a test":                   {`{"event":"lead","test":true}`, event.Test},
		"what its sender marks as none is not":              {`{"event":"lead","test":false}`, event.Human},
		"a mark that is null is none":                       {`{"event":"lead","test":null}`, event.Human},
		"a test of the office's is a test":                  {`{"event":"lead","test":true,"context":{"ip":"203.0.113.7"}}`, event.Test},
		"a crawler of the office's is internal":             {context(`"ip":"203.0.113.7","user_agent":%q`, crawler), event.Internal},
	} {
		t.Run(sentence, func(t *testing.T) {
			s, kept := audienceSite(t, false)
			if got := s.send(t, request{body: []byte(test.body)}); got.status != 202 {
				t.Fatalf("answered %d %s", got.status, got.body)
			}
			stored := kept.stored(t)[0]
			if stored.Class != test.want || kept.additions[0].IDSpace != uint8(test.want) {
				t.Errorf("class %s, with ids among those of %d, want %s", stored.Class, kept.additions[0].IDSpace, test.want)
			}
			want := []string{"console", "crm"}
			if test.want != event.Human {
				want = nil
			}
			if diff := cmp.Diff(want, stored.Platforms); diff != "" {
				t.Errorf("platforms that it is for (-want +got):\n%s", diff)
			}
			if counted := storedByClass(t, s.registry); counted[test.want.String()] != 1 {
				t.Errorf("counted by class: %v, want one %s", counted, test.want)
			}
		})
	}
}

func TestBotsCountWhereTheOwnerWantsThemTo(t *testing.T) {
	s, kept := audienceSite(t, true)
	s.send(t, request{body: fmt.Appendf(nil, `{"event":"pageview","context":{"user_agent":%q}}`, crawler)})
	if got := kept.stored(t)[0]; got.Class != event.Human || len(got.Platforms) != 2 {
		t.Errorf("class %s for platforms %v, want a human's for both", got.Class, got.Platforms)
	}
}

func TestEventsOfABatchHaveClassesOfTheirOwn(t *testing.T) {
	s, kept := audienceSite(t, false)
	s.send(t, request{suffix: "/batch", body: fmt.Appendf(nil,
		`{"events":[{"event":"a"},{"event":"b","test":true},{"event":""},{"event":"c","context":{"user_agent":%q}},{"event":"d","client_id":"tester-1"}]}`, crawler)})
	var got []string
	for _, e := range kept.stored(t) {
		got = append(got, e.Name+" "+e.Class.String())
	}
	if diff := cmp.Diff([]string{"a human", "b test", "c bot", "d internal"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]float64{"human": 1, "bot": 1, "internal": 1, "test": 1}, storedByClass(t, s.registry)); diff != "" {
		t.Errorf("counted by class (-want +got):\n%s", diff)
	}
}

// storedByClass returns the counter of stored events by class.
func storedByClass(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "weir_collect_accepted_events_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "class" {
					counts[label.GetValue()] = metric.GetCounter().GetValue()
				}
			}
		}
	}
	return counts
}
