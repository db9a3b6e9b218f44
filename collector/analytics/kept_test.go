package analytics

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestFilteredFunnels(t *testing.T) {
	for sentence, scene := range map[string]struct {
		tale   []string
		filter Filter
		window time.Duration
		want   string
	}{
		"who comes from elsewhere takes no part":             {[]string{"0h a A from:s1", "0h b A from:s2", "1h a B", "1h b B"}, Filter{BySource: {"s1"}}, 0, "1 1"},
		"within a window neither":                            {[]string{"0h a A from:s1", "0h b A from:s2", "1h a B", "1h b B"}, Filter{BySource: {"s1"}}, time.Hour, "1 1"},
		"what came before the touch is of none":              {[]string{"0h a A", "1h a B from:s1"}, Filter{BySource: {"s1"}}, 0, "0 0"},
		"any of the values will do":                          {[]string{"0h a A from:s1", "1h a B from:s2"}, Filter{BySource: {"s1", "s2"}}, 0, "1 1"},
		"a step takes the earliest event that is kept":       {[]string{"0h a A", "1h a B from:s2", "2h a A from:s1", "3h a B"}, Filter{BySource: {"s1"}}, 0, "1 1"},
		"an attempt begins with an event that is kept":       {[]string{"0h a A from:s2", "40m a A from:s1", "80m a B"}, Filter{BySource: {"s1"}}, time.Hour, "1 1"},
		"names may be left out though they fill steps":       {[]string{"0h a A", "1h a B"}, Filter{ByEvent: {"A"}}, 0, "1 0"},
		"an empty list of values keeps all":                  {[]string{"0h a A", "1h a B"}, Filter{BySource: {}}, 0, "1 1"},
		"a source that nobody came from leaves nothing over": {[]string{"0h a A from:s1", "1h a B"}, Filter{BySource: {"unknown"}}, 0, "0 0"},
	} {
		t.Run(sentence, func(t *testing.T) {
			q := funnelOf(afternoon(), []string{"A", "B"}, scene.window)
			q.Filter = scene.filter
			alternatives := q
			alternatives.Steps = [][]string{{"A", "never"}, {"never", "B"}}
			for _, q := range []FunnelQuery{q, alternatives} {
				f, err := tale(t, scene.tale...).Funnel(t.Context(), q)
				mustNot(t, err)
				if got := fmt.Sprint(f.Steps[0].Visitors, f.Steps[1].Visitors); got != scene.want {
					t.Errorf("got %s of %q, want %s", got, q.Steps, scene.want)
				}
			}
		})
	}
}

func TestFilteredAttributions(t *testing.T) {
	for sentence, scene := range map[string]struct {
		tale   []string
		model  Model
		filter Filter
		want   string
	}{
		"other conversions do not count":               {[]string{"0h a purchase 10 EUR from:s1", "0h b purchase 5 EUR from:s2"}, LastTouch, Filter{BySource: {"s1"}}, "1 of 10: s1 1 10"},
		"the touches are those of all events":          {[]string{"0h a x from:s1", "1h a purchase 10 EUR from:s2"}, FirstTouch, Filter{BySource: {"s2"}}, "1 of 10: s1 1 10"},
		"of a linear share as well":                    {[]string{"0h a x from:s1", "1h a purchase 10 EUR from:s2"}, Linear, Filter{BySource: {"s2"}}, "1 of 10: s1 0.5 5, s2 0.5 5"},
		"a conversion without a touch comes from none": {[]string{"0h a purchase 10 EUR", "0h b purchase 5 EUR from:s2"}, LastTouch, Filter{BySource: {"(direct)"}}, "1 of 10: (direct) 1 10"},
		"another event's name leaves no conversion":    {[]string{"0h a purchase 10 EUR from:s1"}, LastTouch, Filter{ByEvent: {"x"}}, "0 of 0: "},
		"what all dimensions of the filter keep is counted": {[]string{"0h a purchase 10 EUR from:s1/m1", "0h b purchase 5 EUR from:s1/m2"}, LastTouch,
			Filter{BySource: {"s1"}, ByMedium: {"m2", "m3"}}, "1 of 5: s1 1 5"},
	} {
		t.Run(sentence, func(t *testing.T) {
			a, err := tale(t, scene.tale...).Attribution(t.Context(), AttributionQuery{
				Range: afternoon(), Model: scene.model, ConversionEvent: "purchase", Lookback: 24 * time.Hour, GroupBy: BySource, Filter: scene.filter,
			})
			mustNot(t, err)
			var credits []string
			for _, r := range a.Results {
				credits = append(credits, fmt.Sprintf("%s %s %s", r.Name, r.Conversions, r.Revenue))
			}
			if got := fmt.Sprintf("%d of %s: %s", a.Conversions, a.Revenue, strings.Join(credits, ", ")); got != scene.want {
				t.Errorf("got  %s\nwant %s", got, scene.want)
			}
		})
	}
}
