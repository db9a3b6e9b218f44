package imports

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/stream"
)

// exported is a line of an export of events in NDJSON, as the read API writes it.
type exported struct {
	EventID    *string            `json:"event_id"`
	ReceivedAt *string            `json:"received_at"`
	Visitor    *string            `json:"visitor"`
	Source     *string            `json:"source"`
	Medium     *string            `json:"medium"`
	Campaign   *string            `json:"campaign"`
	Channel    *string            `json:"channel"`
	Delivery   []exportedDelivery `json:"delivery"`
	Class      *string            `json:"class"`
	Timestamp  *string            `json:"timestamp"`

	Event    jsontext.Value `json:"event"`
	Value    jsontext.Value `json:"value"`
	Currency jsontext.Value `json:"currency"`
	OrderID  jsontext.Value `json:"order_id"`
	ClientID jsontext.Value `json:"client_id"`

	UserID         jsontext.Value `json:"user_id"`
	SessionID      jsontext.Value `json:"session_id"`
	EngagementTime jsontext.Value `json:"engagement_time_msec"`
	Tax            jsontext.Value `json:"tax"`
	Shipping       jsontext.Value `json:"shipping"`
	Discount       jsontext.Value `json:"discount"`
	Coupon         jsontext.Value `json:"coupon"`
	ContentID      jsontext.Value `json:"content_id"`
	ContentName    jsontext.Value `json:"content_name"`
	SearchTerm     jsontext.Value `json:"search_term"`
	ListID         jsontext.Value `json:"list_id"`
	ListName       jsontext.Value `json:"list_name"`
	Contents       jsontext.Value `json:"contents"`
	Properties     jsontext.Value `json:"properties"`
	Consent        jsontext.Value `json:"consent"`
	Country        jsontext.Value `json:"country"`
	Context        jsontext.Value `json:"context"`
}

// exportedDelivery is what became of an event on a platform.
type exportedDelivery struct {
	Platform  string  `json:"platform"`
	Status    string  `json:"status"`
	Latency   *int64  `json:"latency_ms"`
	Attempts  int64   `json:"attempts"`
	UpdatedAt string  `json:"updated_at"`
	Reason    *string `json:"reason"`
}

// sent is the envelope that an exported event would be sent with.
type sent struct {
	Event          jsontext.Value `json:"event,omitzero"`
	EventID        *string        `json:"event_id"`
	ClientID       jsontext.Value `json:"client_id,omitzero"`
	UserID         jsontext.Value `json:"user_id,omitzero"`
	SessionID      jsontext.Value `json:"session_id,omitzero"`
	EngagementTime jsontext.Value `json:"engagement_time_msec,omitzero"`
	User           struct {
		Country jsontext.Value `json:"country,omitzero"`
	} `json:"user"`
	Data       sentData       `json:"data"`
	Properties jsontext.Value `json:"properties,omitzero"`
	Context    jsontext.Value `json:"context,omitzero"`
	Consent    jsontext.Value `json:"consent,omitzero"`
}

type sentData struct {
	Value       jsontext.Value `json:"value,omitzero"`
	Currency    jsontext.Value `json:"currency,omitzero"`
	OrderID     jsontext.Value `json:"order_id,omitzero"`
	Tax         jsontext.Value `json:"tax,omitzero"`
	Shipping    jsontext.Value `json:"shipping,omitzero"`
	Discount    jsontext.Value `json:"discount,omitzero"`
	Coupon      jsontext.Value `json:"coupon,omitzero"`
	ContentID   jsontext.Value `json:"content_id,omitzero"`
	ContentName jsontext.Value `json:"content_name,omitzero"`
	SearchTerm  jsontext.Value `json:"search_term,omitzero"`
	ListID      jsontext.Value `json:"list_id,omitzero"`
	ListName    jsontext.Value `json:"list_name,omitzero"`
	Contents    jsontext.Value `json:"contents,omitzero"`
}

// envelope returns the envelope's JSON.
func (x *exported) envelope() ([]byte, error) {
	s := sent{
		Event: x.Event, EventID: x.EventID, ClientID: x.ClientID, UserID: x.UserID, SessionID: x.SessionID, EngagementTime: x.EngagementTime,
		Data: sentData{
			Value: x.Value, Currency: x.Currency, OrderID: x.OrderID, Tax: x.Tax, Shipping: x.Shipping, Discount: x.Discount, Coupon: x.Coupon,
			ContentID: x.ContentID, ContentName: x.ContentName, SearchTerm: x.SearchTerm, ListID: x.ListID, ListName: x.ListName, Contents: x.Contents,
		},
		Properties: x.Properties, Context: x.Context, Consent: x.Consent,
	}
	s.User.Country = x.Country
	return json.Marshal(s)
}

// readExport reads a line of an export. What it fails with is by the line's own members.
func (l *lines) readExport(line []byte) (event.Event, item, error) {
	var x exported
	if err := json.Unmarshal(line, &x); err != nil {
		return event.Event{}, item{}, malformed(err)
	}
	at, err := instant("received_at", x.ReceivedAt)
	if err != nil {
		return event.Event{}, item{}, err
	}
	known := ingest.Known{ReceivedAt: at, Judged: true}
	if x.Timestamp != nil {
		if known.OccurredAt, err = instant("timestamp", x.Timestamp); err != nil {
			return event.Event{}, item{}, err
		}
	}
	if x.Class != nil {
		if known.Class, err = classOf(*x.Class); err != nil {
			return event.Event{}, item{}, err
		}
	}
	i := item{ms: at.UnixMilli(), judged: true}
	if l.times == Happened && !known.OccurredAt.IsZero() {
		i.ms = known.OccurredAt.UnixMilli()
	}
	body, err := x.envelope()
	if err != nil {
		return event.Event{}, item{}, malformed(err)
	}
	e, err := l.past.Envelope(body, known)
	if err != nil {
		return event.Event{}, item{}, ofExport(err)
	}
	if err := x.whose(&e); err != nil {
		return event.Event{}, item{}, err
	}
	if x.Source != nil || x.Channel != nil {
		i.touch = rows.TouchText(columns.Touch{Source: text(x.Source), Medium: text(x.Medium), Campaign: text(x.Campaign), Channel: text(x.Channel)})
	}
	i.deliveries, err = x.deliveries(&e)
	return e, i, err
}

// whose has the event be its visitor's.
func (x *exported) whose(e *event.Event) error {
	if x.Visitor == nil {
		e.Anonymous = e.Class.Counts() && (e.ClientID != "" || e.UserID != "")
		return nil
	}
	visitor, ok := event.ParsePerson(*x.Visitor)
	if !ok {
		return fieldErr("visitor", "must be a visitor as exports have them, or null.")
	}
	e.Person = visitor
	return nil
}

// deliveries reads what became of the event, and has it be for these platforms.
func (x *exported) deliveries(e *event.Event) (list []delivery, err error) {
	for n, d := range x.Delivery {
		field := "delivery." + strconv.Itoa(n)
		if d.Platform == "" || strings.Contains(d.Platform, rows.PlatformSeparator) {
			return nil, fieldErr(field+".platform", "must be a platform's name.")
		}
		status, ok := statusOf(d.Status)
		if !ok {
			return nil, fieldErr(field+".status", "must be pending, retrying, delivered, failed, skipped or expired.")
		}
		at, err := instant(field+".updated_at", &d.UpdatedAt)
		if err != nil {
			return nil, err
		}
		read := delivery{platform: d.Platform, reason: text(d.Reason), status: status, attempts: uint64(max(d.Attempts, 0)), at: uint64(at.UnixMilli())}
		if d.Latency != nil {
			read.latency = uint64(max(*d.Latency, 0))
		}
		if status == stream.Pending && d.Attempts == 0 && d.Latency == nil && d.Reason == nil {
			read.at = 0
		}
		e.Platforms = append(e.Platforms, d.Platform)
		list = append(list, read)
	}
	return list, nil
}

func statusOf(text string) (stream.Status, bool) {
	for status := range stream.Expired + 1 {
		if status.String() == text {
			return status, true
		}
	}
	return 0, false
}

func classOf(text string) (event.Class, error) {
	for class := range event.Classes {
		if event.Class(class).String() == text {
			return event.Class(class), nil
		}
	}
	return 0, fieldErr("class", "must be human, bot, internal or test.")
}

// text returns what may be absent.
func text(optional *string) string {
	if optional == nil {
		return ""
	}
	return *optional
}

// instant reads a member that is a time.
func instant(field string, said *string) (time.Time, error) {
	if said == nil || *said == "" {
		return time.Time{}, fieldErr(field, "is required.")
	}
	at, err := event.ParseTimestamp(*said)
	if err != nil {
		return time.Time{}, fieldErr(field, "must be a time of ISO 8601 with its offset.")
	}
	return at.UTC().Truncate(time.Millisecond), nil
}

// fieldErr is an error of a member; what completes "The FIELD field …".
func fieldErr(field, what string) error {
	return event.Errors{{Field: field, Message: "The " + field + " field " + what}}
}

// ofExport puts an envelope's errors into the words of an export: what is in data and user there stands at the top.
func ofExport(err error) error {
	errs, ok := errors.AsType[event.Errors](err)
	if !ok {
		return err
	}
	told := make(event.Errors, 0, len(errs))
	for _, one := range errs {
		field := strings.TrimPrefix(strings.TrimPrefix(one.Field, "data."), "user.")
		told.Add(field, strings.Replace(one.Message, " "+one.Field+" ", " "+field+" ", 1))
	}
	return told
}
