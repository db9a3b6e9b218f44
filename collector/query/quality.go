package query

import (
	"math"
	"net/http"

	"github.com/weir-dev/weir/collector/quality"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// QualityReader returns which of a property's numbers have gone wrong, as was found last; found is false where nobody has looked
// lately.
type QualityReader interface {
	Quality() (report quality.Report, found bool)
	// Orders returns how the orders of shops compared with the purchases stored, of the latest day of each.
	Orders() []stream.OrderComparison
}

type qualityAnswer struct {
	Data qualityData `json:"data"`
}

type qualityData struct {
	State    string          `json:"state"`
	JudgedAt *string         `json:"judged_at"`
	Weeks    int             `json:"weeks"`
	Findings []findingRecord `json:"findings"`
	Events   []watchedRecord `json:"events"`
	Orders   []ordersRecord  `json:"orders"`
}

// ordersRecord is how the orders of a shop compared with the purchases stored, of a day.
type ordersRecord struct {
	Source     string        `json:"source"`
	Day        string        `json:"day"`
	ComparedAt string        `json:"compared_at"`
	Orders     int           `json:"orders"`
	Missing    orderListings `json:"missing"`
	Different  orderListings `json:"different"`
	Extra      orderListings `json:"extra"`
}

type orderListings struct {
	Count  int            `json:"count"`
	Orders []orderListing `json:"orders"`
}

// orderListing is an order, with what it is worth in the shop and as it is stored.
type orderListing struct {
	OrderID string  `json:"order_id"`
	Shop    *string `json:"shop"`
	Stored  *string `json:"stored"`
}

// findingRecord is a number that has gone wrong. Event is null for what is no event's alone.
type findingRecord struct {
	Event    *string        `json:"event"`
	Signal   quality.Signal `json:"signal"`
	Currency *string        `json:"currency"`
	From     string         `json:"from"`
	To       string         `json:"to"`
	Actual   float64        `json:"actual"`
	Expected float64        `json:"expected"`
	Events   int64          `json:"events"`
}

// watchedRecord says how soon it would be found that an event has stopped.
type watchedRecord struct {
	Event             *string `json:"event"`
	SeenWithinMinutes *int    `json:"seen_within_minutes"`
}

// notJudged is the state of a property that nobody has looked at lately.
const notJudged = "unknown"

// quality answers GET /properties/{property}/quality, from what was found last.
func (h *Handler) quality(w http.ResponseWriter, r *http.Request, t *Tenant) {
	if negotiate(w, r, object) == "" || !withoutParameters(w, r) {
		return
	}
	data := qualityData{State: notJudged, Findings: []findingRecord{}, Events: []watchedRecord{}, Orders: []ordersRecord{}}
	if report, found := t.Quality.Quality(); found {
		renderQuality(&data, &report)
		for _, c := range t.Quality.Orders() {
			data.Orders = append(data.Orders, ordersRecord{
				c.Source, c.Day, instant(c.At), c.Orders, renderOrders(&c.Missing), renderOrders(&c.Different), renderOrders(&c.Extra),
			})
		}
	}
	server.JSON(w, http.StatusOK, qualityAnswer{data})
}

func renderQuality(data *qualityData, report *quality.Report) {
	at := instant(report.At)
	data.State, data.JudgedAt, data.Weeks = string(report.State), &at, report.Weeks
	for i := range report.Findings {
		f := &report.Findings[i]
		record := findingRecord{
			Event: eventOf(f.Event), Signal: f.Signal, From: instant(f.From), To: instant(f.To),
			Actual: decimals(f.Actual), Expected: decimals(f.Expected), Events: f.Events,
		}
		if f.Signal == quality.Currency {
			record.Currency = optional(f.Currency)
		}
		data.Findings = append(data.Findings, record)
	}
	for _, event := range report.Events {
		record := watchedRecord{Event: eventOf(event.Event)}
		if minutes := int(event.SeenWithin.Minutes()); minutes > 0 {
			record.SeenWithinMinutes = &minutes
		}
		data.Events = append(data.Events, record)
	}
}

func renderOrders(list *stream.OrderList) orderListings {
	rendered := orderListings{list.Count, make([]orderListing, len(list.Orders))}
	for i, o := range list.Orders {
		rendered.Orders[i] = orderListing{o.OrderID, optional(o.Shop), optional(o.Stored)}
	}
	return rendered
}

// eventOf is an event's name, nil for events that have none of their own.
func eventOf(name string) *string {
	if name == quality.OtherEvents {
		return nil
	}
	return optional(name)
}

// decimals rounds to four of them, as rates are.
func decimals(x float64) float64 {
	const tenThousand = 1e4
	return math.Round(x*tenThousand) / tenThousand
}
