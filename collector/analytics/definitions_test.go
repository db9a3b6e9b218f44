package analytics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// tale is a stream told in words: "2h c1 purchase 10 EUR from:google" is an event of client c1, two hours after
// the beginning, and "anonymous" behind it says that the visitor has denied analytics; who may be "-" for nobody, "mail:a" or "phone:a" for someone known by a hash.
func tale(t testing.TB, lines ...string) *View {
	t.Helper()
	return taleIn(t, "EUR", lines...)
}

// taleIn is a tale of a property whose currency is another than EUR.
func taleIn(t testing.TB, currency string, lines ...string) *View {
	t.Helper()
	v := NewView(Options{Property: testProperty, Currency: currency, Logger: slog.New(slog.DiscardHandler)})
	last := stream.Position(0)
	for i, line := range lines {
		words := strings.Fields(line)
		after, err := time.ParseDuration(words[0])
		mustNot(t, err)
		position := max(stream.At(begin.Add(after)), last+1)
		last = position
		e := event.Event{ID: fmt.Sprint("event ", i), DeliveryID: uuid.UUID{15: byte(i), 6: 0x70, 8: 0x80}, Name: words[2], Platforms: []string{"crm"}}
		switch kind, who, found := strings.Cut(words[1], ":"); {
		case kind == "mail" && found:
			e.User[event.EmailLower] = event.Hash{who[0]}
		case kind == "phone" && found:
			e.User[event.PhoneDigits] = event.Hash{who[0]}
		case kind != "-":
			e.ClientID = kind
		}
		for _, word := range words[3:] {
			if word == "anonymous" {
				e.Anonymous = true
			} else if source, isSource := strings.CutPrefix(word, "from:"); isSource {
				e.Context.UTMSource, e.Context.UTMMedium, _ = strings.Cut(source, "/")
			} else if amount, err := event.ParseAmount(word); err == nil {
				e.Value = &amount
			} else {
				e.Currency = word
			}
		}
		mustNot(t, v.AddEvents([]stream.Entry{{Position: position, Data: wire.Encode(&e)}}))
	}
	return v
}

// afternoon is from the beginning until 12 hours later.
func afternoon() Range { return Range{begin, begin.Add(12 * time.Hour)} }

func TestVisitors(t *testing.T) {
	for sentence, scene := range map[string]struct {
		tale []string
		want int
	}{
		"the same client_id is one visitor":                  {[]string{"0h a x", "1h a y"}, 1},
		"client_ids differ in case":                          {[]string{"0h a x", "1h A x"}, 2},
		"without a client_id the e-mail's hash tells":        {[]string{"0h mail:a x", "1h mail:a x", "1h mail:b x"}, 2},
		"without both the phone's hash tells":                {[]string{"0h phone:a x", "1h phone:a x", "1h phone:b x"}, 2},
		"equal hashes of an e-mail and a phone are two":      {[]string{"0h mail:a x", "1h phone:a x"}, 2},
		"an event of nobody is no visitor":                   {[]string{"0h - x", "1h - x"}, 0},
		"who has denied analytics is no visitor":             {[]string{"0h a x", "1h b x anonymous"}, 1},
		"the range includes its beginning and not its end":   {[]string{"0h a x", "12h b x"}, 1},
		"who was there before the range counts all the same": {[]string{"-1h a x", "1h a x"}, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := tale(t, scene.tale...).Summary(t.Context(), afternoon(), nil)
			mustNot(t, err)
			if got.UniqueVisitors != scene.want {
				t.Errorf("got %d, want %d", got.UniqueVisitors, scene.want)
			}
		})
	}
}

func TestRevenue(t *testing.T) {
	for sentence, scene := range map[string]struct {
		tale []string
		want string
	}{
		"revenue is purchases less refunds":                {[]string{"0h a purchase 10.10 EUR", "1h a refund 0.20 EUR"}, "gross 10.1 refunded 0.2 revenue 9.9 average 10.1 rate 1"},
		"it may be negative":                               {[]string{"0h a refund 3 EUR"}, "gross 0 refunded 3 revenue -3 average 0 rate 0"},
		"another currency stands apart":                    {[]string{"0h a purchase 10 EUR", "0h b purchase 7 USD"}, "gross 10 refunded 0 revenue 10 average 10 rate 1"},
		"other events' values are no revenue":              {[]string{"0h a lead 10 EUR"}, "gross 0 refunded 0 revenue 0 average 0 rate 0"},
		"the average is rounded to the cent":               {[]string{"0h a purchase 10 EUR", "0h a purchase 0 EUR", "0h b purchase 0 EUR", "0h c x"}, "gross 10 refunded 0 revenue 10 average 3.33 rate 0.6667"},
		"a tenth and two tenths are three tenths":          {[]string{"0h a purchase 0.1 EUR", "0h a purchase 0.2 EUR"}, "gross 0.3 refunded 0 revenue 0.3 average 0.15 rate 1"},
		"a purchase of nobody is revenue but no visitor's": {[]string{"0h - purchase 4 EUR", "0h a x"}, "gross 4 refunded 0 revenue 4 average 4 rate 0"},
		"so is one whose visitor has denied analytics":     {[]string{"0h a purchase 4 EUR anonymous", "0h a x"}, "gross 4 refunded 0 revenue 4 average 4 rate 0"},
	} {
		t.Run(sentence, func(t *testing.T) {
			s, err := tale(t, scene.tale...).Summary(t.Context(), afternoon(), nil)
			mustNot(t, err)
			got := fmt.Sprintf("gross %s refunded %s revenue %s average %s rate %s", s.GrossRevenue, s.Refunded, s.Revenue, s.AverageOrderValue, s.ConversionRate)
			if got != scene.want {
				t.Errorf("got  %s\nwant %s", got, scene.want)
			}
		})
	}
}

func TestFunnels(t *testing.T) {
	for sentence, scene := range map[string]struct {
		tale   []string
		steps  string
		window time.Duration
		want   string
	}{
		"other events may come between":               {[]string{"0h a A", "1h a x", "2h a B"}, "A B", 0, "1 1/2h0m0s"},
		"steps out of order do not count":             {[]string{"0h a B", "1h a A"}, "A B", 0, "1 0"},
		"one event fills one step":                    {[]string{"0h a A"}, "A A", 0, "1 0"},
		"the same name may stand in several steps":    {[]string{"0h a A", "1h a A", "3h a A"}, "A A A", 0, "1 1/1h0m0s 1/2h0m0s"},
		"equal times keep their order":                {[]string{"0h a A", "0h a B"}, "A B", 0, "1 1/0s"},
		"the window includes its end":                 {[]string{"0h a A", "1h a B"}, "A B", time.Hour, "1 1/1h0m0s"},
		"what comes behind the window does not count": {[]string{"0h a A", "1h1ms a B"}, "A B", time.Hour, "1 0"},
		"the window is that of the first step":        {[]string{"0h a A", "40m a B", "80m a C"}, "A B C", time.Hour, "1 1/40m0s 0"},
		"a later attempt may come further":            {[]string{"0h a A", "40m a A", "50m a B", "80m a C"}, "A B C", time.Hour, "1 1/10m0s 1/30m0s"},
		"of equally far attempts the earliest counts": {[]string{"0h a A", "10m a A", "50m a B"}, "A B", time.Hour, "1 1/50m0s"},
		"each step is the earliest later event":       {[]string{"0h a A", "10m a B", "20m a B"}, "A B", 0, "1 1/10m0s"},
		"nobody takes no part":                        {[]string{"0h - A", "1h - B"}, "A B", 0, "0 0"},
		"visitors do not mix":                         {[]string{"0h a A", "1h b B"}, "A B", 0, "1 0"},
		"all steps lie in the range":                  {[]string{"-1h a A", "1h a B", "11h b A", "12h b B"}, "A B", 0, "1 0"},
		"the median of two is their mean":             {[]string{"0h a A", "0h b A", "1h a B", "2h b B"}, "A B", 0, "2 2/1h30m0s"},
		"either of two names may begin":               {[]string{"0h a A", "0h b B", "1h a C", "1h b C"}, "A|B C", 0, "2 2/1h0m0s"},
		"either of two names may follow":              {[]string{"0h a A", "0h b A", "1h a B", "1h b C"}, "A B|C", 0, "2 2/1h0m0s"},
		"the earliest of any name counts":             {[]string{"0h a A", "1h a C", "2h a B"}, "A B|C", 0, "1 1/1h0m0s"},
		"one of several names fills one step":         {[]string{"0h a A", "1h a B"}, "A B|C B|C", 0, "1 1/1h0m0s 0"},
		"a name may fill one step and another":        {[]string{"0h a A", "1h a B", "3h a A"}, "A|B A|B A", 0, "1 1/1h0m0s 1/2h0m0s"},
		"several names count within the window too":   {[]string{"0h a A", "40m a B", "50m a C", "80m a D"}, "A|B C D", time.Hour, "1 1/10m0s 1/30m0s"},
		"a name that never came takes nothing away":   {[]string{"0h a A", "1h a B"}, "never|A B|never", time.Hour, "1 1/1h0m0s"},
	} {
		t.Run(sentence, func(t *testing.T) {
			q := FunnelQuery{Range: afternoon(), Window: scene.window}
			for step := range strings.FieldsSeq(scene.steps) {
				q.Steps = append(q.Steps, strings.Split(step, "|"))
			}
			f, err := tale(t, scene.tale...).Funnel(t.Context(), q)
			mustNot(t, err)
			var got []string
			for _, step := range f.Steps {
				text := fmt.Sprint(step.Visitors)
				if step.Median != nil {
					text += "/" + step.Median.String()
				}
				got = append(got, text)
			}
			if strings.Join(got, " ") != scene.want {
				t.Errorf("got %q, want %q", got, scene.want)
			}
		})
	}
}

func TestRatesOfAFunnel(t *testing.T) {
	v := tale(t, "0h a A", "0h b A", "0h c A", "1h a B", "1h b B", "2h a C")
	got, err := v.Funnel(t.Context(), funnelOf(afternoon(), []string{"A", "B", "C", "D"}, 0))
	mustNot(t, err)
	hour := time.Hour
	sameAs(t, "funnel", got, Funnel{Steps: []FunnelStep{
		{Events: []string{"A"}, Visitors: 3, ConversionRate: 10_000, StepConversionRate: 10_000},
		{Events: []string{"B"}, Visitors: 2, ConversionRate: 6667, StepConversionRate: 6667, DropOff: 1, Median: &hour},
		{Events: []string{"C"}, Visitors: 1, ConversionRate: 3333, StepConversionRate: 5000, DropOff: 1, Median: &hour},
		{Events: []string{"D"}, DropOff: 1},
	}})
}

func TestAttributions(t *testing.T) {
	for sentence, scene := range map[string]struct {
		tale     []string
		model    Model
		by       Dimension
		lookback time.Duration
		want     string
	}{
		"the first touch gets it all":                {[]string{"0h a x from:s1", "1h a x from:s2", "2h a purchase 10 EUR"}, FirstTouch, BySource, 0, "s1 1 10"},
		"the last touch gets it all":                 {[]string{"0h a x from:s1", "1h a x from:s2", "2h a purchase 10 EUR"}, LastTouch, BySource, 0, "s2 1 10"},
		"linear shares equally, ties by name":        {[]string{"0h a x from:s1", "1h a x from:s2", "2h a x from:s3", "3h a purchase 10 EUR"}, Linear, BySource, 0, "s1 0.333334 3.34, s2 0.333333 3.33, s3 0.333333 3.33"},
		"a conversion's own touch counts":            {[]string{"0h a x from:s1", "1h a purchase 10 EUR from:s2"}, LastTouch, BySource, 0, "s2 1 10"},
		"touches behind the conversion do not":       {[]string{"0h a purchase 10 EUR", "0h a x from:s2"}, LastTouch, BySource, 0, "(direct) 1 10"},
		"touches before the range count":             {[]string{"-9h a x from:s1", "1h a purchase 10 EUR"}, LastTouch, BySource, 0, "s1 1 10"},
		"conversions before the range do not":        {[]string{"-9h a purchase 5 EUR from:s1", "1h a purchase 10 EUR"}, LastTouch, BySource, 0, "s1 1 10"},
		"the lookback includes its beginning":        {[]string{"0h a x from:s1", "2h a purchase 10 EUR"}, LastTouch, BySource, 2 * time.Hour, "s1 1 10"},
		"what is older than the lookback does not":   {[]string{"0h a x from:s1", "121m a purchase 10 EUR"}, LastTouch, BySource, 2 * time.Hour, "(direct) 1 10"},
		"equal consecutive touches are one":          {[]string{"0h a x from:s1", "1h a x from:s1", "2h a x from:s2", "3h a purchase 10 EUR"}, Linear, BySource, 0, "s1 0.5 5, s2 0.5 5"},
		"equal touches that are not consecutive not": {[]string{"0h a x from:s1", "1h a x from:s2", "2h a x from:s1", "3h a purchase 9 EUR"}, Linear, BySource, 0, "s1 0.666667 6, s2 0.333333 3"},
		"the lookback cuts before touches merge":     {[]string{"0h a x from:s1", "2h a x from:s1", "3h a x from:s2", "4h a purchase 10 EUR"}, Linear, BySource, 2 * time.Hour, "s1 0.5 5, s2 0.5 5"},
		"another medium is another touch":            {[]string{"0h a x from:s1/m1", "1h a x from:s1/m2", "2h a purchase 10 EUR"}, FirstTouch, ByMedium, 0, "m1 1 10"},
		"no touch is Direct":                         {[]string{"0h a purchase 10 EUR"}, LastTouch, ByChannel, 0, "Direct 1 10"},
		"no visitor is Direct, whatever the source":  {[]string{"0h - purchase 10 EUR from:google"}, LastTouch, ByChannel, 0, "Direct 1 10"},
		"a touch without a medium has none":          {[]string{"0h a purchase 10 EUR from:s1"}, LastTouch, ByMedium, 0, "(none) 1 10"},
		"refunds change nothing":                     {[]string{"0h a purchase 10 EUR from:s1", "1h a refund 10 EUR"}, LastTouch, BySource, 0, "s1 1 10"},
		"other currencies are no revenue":            {[]string{"0h a purchase 10 USD from:s1"}, LastTouch, BySource, 0, "s1 1 0"},
		"the larger credit first, then the revenue":  {[]string{"0h a purchase 1 EUR from:s1", "0h b purchase 2 EUR from:s2", "0h c purchase 1 EUR from:s3", "1h c purchase 0 EUR"}, LastTouch, BySource, 0, "s3 2 1, s2 1 2, s1 1 1"},
		"hundredths of a cent add up as well":        {[]string{"0h a x from:s1", "1h a purchase 0.0003 EUR from:s2"}, Linear, BySource, 0, "s1 0.5 0.0002, s2 0.5 0.0001"},
	} {
		t.Run(sentence, func(t *testing.T) {
			a, err := tale(t, scene.tale...).Attribution(t.Context(), AttributionQuery{
				Range: afternoon(), Model: scene.model, ConversionEvent: "purchase", Lookback: scene.lookback, GroupBy: scene.by,
			})
			mustNot(t, err)
			var got []string
			for _, r := range a.Results {
				got = append(got, fmt.Sprintf("%s %s %s", r.Name, r.Conversions, r.Revenue))
			}
			if strings.Join(got, ", ") != scene.want {
				t.Errorf("got %q, want %q", got, scene.want)
			}
		})
	}
}

func TestWhichDeliveryRecordHolds(t *testing.T) {
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	for sentence, scene := range map[string]struct {
		records []stream.Record
		want    string
	}{
		"without a record it is pending":                  {nil, "pending 0 "},
		"of two attempts the later holds":                 {[]stream.Record{{Status: stream.Retrying, Attempts: 1, At: at(1)}, {Status: stream.Retrying, Attempts: 2, At: at(2)}}, "retrying 2 "},
		"also when it comes first":                        {[]stream.Record{{Status: stream.Retrying, Attempts: 2, At: at(2)}, {Status: stream.Retrying, Attempts: 1, At: at(1)}}, "retrying 2 "},
		"what is delivered stays delivered":               {[]stream.Record{{Status: stream.Delivered, Attempts: 1, At: at(1)}, {Status: stream.Failed, Attempts: 2, At: at(2)}}, "delivered 1 "},
		"delivered holds though a clock was behind":       {[]stream.Record{{Status: stream.Failed, Attempts: 1, At: at(5)}, {Status: stream.Delivered, Attempts: 2, At: at(-1)}}, "delivered 2 "},
		"a late attempt does not reopen what is final":    {[]stream.Record{{Status: stream.Failed, Attempts: 2, At: at(2)}, {Status: stream.Retrying, Attempts: 1, At: at(1)}}, "failed 2 "},
		"a replay reopens what has failed":                {[]stream.Record{{Status: stream.Failed, Attempts: 2, At: at(2)}, {Status: stream.Retrying, Attempts: 3, At: at(9)}}, "retrying 3 "},
		"the reason is the holding record's":              {[]stream.Record{{Status: stream.Retrying, Attempts: 1, Reason: "timeout", At: at(1)}, {Status: stream.Failed, Attempts: 2, Reason: "http_400", At: at(2)}}, "failed 2 http_400"},
		"a platform that the event does not name is none": {[]stream.Record{{Platform: "other", Status: stream.Failed, At: at(1)}}, "pending 0 "},
		"a status that nobody knows is passed over":       {[]stream.Record{{Status: 9, At: at(1)}}, "pending 0 "},
	} {
		t.Run(sentence, func(t *testing.T) {
			v := tale(t, "0h a x")
			for _, r := range scene.records {
				r.Event = stream.At(begin)
				if r.Platform == "" {
					r.Platform = "crm"
				}
				v.AddRecords([]stream.Record{r})
			}
			page, err := v.Listing(t.Context(), ListingQuery{Range: afternoon(), Limit: 1})
			mustNot(t, err)
			d := page.Records[0].Deliveries[0]
			if got := fmt.Sprintf("%s %d %s", d.Status, d.Attempts, d.Reason); got != scene.want || len(page.Records[0].Deliveries) != 1 {
				t.Errorf("got %q, want %q", got, scene.want)
			}
		})
	}
}

func TestWhatWasSkippedIsCountedByItsReason(t *testing.T) {
	v := tale(t, "0h a x", "0h b x", "0h c x", "0h d x", "0h e x")
	for i, r := range []stream.Record{
		{Status: stream.Skipped, Reason: "consent_ad_user_data"}, {Status: stream.Skipped, Reason: "consent_absent"},
		{Status: stream.Skipped, Reason: "consent_ad_user_data"}, {Status: stream.Failed, Reason: "http_400"},
	} {
		r.Event, r.Platform, r.At = stream.At(begin)+stream.Position(i), "crm", begin
		v.AddRecords([]stream.Record{r})
	}
	stats, err := v.EventStats(t.Context(), StatsQuery{Range: afternoon(), Limit: 1})
	mustNot(t, err)
	got := stats.Events[0].Deliveries[0]
	sameAs(t, "skipped", got.Reasons[stream.Skipped], map[string]int{"consent_ad_user_data": 2, "consent_absent": 1})
	sameAs(t, "failed", got.Reasons[stream.Failed], map[string]int{"http_400": 1})
	sameAs(t, "by status", got.Counts, [...]int{stream.Pending: 1, stream.Failed: 1, stream.Skipped: 3, stream.Expired: 0})
}

func TestNumbersAreRightAfterAllWasForgotten(t *testing.T) {
	w := newWorld(1)
	w.visitors = 100
	w.grow(t, 2*columns.ChunkRows)
	w.view.Forget(w.last + 1)
	w.oracle.forget(w.last + 1)
	w.grow(t, 1000)
	w.check(t)
}

func TestAResetViewIsEmpty(t *testing.T) {
	v := tale(t, "0h a purchase 10 EUR")
	v.setReady()
	v.Reset()
	if got, want := v.Status(t.Context()), NewView(Options{Property: testProperty, Currency: "EUR"}).Status(t.Context()); got != want {
		t.Errorf("status is %+v, want %+v", got, want)
	}
	if _, err := v.Summary(t.Context(), afternoon(), nil); !errors.Is(err, ErrReplaying) {
		t.Errorf("asked while it is being rebuilt it says %v, want ErrReplaying", err)
	}
	v.setReady()
	s, err := v.Summary(t.Context(), afternoon(), nil)
	mustNot(t, err)
	sameAs(t, "summary", s, Summary{})
}

func TestAQueryEndsWithItsContext(t *testing.T) {
	v := tale(t, "0h a purchase 10 EUR")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, query := range map[string]func() error{
		"listing": func() error { _, err := v.Listing(ctx, ListingQuery{Range: afternoon(), Limit: 1}); return err },
		"summary": func() error { _, err := v.Summary(ctx, afternoon(), nil); return err },
		"daily":   func() error { _, err := v.Series(ctx, []Range{afternoon()}, nil); return err },
		"stats":   func() error { _, err := v.EventStats(ctx, StatsQuery{Range: afternoon(), Limit: 1000}); return err },
		"deliveries": func() error {
			_, err := v.Deliveries(ctx, DeliveriesQuery{Ranges: []Range{afternoon()}})
			return err
		},
		"visitors": func() error {
			_, err := v.Listing(ctx, ListingQuery{Range: afternoon(), Limit: 1, Visitors: []string{visitorID("client", []byte("a"))}})
			return err
		},
		"funnel": func() error { _, err := v.Funnel(ctx, funnelOf(afternoon(), []string{"a", "b"}, 0)); return err },
		"attribution": func() error {
			_, err := v.Attribution(ctx, AttributionQuery{Range: afternoon(), Model: Linear, ConversionEvent: "purchase", GroupBy: BySource})
			return err
		},
	} {
		if err := query(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
}

func TestQueriesAndFillingDoNotDisturbEachOther(t *testing.T) {
	w := newWorld(3)
	w.visitors = 50
	w.grow(t, 2*columns.ChunkRows)
	to := w.last.Time().Add(24 * 365 * time.Hour)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				stats, err := w.view.EventStats(t.Context(), StatsQuery{Range: Range{begin, to}, Limit: 1000})
				if err != nil {
					t.Error(err)
					return
				}
				for _, s := range stats.Events {
					for _, d := range s.Deliveries {
						total := 0
						for _, count := range d.Counts {
							total += count
						}
						if total > s.Count {
							t.Errorf("%d deliveries of %d events", total, s.Count)
						}
					}
				}
				if _, err := w.view.Listing(t.Context(), ListingQuery{Range: Range{begin, to}, Limit: 50}); err != nil {
					t.Error(err)
				}
				if _, err := w.view.Funnel(t.Context(), funnelOf(Range{begin, to}, []string{"pageview", "purchase"}, time.Hour)); err != nil {
					t.Error(err)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for range 30 {
		w.grow(t, columns.ChunkRows/8)
		w.forget()
	}
	close(done)
	readers.Wait()
	w.check(t)
}
