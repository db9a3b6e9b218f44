package lake

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// Row is an event in a file. Its columns are named as in the exports of the read API; docs/reference/platforms/s3.md describes
// each. Columns are added, none is ever renamed or given another type: files of all ages are read together.
type Row struct {
	EventID    string `parquet:"event_id"`
	Event      string `parquet:"event,dict"`
	ReceivedAt int64  `parquet:"received_at,timestamp(millisecond),delta"`
	Timestamp  *int64 `parquet:"timestamp,optional,timestamp(millisecond)"`
	// Position is where the event is in the stream: rows of a file have its order, and none has another's.
	Position int64 `parquet:"position,delta"`

	Value    *int64 `parquet:"value,optional,decimal(4:15)"`
	Currency string `parquet:"currency,optional,dict"`
	OrderID  string `parquet:"order_id,optional"`
	Tax      *int64 `parquet:"tax,optional,decimal(4:15)"`
	Shipping *int64 `parquet:"shipping,optional,decimal(4:15)"`
	Discount *int64 `parquet:"discount,optional,decimal(4:15)"`
	Coupon   string `parquet:"coupon,optional,dict"`

	ClientID    string   `parquet:"client_id,optional"`
	UserID      string   `parquet:"user_id,optional"`
	SessionID   string   `parquet:"session_id,optional"`
	Visitor     string   `parquet:"visitor,optional"`
	EmailSHA256 []string `parquet:"email_sha256,list"`
	PhoneSHA256 []string `parquet:"phone_sha256,list"`
	Country     string   `parquet:"country,optional,dict"`

	EngagementTime *int64 `parquet:"engagement_time_msec,optional"`
	ContentID      string `parquet:"content_id,optional"`
	ContentName    string `parquet:"content_name,optional"`
	SearchTerm     string `parquet:"search_term,optional"`
	ListID         string `parquet:"list_id,optional,dict"`
	ListName       string `parquet:"list_name,optional,dict"`
	Contents       []Item `parquet:"contents,list"`
	Properties     string `parquet:"properties,optional"`

	Context Context `parquet:"context"`
	Consent Consent `parquet:"consent"`
}

// Item is one of an event's contents.
type Item struct {
	ID        string `parquet:"id,optional"`
	Name      string `parquet:"name,optional"`
	Quantity  *int64 `parquet:"quantity,optional,decimal(4:15)"`
	Price     *int64 `parquet:"price,optional,decimal(4:15)"`
	Discount  *int64 `parquet:"discount,optional,decimal(4:15)"`
	Brand     string `parquet:"brand,optional,dict"`
	Variant   string `parquet:"variant,optional,dict"`
	Category  string `parquet:"category,optional,dict"`
	Category2 string `parquet:"category2,optional,dict"`
	Category3 string `parquet:"category3,optional,dict"`
	Category4 string `parquet:"category4,optional,dict"`
	Category5 string `parquet:"category5,optional,dict"`
	Extra     string `parquet:"extra,optional"`
}

// Context is where the visitor was and came from. Their address and user agent are in no file: those go from the stream within
// hours or days, and a file stays.
type Context struct {
	PageURL      string `parquet:"page_url,optional"`
	PageTitle    string `parquet:"page_title,optional,dict"`
	Referrer     string `parquet:"referrer,optional"`
	Language     string `parquet:"language,optional,dict"`
	ActionSource string `parquet:"action_source,optional,dict"`
	UTMSource    string `parquet:"utm_source,optional,dict"`
	UTMMedium    string `parquet:"utm_medium,optional,dict"`
	UTMCampaign  string `parquet:"utm_campaign,optional,dict"`
	UTMTerm      string `parquet:"utm_term,optional,dict"`
	UTMContent   string `parquet:"utm_content,optional,dict"`
	// ClickIDs is a JSON object: their names are added to.
	ClickIDs string `parquet:"click_ids,optional"`
}

// Consent is what the visitor decided, as the sender said it.
type Consent struct {
	AdUserData        string `parquet:"ad_user_data,optional,dict"`
	AdPersonalization string `parquet:"ad_personalization,optional,dict"`
	AdStorage         string `parquet:"ad_storage,optional,dict"`
	AnalyticsStorage  string `parquet:"analytics_storage,optional,dict"`
	TCF               string `parquet:"tcf,optional"`
	GPP               string `parquet:"gpp,optional"`
	GPPSections       string `parquet:"gpp_sid,optional,dict"`
	USPrivacy         string `parquet:"us_privacy,optional,dict"`
	LimitedDataUse    *bool  `parquet:"limited_data_use,optional"`
	// Categories is a JSON object: their names are the sender's.
	Categories string `parquet:"categories,optional,dict"`
}

// RowOf returns an event as a row. property is "NAMESPACE/NAME"; identifiers says that what tells whose the event is may be in a
// file. An anonymous event is nobody's there, whatever was kept of it for others.
func RowOf(e *event.Event, at stream.Position, property string, identifiers bool) (Row, error) {
	visitor := ""
	if e.Anonymous || !identifiers {
		nobodys := *e
		nobodys.DropIdentity()
		e = &nobodys
	} else if person, known := e.Whose(property); known {
		visitor = person.String()
	}
	row := Row{
		EventID: e.ID, Event: e.Name, ReceivedAt: at.Milliseconds(), Position: int64(at),
		Value: tenThousandths(e.Value), Currency: e.Currency, OrderID: e.OrderID,
		Tax: tenThousandths(e.Tax), Shipping: tenThousandths(e.Shipping), Discount: tenThousandths(e.Discount), Coupon: e.Coupon,
		ClientID: e.ClientID, UserID: e.UserID, SessionID: e.SessionID, Visitor: visitor,
		EmailSHA256: contacts(e, event.EmailLower), PhoneSHA256: contacts(e, event.PhoneDigits), Country: e.Country,
		ContentID: e.ContentID, ContentName: e.ContentName, SearchTerm: e.SearchTerm, ListID: e.ListID, ListName: e.ListName,
		Contents: itemsOf(e.Contents), Properties: string(e.Properties), Consent: Consent{
			AdUserData: decision(e.Consent.AdUserData), AdPersonalization: decision(e.Consent.AdPersonalization),
			AdStorage: decision(e.Consent.AdStorage), AnalyticsStorage: decision(e.Consent.AnalyticsStorage),
			TCF: e.Consent.TCF, GPP: e.Consent.GPP, GPPSections: e.Consent.GPPSections, USPrivacy: e.Consent.USPrivacy,
		},
	}
	if e.Consent.LimitedDataUse {
		row.Consent.LimitedDataUse = new(true)
	}
	if !e.OccurredAt.IsZero() {
		row.Timestamp = new(e.OccurredAt.UnixMilli())
	}
	if e.EngagementTime > 0 {
		row.EngagementTime = new(e.EngagementTime.Milliseconds())
	}
	c := &e.Context
	row.Context = Context{
		PageURL: c.PageURL, PageTitle: c.PageTitle, Referrer: c.Referrer, Language: c.Language, ActionSource: c.ActionSource.String(),
		UTMSource: c.UTMSource, UTMMedium: c.UTMMedium, UTMCampaign: c.UTMCampaign, UTMTerm: c.UTMTerm, UTMContent: c.UTMContent,
	}
	var err error
	if row.Context.ClickIDs, err = object(c.ClickIDs); err != nil {
		return Row{}, err
	}
	row.Consent.Categories, err = object(e.Consent.Categories)
	return row, err
}

// object returns a map as JSON, "" for an empty one.
func object[V any](members map[string]V) (string, error) {
	if len(members) == 0 {
		return "", nil
	}
	text, err := json.Marshal(members, json.Deterministic(true))
	return string(text), err
}

func tenThousandths(a *event.Amount) *int64 {
	if a == nil {
		return nil
	}
	return new(int64(*a))
}

func decision(d event.Decision) string {
	return [...]string{event.Unstated: "", event.Granted: "granted", event.Denied: "denied"}[d]
}

// contacts returns the hashes of all of the person's addresses or numbers.
func contacts(e *event.Event, variant event.Variant) []string {
	var list []string
	if hash := e.User.Get(variant); !hash.IsZero() {
		list = append(list, hash.String())
	}
	for i := range e.MoreContacts {
		if hash := e.MoreContacts[i].Get(variant); !hash.IsZero() {
			list = append(list, hash.String())
		}
	}
	return list
}

func itemsOf(contents []event.Item) []Item {
	if len(contents) == 0 {
		return nil
	}
	items := make([]Item, len(contents))
	for i, item := range contents {
		items[i] = Item{
			ID: item.ID, Name: item.Name, Quantity: tenThousandths(item.Quantity), Price: tenThousandths(item.Price),
			Discount: tenThousandths(item.Discount), Brand: item.Brand, Variant: item.Variant, Category: item.Category,
			Category2: item.Categories[0], Category3: item.Categories[1], Category4: item.Categories[2], Category5: item.Categories[3],
			Extra: string(item.Extra),
		}
	}
	return items
}

// Identity is what of a row tells whose it is: the columns that an erasure reads of every file.
type Identity struct {
	EventID     string   `parquet:"event_id"`
	Position    int64    `parquet:"position,delta"`
	ClientID    string   `parquet:"client_id,optional"`
	UserID      string   `parquet:"user_id,optional"`
	EmailSHA256 []string `parquet:"email_sha256,list"`
	PhoneSHA256 []string `parquet:"phone_sha256,list"`
}

// identity returns what of the row tells whose it is.
func (r *Row) identity() *Identity {
	return &Identity{
		EventID: r.EventID, Position: r.Position, ClientID: r.ClientID, UserID: r.UserID, EmailSHA256: r.EmailSHA256, PhoneSHA256: r.PhoneSHA256,
	}
}

// Person returns an event that has the row's identifiers and nothing else, and when it was received.
func (i *Identity) Person() (event.Event, time.Time) {
	e := event.Event{ID: i.EventID, ClientID: i.ClientID, UserID: i.UserID}
	for n := range max(len(i.EmailSHA256), len(i.PhoneSHA256)) {
		var hashes event.Hashes
		if n < len(i.EmailSHA256) {
			hashes[event.EmailLower], _ = event.ParseHash(i.EmailSHA256[n]) // what is none is nobody's
		}
		if n < len(i.PhoneSHA256) {
			hashes[event.PhoneDigits], _ = event.ParseHash(i.PhoneSHA256[n])
		}
		if n == 0 {
			e.User = hashes
		} else {
			e.MoreContacts = append(e.MoreContacts, hashes)
		}
	}
	return e, stream.Position(i.Position).Time()
}

// Key returns the key of the file that begins behind a position, below the prefix: of the day, and first in it where that is 0.
// Keys of a day order as positions do.
func Key(prefix string, day Day, start stream.Position) string {
	return day.folder(prefix) + name(start)
}

func name(start stream.Position) string {
	return fmt.Sprintf("%013d-%07d%s", start.Milliseconds(), uint64(start&stream.MaxSequence), suffix)
}

const suffix = ".parquet"

// Day is a day in UTC, as YYYY-MM-DD.
type Day string

// DayOf returns the day of a position.
func DayOf(p stream.Position) Day { return Day(p.Time().Format(time.DateOnly)) }

func (d Day) folder(prefix string) string {
	return prefix + "date=" + string(d) + "/"
}

// startOf reads a file's name.
func startOf(key string) (stream.Position, bool) {
	_, file := path.Split(key)
	text, found := strings.CutSuffix(file, suffix)
	if !found {
		return 0, false
	}
	p, err := stream.ParsePosition(text)
	return p, err == nil
}
