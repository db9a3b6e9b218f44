package analytics

import (
	"context"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// Listing returns a page of the events of a range, newest first. It fails with [ErrReplaying], [ErrTooCostly], [ErrBusy] or where the context
// ends.
func (v *View) Listing(ctx context.Context, q ListingQuery) (Page, error) {
	return runQuery(ctx, v, namesOf(q.Class, q.Events...), func(ctx context.Context, s *snapshot) (Page, error) { return s.listing(ctx, q) })
}

func (s *snapshot) listing(ctx context.Context, q ListingQuery) (Page, error) {
	rows := s.in(q.Range)
	if q.After != 0 {
		rows.End = min(rows.End, max(rows.First, s.Search(q.After)))
	}
	filter := newListingFilter(s, q)
	page := Page{CompleteFrom: s.completeFrom}
	for left := rows; left.Len() > 0; {
		if err := ctx.Err(); err != nil {
			return Page{}, err
		}
		c := left.LastChunk()
		left.End = c.Ordinal
		if filter.skips(&c) {
			continue
		}
		if full := s.appendRecords(&page, &c, filter, min(q.Limit, rows.Len())); full {
			break
		}
	}
	return page, nil
}

// appendRecords appends the rows that are shown to a page, newest first. Where there are more than the page takes it notes
// where the next one begins, and says so.
func (s *snapshot) appendRecords(page *Page, c *columns.ChunkRange, filter *listingFilter, limit int) (full bool) {
	c.Lock()
	defer c.Unlock()
	for row := c.To - 1; row >= c.From; row-- {
		if !filter.keeps(c.Chunk, row) {
			continue
		}
		if len(page.Records) == limit {
			page.Next = page.Records[limit-1].Position
			return true
		}
		if page.Records == nil {
			page.Records = make([]Record, 0, limit)
		}
		page.Records = append(page.Records, s.record(c.Chunk, row))
	}
	return false
}

// listingFilter decides which rows a listing shows.
type listingFilter struct {
	class event.Class
	known []columns.Name
	// names are the numbers of those that are asked for, nil where any of the class will do.
	names     map[uint32]bool
	platforms []string
	// statuses are those that are asked for, nil where any will do.
	statuses map[stream.Status]bool
	lists    []columns.PlatformList
	// places remembers per list of platforms where those stand in it that are asked for.
	places map[uint16][]int
}

func newListingFilter(s *snapshot, q ListingQuery) *listingFilter {
	f := &listingFilter{class: q.Class, known: s.Names, platforms: q.Platforms, lists: s.Platforms, places: map[uint16][]int{}}
	if len(q.Events) > 0 {
		f.names = map[uint32]bool{}
		for _, number := range s.numbers {
			f.names[number] = true
		}
	}
	if len(q.Statuses) > 0 {
		f.statuses = map[stream.Status]bool{}
		for _, status := range q.Statuses {
			f.statuses[status] = true
		}
	}
	return f
}

// skips says that no row of a full chunk has one of the names, or is of the class.
func (f *listingFilter) skips(c *columns.ChunkRange) bool {
	index := c.Index()
	if index == nil {
		return false
	}
	for name := range f.names {
		if len(index.Of(name).Rows) > 0 {
			return false
		}
	}
	return f.names != nil || index.Classes[f.class] == 0
}

// keeps says whether the row is shown. The caller holds the chunk's lock.
func (f *listingFilter) keeps(c *columns.Chunk, row int) bool {
	if name := c.Name[row]; (f.names != nil && !f.names[name]) || (f.names == nil && f.known[name].Class != f.class) {
		return false
	}
	if len(f.platforms) == 0 && f.statuses == nil {
		return true
	}
	return slices.ContainsFunc(f.placesIn(c.Platforms[row]), func(place int) bool {
		return f.statuses == nil || f.statuses[c.Deliveries[place][row].Status()]
	})
}

// placesIn returns where in a list of platforms those stand that are asked for.
func (f *listingFilter) placesIn(list uint16) []int {
	places, known := f.places[list]
	if known || f.lists[list] == "" {
		return places
	}
	for place, name := range f.lists[list].All() {
		if len(f.platforms) == 0 || slices.Contains(f.platforms, name) {
			places = append(places, place)
		}
	}
	f.places[list] = places
	return places
}

// record returns the row as the listing shows it. The caller holds the chunk's lock.
func (s *snapshot) record(c *columns.Chunk, row int) Record {
	received, name := c.Position[row].Time(), s.Names[c.Name[row]]
	r := Record{
		Position: c.Position[row], Event: name.Event, Class: name.Class, ReceivedAt: received,
		Currency: s.Currencies[c.Currency[row]], Touch: s.Touches[c.Touch[row]],
		Anonymous: c.Position[row] < s.NobodyBefore,
	}
	visitor := c.Visitor[row]
	r.EventID, r.OrderID, r.ClientID = c.IDs(row, s.ClientIDs[visitor])
	if value := c.Value[row]; value != columns.NoValue {
		r.Value = &value
	}
	if visitor != 0 {
		r.Visitor = s.VisitorKeys[visitor].String()
	}
	list := s.Platforms[c.Platforms[row]]
	if count := list.Count(); count > 0 {
		r.Deliveries = make([]Delivery, 0, count)
	}
	for place, platform := range list.All() {
		r.Deliveries = append(r.Deliveries, s.delivery(c.Deliveries[place][row], platform, received))
	}
	return r
}

// delivery returns a delivery as the listing shows it.
func (s *snapshot) delivery(d columns.Delivery, platform string, received time.Time) Delivery {
	shown := Delivery{
		Platform: platform, Status: d.Status(), Attempts: d.Attempts(), UpdatedAt: d.Updated(received), Reason: s.Reason(d),
	}
	if shown.Attempts > 0 {
		latency := time.Duration(d.Latency()) * time.Millisecond
		shown.Latency = &latency
	}
	return shown
}
