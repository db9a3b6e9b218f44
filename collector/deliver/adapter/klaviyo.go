package adapter

import (
	"bytes"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

const (
	klaviyoBaseURL = "https://a.klaviyo.com"
	// klaviyoMediaType is that of JSON:API.
	klaviyoMediaType = "application/vnd.api+json"
)

// klaviyoAdapter sends events to Klaviyo: several as a bulk job, one alone by itself.
type klaviyoAdapter struct{ base, authorization, revision string }

func openKlaviyo(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	return &klaviyoAdapter{
		base: baseURL(cfg, klaviyoBaseURL), authorization: "Klaviyo-API-Key " + credentials["apiKey"], revision: apiVersion(cfg),
	}, nil
}

// klaviyoNames are the metrics that Klaviyo's own integrations make; all others have the event's name. "Checkout Started" is
// the one of Shopify's shops.
var klaviyoNames = newStandardNames(map[string]string{
	"view_content":   "Viewed Product",
	"view_category":  "Viewed Collection",
	"view_item_list": "Viewed Collection",
	"search":         "Submitted Search",
	"add_to_cart":    "Added to Cart",
	"begin_checkout": "Started Checkout",
	"purchase":       "Placed Order",
	"refund":         "Refunded Order",
}, "Checkout Started")

type klaviyoProfile struct {
	Type       string `json:"type"`
	Attributes struct {
		ExternalID  string `json:"external_id,omitzero"`
		AnonymousID string `json:"anonymous_id,omitzero"`
		ExchangeID  string `json:"_kx,omitzero"`
	} `json:"attributes"`
}

type klaviyoMetric struct {
	Data struct {
		Type       string `json:"type"`
		Attributes struct {
			Name string `json:"name"`
		} `json:"attributes"`
	} `json:"data"`
}

// klaviyoEvent are an event's attributes but for whose it is.
type klaviyoEvent struct {
	Metric        klaviyoMetric `json:"metric"`
	Properties    members       `json:"properties"`
	Time          string        `json:"time"`
	Value         *event.Amount `json:"value,omitzero"`
	ValueCurrency string        `json:"value_currency,omitzero"`
	UniqueID      string        `json:"unique_id"`
}

type klaviyoItem struct {
	ProductID   string        `json:"ProductID,omitzero"`
	ProductName string        `json:"ProductName,omitzero"`
	Variant     string        `json:"Variant,omitzero"`
	Brand       string        `json:"Brand,omitzero"`
	Categories  []string      `json:"Categories,omitempty"`
	Quantity    int64         `json:"Quantity"`
	ItemPrice   *event.Amount `json:"ItemPrice,omitzero"`
	RowTotal    *event.Amount `json:"RowTotal,omitzero"`
}

// An event's payload is its row of a bulk job: klaviyoRow, whose it is, klaviyoEvents, its attributes, klaviyoRowEnd. A request
// with that event alone has the same two together. klaviyoEvents cannot stand within the first: there its quotes would be escaped.
const (
	klaviyoRow    = `{"type":"event-bulk-create","attributes":{"profile":{"data":`
	klaviyoEvents = `},"events":{"data":[{"type":"event","attributes":`
	klaviyoRowEnd = `}]}}}`
)

func (a *klaviyoAdapter) Map(e *Event) (Payload, Verdict) {
	name, reason := klaviyoNames.of(e, e.Name)
	if reason != "" {
		return Payload{}, Skip(reason)
	}
	profile := klaviyoProfile{Type: "profile"}
	profile.Attributes.ExternalID, profile.Attributes.AnonymousID = e.UserID, e.ClientID
	profile.Attributes.ExchangeID = klaviyoExchangeID(e.Context.PageURL)
	if profile.Attributes.ExternalID == "" && profile.Attributes.AnonymousID == "" && profile.Attributes.ExchangeID == "" {
		return Payload{}, Skip("no_identifier")
	}
	goods := goodsOf(e, takes{named: true, unnamed: true, costs: true})
	attributes := klaviyoEvent{Properties: klaviyoProperties(e, &goods), Time: e.Time().UTC().Format(timestampFormat), UniqueID: e.DedupID()}
	attributes.Metric.Data.Type, attributes.Metric.Data.Attributes.Name = "metric", name
	if goods.Value != nil {
		attributes.Value, attributes.ValueCurrency = goods.Value, goods.Currency
	}
	whose, verdict := bodyPayload(profile)
	if verdict.Class != Undecided {
		return Payload{}, verdict
	}
	what, verdict := bodyPayload(attributes)
	if verdict.Class != Undecided {
		return Payload{}, verdict
	}
	return Payload{Body: slices.Concat([]byte(klaviyoRow), whose.Body, []byte(klaviyoEvents), what.Body, []byte(klaviyoRowEnd))}, Verdict{}
}

// klaviyoExchangeID is what Klaviyo adds to the links of its messages, so that a visit tells whose it is; "" for none.
func klaviyoExchangeID(pageURL string) string {
	if !strings.Contains(pageURL, "_kx=") {
		return ""
	}
	page, err := url.Parse(pageURL)
	if err != nil {
		return "" // an address that cannot be read names nobody
	}
	return page.Query().Get("_kx")
}

// klaviyoProperties are named as Klaviyo's guide for shops has them, where it has a name: its templates for messages read these.
func klaviyoProperties(e *Event, g *goods) members {
	c := &e.Context
	p := members{}
	p.text("OrderId", e.OrderID)
	p.text("ProductID", e.ContentID)
	p.text("ProductName", e.ContentName)
	p.text("DiscountCode", e.Coupon)
	if e.Currency != "" {
		p.amount("DiscountValue", e.Discount)
	}
	p.amount("tax", g.Tax)
	p.amount("shipping", g.Shipping)
	p = append(p, klaviyoGoods(g)...)
	p.text("search_term", e.SearchTerm)
	p.text("list_id", e.ListID)
	p.text("list_name", e.ListName)
	p.text("page_url", c.PageURL)
	p.text("page_title", c.PageTitle)
	p.text("referrer", c.Referrer)
	p.campaign(c)
	p.text("action_source", c.ActionSource.String())
	// Those with a $ have a meaning of Klaviyo's, such as $value or $event_id.
	p.properties(e, func(name string) bool { return klaviyoOwn[name] || strings.HasPrefix(name, "$") })
	return p
}

// klaviyoOwn are the names that have a meaning in a property of ours, set or not: none of the customer's may stand in for one.
var klaviyoOwn = setOf(
	"OrderId", "ProductID", "ProductName", "DiscountCode", "DiscountValue", "tax", "shipping", "ItemNames", "Brands", "Categories", "Items",
	"search_term", "list_id", "list_name", "page_url", "page_title", "referrer", "utm_source", "utm_medium", "utm_campaign", "utm_term",
	"utm_content", "action_source",
)

// klaviyoGoods are the items, and lists of what they have, by which segments are made.
func klaviyoGoods(g *goods) members {
	if len(g.Items) == 0 {
		return nil
	}
	items := make([]klaviyoItem, len(g.Items))
	var names, brands, categories []string
	for i, piece := range g.Items {
		item := klaviyoItem{
			ProductID: piece.ID, ProductName: piece.Name, Variant: piece.Variant, Brand: piece.Brand, Quantity: piece.Quantity, ItemPrice: piece.Price,
		}
		for _, category := range append([]string{piece.Category}, piece.Categories[:]...) {
			item.Categories = appendOnce(item.Categories, category)
			categories = appendOnce(categories, category)
		}
		if quantity := piece.Quantity; piece.Price != nil && quantity <= int64(event.MaxAmount)/amountUnit {
			item.RowTotal = product(event.Amount(quantity*amountUnit), *piece.Price)
		}
		names, brands = appendOnce(names, piece.Name), appendOnce(brands, piece.Brand)
		items[i] = item
	}
	var p members
	for _, list := range []struct {
		name  string
		texts []string
	}{{"ItemNames", names}, {"Brands", brands}, {"Categories", categories}} {
		if len(list.texts) > 0 {
			p = append(p, member{list.name, list.texts})
		}
	}
	return append(p, member{"Items", items})
}

// appendOnce adds a text to a list unless it is empty or there already.
func appendOnce(list []string, text string) []string {
	if text == "" || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// Build makes a bulk job of several events. One alone is sent by itself: Klaviyo documents of it, and of it alone, that an
// event which repeats is no error, so that what is sent again after a bulk job was refused ends well though it had been taken.
func (a *klaviyoAdapter) Build(batch []Payload, _ time.Time) Request {
	header := jsonHeader()
	header.Set("Content-Type", klaviyoMediaType)
	header.Set("Accept", klaviyoMediaType)
	header.Set("Authorization", a.authorization)
	header.Set("Revision", a.revision)
	request := Request{Method: http.MethodPost, URL: a.base + "/api/event-bulk-create-jobs", Header: header}
	if len(batch) == 1 {
		whose, what, _ := bytes.Cut(batch[0].Body, []byte(klaviyoEvents))
		whose, what = bytes.TrimPrefix(whose, []byte(klaviyoRow)), bytes.TrimSuffix(what, []byte(klaviyoRowEnd))
		request.URL = a.base + "/api/events"
		request.Body = slices.Concat([]byte(`{"data":{"type":"event","attributes":{"profile":{"data":`), whose, []byte(`},`),
			bytes.TrimPrefix(what, []byte("{")), []byte("}}"))
		return request
	}
	request.Body = joinBodies(`{"data":{"type":"event-bulk-create-job","attributes":{"events-bulk-create":{"data":[`, batch, []byte("]}}}}"))
	return request
}

// klaviyoAnswer are the errors of JSON:API, which say where in the request each stands.
type klaviyoAnswer struct {
	Errors []klaviyoError `json:"errors"`
}

type klaviyoError struct {
	Detail string `json:"detail"`
	Source struct {
		Pointer string `json:"pointer"`
	} `json:"source"`
}

// klaviyoPointer finds the number of a bulk job's row.
var klaviyoPointer = regexp.MustCompile(`^/data/attributes/events-bulk-create/data/([0-9]{1,4})(/|$)`)

// klaviyoReasons name the fields that Klaviyo may refuse an event for.
var klaviyoReasons = map[string]string{
	"time": "time_refused", "value": "value_refused", "value_currency": "currency_refused", "name": "event_refused",
	"properties": "properties_refused", "external_id": "profile_refused", "anonymous_id": "profile_refused", "_kx": "profile_refused",
	"profile": "profile_refused",
}

// reason is the code of what is wrong with an event.
func (e *klaviyoError) reason() string {
	path := strings.Split(strings.TrimSuffix(e.Source.Pointer, "/"), "/")
	for _, name := range slices.Backward(path) {
		if reason, known := klaviyoReasons[name]; known {
			return reason
		}
	}
	return "refused"
}

// Classify takes a 202 alone for a success: it is what Klaviyo answers when it has an event.
func (a *klaviyoAdapter) Classify(r Response, n int) []Verdict {
	switch {
	case r.Status == http.StatusAccepted && !isHTML(r):
		return forAll(n, Verdict{Class: Delivered})
	case r.Status >= 200 && r.Status < 300:
		return forAll(n, Verdict{Class: Retry, Reason: "answer_unreadable"})
	case isHTML(r) && r.Status >= 400:
		return forAll(n, Verdict{Class: Retry, Reason: "http_" + strconv.Itoa(r.Status)})
	}
	verdict := classifyStatus(r, n)
	if verdict != refused(n, "http_"+strconv.Itoa(r.Status)) {
		return forAll(n, verdict)
	}
	var answer klaviyoAnswer
	if json.Unmarshal(r.Body, &answer) != nil || len(answer.Errors) == 0 {
		return forAll(n, verdict)
	}
	return classifyKlaviyoErrors(answer.Errors, n)
}

func classifyKlaviyoErrors(errs []klaviyoError, n int) []Verdict {
	for i := range errs {
		// A revision that Klaviyo does not know, or no longer: no event is to blame.
		if strings.Contains(strings.ToLower(errs[i].Detail), "revision") && !strings.HasPrefix(errs[i].Source.Pointer, "/data/attributes") {
			return forAll(n, Verdict{Class: Config, Reason: "revision_refused"})
		}
	}
	if n == 1 {
		return forAll(n, Verdict{Class: Permanent, Reason: errs[0].reason()})
	}
	// No event of a job is taken that has a bad one.
	verdicts := forAll(n, Verdict{Class: Retry, Reason: "batch_refused"})
	for i := range errs {
		found := klaviyoPointer.FindStringSubmatch(errs[i].Source.Pointer)
		if found == nil || strings.HasSuffix(errs[i].Source.Pointer, "/unique_id") {
			// It says not which, or the event is there already, which sending it alone tells.
			return forAll(n, refused(n, "batch_refused"))
		}
		row, err := strconv.Atoi(found[1])
		if err != nil || row >= n {
			return forAll(n, refused(n, "batch_refused"))
		}
		verdicts[row] = Verdict{Class: Permanent, Reason: errs[i].reason()}
	}
	return verdicts
}
