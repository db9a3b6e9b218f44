package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/sources"
)

// topicChanged stands for the topic of an order that was read back.
const topicChanged = "changed"

// maxPage bounds an answer of a shop's.
const maxPage = 16 << 20

// pageSize is how many orders are asked for at a time.
const pageSize = 50

// Errors of a shop's API.
var (
	// ErrDenied says that the shop refuses the credentials, or that they do not allow what is asked.
	ErrDenied = errors.New("the shop refuses the credentials, or they allow too little")
	// ErrMoved says that there is no such API.
	ErrMoved = errors.New("the shop has no such API at the source's url")
)

// Doer makes requests. [http.Client] is one.
type Doer interface {
	Do(request *http.Request) (*http.Response, error)
}

// API reads a shop's orders. Its errors hold nothing of what the shop answers, and no credential.
type API struct {
	system      system
	source      *sources.Source
	credentials map[string]string
	doer        Doer
}

// NewAPI returns the API of a source, which reads orders. The error names the key that the source's Secret lacks.
func NewAPI(source *sources.Source, credentials map[string]string, doer Doer) (*API, error) {
	traits, _ := source.Type.Traits()
	for _, key := range traits.APICredentials {
		if credentials[key] == "" {
			return nil, fmt.Errorf("the Secret that apiSecretRef names must have the key %s", key)
		}
	}
	return &API{systems[source.Type], source, credentials, doer}, nil
}

// Changed calls found with what the shop says of each order that has changed since a time, and returns the time up to which
// all have been: what to ask for the next time, also where it fails on the way. An error of found ends it.
func (a *API) Changed(ctx context.Context, since time.Time, found func(Report) error) (time.Time, error) {
	return a.system.changed(ctx, a, since, found)
}

// Mend switches on the webhooks of the source that the shop has switched off after failures.
func (a *API) Mend(ctx context.Context) error {
	if a.system.mend != nil {
		return a.system.mend(ctx, a)
	}
	return nil
}

// call makes a request and reads the JSON that is answered into a value.
func (a *API) call(ctx context.Context, method, address string, body []byte, into any) (http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, ErrMoved
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "weir")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	switch a.source.Type {
	case sources.Shopify:
		request.Header.Set("X-Shopify-Access-Token", a.credentials["accessToken"])
	case sources.Stripe:
		request.Header.Set("Authorization", "Bearer "+a.credentials["restrictedKey"])
	default:
		request.SetBasicAuth(a.credentials["consumerKey"], a.credentials["consumerSecret"])
	}
	response, err := a.doer.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the URL
		}
		return nil, fmt.Errorf("the shop is not reached: %w", err)
	}
	defer response.Body.Close()
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return nil, ErrDenied
	case status == http.StatusNotFound, status >= 300 && status < 400:
		return nil, ErrMoved
	case status != http.StatusOK:
		return nil, fmt.Errorf("the shop answers %d", status)
	}
	decoder := json.NewDecoder(io.LimitReader(response.Body, maxPage))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return nil, errors.New("the shop's answer cannot be read")
	}
	return response.Header, nil
}

// base returns the URL of a resource of the API, with a query.
func (a *API) base(resource string, query url.Values) (string, error) {
	base, err := url.Parse(a.source.APIBase())
	if err != nil {
		return "", ErrMoved
	}
	base.Path, base.RawQuery = path.Join("/", base.Path, resource), query.Encode()
	return base.String(), nil
}

// changedShopify reads pages of orders, the longest unchanged first.
func changedShopify(ctx context.Context, a *API, since time.Time, found func(Report) error) (time.Time, error) {
	address, err := a.base("/admin/api/2026-01/orders.json", url.Values{
		"status": {"any"}, "updated_at_min": {since.UTC().Format(time.RFC3339)}, "order": {"updated_at asc"}, "limit": {strconv.Itoa(pageSize)},
	})
	latest := since
	for err == nil && address != "" {
		var page struct{ Orders []any }
		var header http.Header
		if header, err = a.call(ctx, http.MethodGet, address, nil, &page); err != nil {
			break
		}
		for _, order := range page.Orders {
			if latest, err = a.tell(order, latest, rule{from: "updated_at"}, found); err != nil {
				return latest, err
			}
		}
		address, err = a.next(header.Get("Link"))
	}
	return latest, err
}

// next returns where the next page is, as Shopify says in the field Link; "" on the last one. It has to be in the shop
// that the credentials are for.
func (a *API) next(link string) (string, error) {
	for part := range strings.SplitSeq(link, ",") {
		target, parameters, _ := strings.Cut(part, ";")
		if !strings.Contains(parameters, `rel="next"`) {
			continue
		}
		next, err := url.Parse(strings.Trim(strings.TrimSpace(target), "<>"))
		own, ownErr := url.Parse(a.source.APIBase())
		if err != nil || ownErr != nil || next.Host != own.Host || next.Scheme != own.Scheme {
			return "", errors.New("the shop's next page is elsewhere")
		}
		return next.String(), nil
	}
	return "", nil
}

// tell reports an order that was read back, and returns the later of two changes: its own and the latest before.
func (a *API) tell(document any, latest time.Time, changed rule, found func(Report) error) (time.Time, error) {
	if err := a.report(topicChanged, document, found); err != nil {
		return latest, err
	}
	if at := date(document, changed); at.After(latest) {
		latest = at
	}
	return latest, nil
}

// report reads what the shop says about a topic. One document that is none of its kind does not hold up the others.
func (a *API) report(topic string, document any, found func(Report) error) error {
	report, err := a.system.read(a.source, topic, document)
	if errors.Is(err, ErrMalformed) {
		report, err = ignored("The shop's document cannot be read."), nil
	}
	if err != nil {
		return err
	}
	return found(report)
}

// changedWooCommerce reads pages of orders, the longest unchanged first, and the refunds of each that has some: their own
// dates stand nowhere else.
func changedWooCommerce(ctx context.Context, a *API, since time.Time, found func(Report) error) (time.Time, error) {
	latest := since
	for number := 1; ; number++ {
		address, err := a.base("/wp-json/wc/v3/orders", url.Values{
			"modified_after": {since.UTC().Format("2006-01-02T15:04:05")}, "dates_are_gmt": {"true"}, "orderby": {"modified"}, "order": {"asc"},
			"per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(number)},
		})
		if err != nil {
			return latest, err
		}
		var orders []map[string]any
		if _, err := a.call(ctx, http.MethodGet, address, nil, &orders); err != nil {
			return latest, err
		}
		for _, order := range orders {
			if list, _ := order["refunds"].([]any); len(list) > 0 {
				if order["refunds"], err = a.refunds(ctx, text(order["id"])); err != nil {
					return latest, err
				}
			}
			if latest, err = a.tell(order, latest, rule{from: "date_modified_gmt", as: utc}, found); err != nil {
				return latest, err
			}
		}
		if len(orders) < pageSize {
			return latest, nil
		}
	}
}

// refunds reads the refunds of an order of WooCommerce's.
func (a *API) refunds(ctx context.Context, order string) ([]any, error) {
	address, err := a.base("/wp-json/wc/v3/orders/"+order+"/refunds", url.Values{"per_page": {"100"}})
	if err != nil {
		return nil, err
	}
	var refunds []any
	_, err = a.call(ctx, http.MethodGet, address, nil, &refunds)
	return refunds, err
}

// mendWooCommerce switches on the webhooks to this source that WooCommerce has disabled, after more than five failures
// in a row. Who wants one to rest pauses it.
func mendWooCommerce(ctx context.Context, a *API) error {
	address, err := a.base("/wp-json/wc/v3/webhooks", url.Values{"status": {"disabled"}, "per_page": {"100"}})
	if err != nil {
		return err
	}
	var webhooks []struct {
		ID          int64  `json:"id"`
		DeliveryURL string `json:"delivery_url"`
	}
	if _, err := a.call(ctx, http.MethodGet, address, nil, &webhooks); err != nil {
		return err
	}
	for _, webhook := range webhooks {
		target, err := url.Parse(webhook.DeliveryURL)
		if err != nil || !isPathOf(target.Path, a.source.Name) {
			continue
		}
		if address, err = a.base("/wp-json/wc/v3/webhooks/"+strconv.FormatInt(webhook.ID, 10), nil); err != nil {
			return err
		}
		var changed any
		if _, err := a.call(ctx, http.MethodPut, address, []byte(`{"status":"active"}`), &changed); err != nil {
			return err
		}
	}
	return nil
}

// isPathOf says whether a path ends as that of a source's webhooks does: /sources/KEY/NAME.
func isPathOf(path, source string) bool {
	parts := strings.Split(path, "/")
	return len(parts) >= 3 && slices.Equal(parts[len(parts)-3:], []string{"sources", parts[len(parts)-2], source})
}

// changedStripe reads Stripe's events since then, the newest first, as Stripe lists them.
func changedStripe(ctx context.Context, a *API, since time.Time, found func(Report) error) (time.Time, error) {
	latest, last := since, ""
	for {
		query := url.Values{"created[gte]": {strconv.FormatInt(since.Unix(), 10)}, "limit": {strconv.Itoa(pageSize)}, "types[]": stripeTypes(a.source)}
		if last != "" {
			query.Set("starting_after", last)
		}
		address, err := a.base("/v1/events", query)
		if err != nil {
			return since, err
		}
		var page struct {
			Data    []map[string]any `json:"data"`
			HasMore bool             `json:"has_more"`
		}
		if _, err := a.call(ctx, http.MethodGet, address, nil, &page); err != nil {
			return since, err
		}
		for _, listed := range page.Data {
			if err := a.report(text(listed["type"]), listed, found); err != nil {
				return since, err
			}
			if at := date(listed, rule{from: "created", as: unix}); at.After(latest) {
				latest = at
			}
			last = text(listed["id"])
		}
		if !page.HasMore || len(page.Data) == 0 {
			return latest, nil
		}
	}
}
