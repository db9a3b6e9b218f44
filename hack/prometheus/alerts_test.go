package prometheus_test

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// alerts are the chart's rules by their names, read as Prometheus reads them: expressions and templates are parsed.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	text, err := os.ReadFile("../../charts/weir/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errors.Join(errs...))
	}
	found := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			found[rule.Alert] = rule
		}
	}
	return found
}

// TestAlertsOfNumbersFireForWhatTheyAreAbout asks the engine after ten minutes of made-up series which of the alerts fire.
func TestAlertsOfNumbersFireForWhatTheyAreAbout(t *testing.T) {
	all := alerts(t)
	about := []string{"WeirVolumeFell", "WeirIdentifiersFell", "WeirDuplicatesRose", "WeirRefusalsRose", "WeirCurrenciesChanged", "WeirOrdersMissing"}
	const shop = `namespace="shops",property="shop",pod="shop-query-`
	finding := func(pod, event, signal string) string {
		return "weir_quality_finding{" + shop + pod + `",event="` + event + `",signal="` + signal + "\"} 1x10\n"
	}
	orders := func(kind, many string) string {
		return "weir_quality_orders{" + shop + `0",source="shopify",kind="` + kind + `"} ` + many + "x10\n"
	}
	for sentence, test := range map[string]struct {
		series string
		want   map[string]int
	}{
		"nothing is found":                   {`weir_quality_watching{` + shop + "0\"} 1x10\n", nil},
		"fewer purchases":                    {finding("0", "purchase", "volume"), map[string]int{"WeirVolumeFell": 1}},
		"two replicas say it, and it is one": {finding("0", "purchase", "volume") + finding("1", "purchase", "volume"), map[string]int{"WeirVolumeFell": 1}},
		"two events are two":                 {finding("0", "purchase", "volume") + finding("0", "lead", "volume"), map[string]int{"WeirVolumeFell": 2}},
		"what tells whose they are": {
			finding("0", "purchase", "client_id") + finding("0", "purchase", "email") + finding("0", "pageview", "click_id"), map[string]int{"WeirIdentifiersFell": 3},
		},
		"more are sent again":                           {finding("0", "purchase", "duplicates"), map[string]int{"WeirDuplicatesRose": 1}},
		"more are refused":                              {finding("0", "other", "refused"), map[string]int{"WeirRefusalsRose": 1}},
		"other currencies":                              {finding("0", "purchase", "currency"), map[string]int{"WeirCurrenciesChanged": 1}},
		"missing orders":                                {orders("missing", "3") + orders("different", "0") + orders("extra", "0"), map[string]int{"WeirOrdersMissing": 1}},
		"orders of another amount":                      {orders("missing", "0") + orders("different", "1"), map[string]int{"WeirOrdersMissing": 1}},
		"orders that only we have are no alert":         {orders("missing", "0") + orders("different", "0") + orders("extra", "5"), nil},
		"what has been found no longer is, a while ago": {strings.ReplaceAll(finding("0", "purchase", "volume"), "1x10", "1 1 stale"), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			storage := promqltest.LoadedStorage(t, "load 1m\n"+indented(test.series))
			engine := promqltest.NewTestEngine(t, false, 0, 10_000)
			fired := map[string]int{}
			for _, name := range about {
				rule, there := all[name]
				if !there {
					t.Fatalf("there is no alert %s; there are %q", name, slices.Sorted(maps.Keys(all)))
				}
				query, err := engine.NewInstantQuery(t.Context(), storage, nil, rule.Expr, time.Unix(600, 0))
				if err != nil {
					t.Fatal(err)
				}
				vector, err := query.Exec(t.Context()).Vector()
				if err != nil {
					t.Fatal(err)
				}
				if len(vector) > 0 {
					fired[name] = len(vector)
				}
				query.Close()
			}
			if !maps.Equal(fired, test.want) {
				t.Errorf("%v fire, want %v", fired, test.want)
			}
		})
	}
}
