package console

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/event"
)

const (
	// figuresTimeout is how long a Property's pods may take for its figures, allFiguresTimeout all Properties' together.
	figuresTimeout    = 3 * time.Second
	allFiguresTimeout = 15 * time.Second
	// maxFiguresBytes bounds what is read of them.
	maxFiguresBytes = 64 << 10
)

// figures are a Property's of a period. Revenue is a number as the Property's pods have written it, in its currency.
type figures struct {
	Purchases      int64          `json:"purchases"`
	Revenue        jsontext.Value `json:"revenue"`
	Pageviews      int64          `json:"pageviews"`
	AddToCarts     int64          `json:"add_to_carts"`
	UniqueVisitors int64          `json:"unique_visitors"`
}

// summary is the part of the read API's summary that is read.
type summary struct {
	Data struct {
		KPIs figures `json:"kpis"`
	} `json:"data"`
}

// addFigures asks the pods of each Property for whose figures somebody has the scope, several at a time. Where one does not answer, the
// others do.
func (c *Console) addFigures(ctx context.Context, u *user, all []*seen, period string) {
	ctx, cancel := context.WithTimeout(ctx, allFiguresTimeout)
	defer cancel()
	var asking errgroup.Group
	asking.SetLimit(maxAsked)
	for _, one := range all {
		if one.Scope == nil {
			continue
		}
		asking.Go(func() error {
			found, err := c.figures(ctx, u, one, period)
			if err != nil {
				text := err.Error()
				one.Problem = &text
				return nil
			}
			one.Figures = found
			return nil
		})
	}
	_ = asking.Wait() // each says for itself what it has come to
}

// The reasons why there are no figures, which people are shown.
var (
	errNoAnswer   = errors.New("The Property's query pods do not answer.")                             //nolint:staticcheck,revive // a sentence for people
	errNotYet     = errors.New("The Property's query pods are not ready to answer yet.")               //nolint:staticcheck,revive // likewise
	errNoFigures  = errors.New("The Property's query pods answer nonsense.")                           //nolint:staticcheck,revive // likewise
	errNotTrusted = errors.New("The Property's query pods do not take the console's word for it yet.") //nolint:staticcheck,revive // likewise
)

// figures asks one Property's pods, with the least scope that can see figures.
func (c *Console) figures(ctx context.Context, u *user, of *seen, period string) (*figures, error) {
	ctx, cancel := context.WithTimeout(ctx, figuresTimeout)
	defer cancel()
	request, err := c.pods.request(ctx, http.MethodGet, of.property, "/analytics/summary", url.Values{"period": {period}}.Encode(), nil, u, auth.ScopeRead)
	if err != nil {
		return nil, errNotYet
	}
	request.Header.Set("Accept", jsonType)
	answer, err := c.pods.transport.RoundTrip(request)
	if err != nil {
		return nil, errNoAnswer
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusUnauthorized:
		return nil, errNotTrusted
	case answer.StatusCode == http.StatusServiceUnavailable:
		return nil, errNotYet
	case answer.StatusCode != http.StatusOK:
		return nil, errNoFigures
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxFiguresBytes+1))
	if err != nil {
		return nil, errNoAnswer
	}
	var read summary
	if len(text) > maxFiguresBytes || json.Unmarshal(text, &read) != nil || !read.Data.KPIs.plausible() {
		return nil, errNoFigures
	}
	return &read.Data.KPIs, nil
}

// revenuePattern is a sum as the read API writes it: up to four decimals.
var revenuePattern = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,23})(\.[0-9]{1,4})?$`)

// plausible says whether figures are what a Property's pods can have counted.
func (f *figures) plausible() bool {
	const most = 1 << 46 // so that no sum of them overflows
	for _, n := range []int64{f.Purchases, f.Pageviews, f.AddToCarts, f.UniqueVisitors} {
		if n < 0 || n > most {
			return false
		}
	}
	return revenuePattern.Match(f.Revenue)
}

// tenThousandths reads a plausible revenue.
func tenThousandths(revenue jsontext.Value) *big.Int {
	whole, fraction, _ := strings.Cut(string(revenue), ".")
	n, _ := new(big.Int).SetString(whole+(fraction + "0000")[:4], 10)
	return n
}

// totals sums the figures up by currency.
func totals(all []*seen) []total {
	sums, revenues := map[string]*total{}, map[string]*big.Int{}
	for _, one := range all {
		if one.Figures == nil {
			continue
		}
		sum := sums[one.Currency]
		if sum == nil {
			sum = &total{Currency: one.Currency}
			sums[one.Currency], revenues[one.Currency] = sum, new(big.Int)
		}
		sum.Properties++
		sum.Purchases += one.Figures.Purchases
		sum.Pageviews += one.Figures.Pageviews
		sum.AddToCarts += one.Figures.AddToCarts
		revenue := revenues[one.Currency]
		revenue.Add(revenue, tenThousandths(one.Figures.Revenue))
	}
	found := make([]total, 0, len(sums))
	for currency, sum := range sums {
		sum.Revenue = jsontext.Value(event.SumOf(revenues[currency]).String())
		found = append(found, *sum)
	}
	slices.SortFunc(found, func(a, b total) int {
		return cmp.Or(cmp.Compare(b.Properties, a.Properties), cmp.Compare(a.Currency, b.Currency))
	})
	return found
}
