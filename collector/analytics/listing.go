package analytics

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// Listing returns a page of the events of a range, newest first. It fails with [ErrReplaying], [ErrTooCostly], [ErrBusy] or where the context
// ends.
func (v *View) Listing(ctx context.Context, q ListingQuery) (Page, error) {
	return ask(ctx, v, q.Events, func(ctx context.Context, s *snapshot) (Page, error) { return s.listing(ctx, q) })
}

func (s *snapshot) listing(ctx context.Context, q ListingQuery) (Page, error) {
	rows := s.in(q.Range)
	if q.Before != 0 {
		rows.end = min(rows.end, max(rows.first, s.search(q.Before)))
	}
	filter := newListingFilter(s, q)
	page := Page{CompleteFrom: s.completeFrom}
	for end := rows.end; end > rows.first; {
		if err := ctx.Err(); err != nil {
			return Page{}, err
		}
		c, last := s.at(end - 1)
		from := max(0, last+1-int(end-rows.first))
		if last-from+1 == chunkRows && filter.skips(c) {
			end -= chunkRows
			continue
		}
		c.mu.Lock()
		for row := last; row >= from; row-- {
			if !filter.keeps(c, row) {
				continue
			}
			if len(page.Records) == q.Limit {
				page.Next = page.Records[q.Limit-1].Position
				c.mu.Unlock()
				return page, nil
			}
			if page.Records == nil {
				page.Records = make([]Record, 0, min(q.Limit, rows.len()))
			}
			page.Records = append(page.Records, s.record(c, row))
		}
		c.mu.Unlock()
		end -= uint64(last + 1 - from)
	}
	return page, nil
}

// listingFilter decides which rows a listing shows.
type listingFilter struct {
	names     map[uint32]bool
	platforms []string
	// statuses are those that are asked for, nil where any will do.
	statuses map[stream.Status]bool
	lists    []string
	// slots remembers per list of platforms where those stand in it that are asked for.
	slots map[uint16][]int
}

func newListingFilter(s *snapshot, q ListingQuery) *listingFilter {
	f := &listingFilter{platforms: q.Platforms, lists: s.platforms, slots: map[uint16][]int{}}
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

// skips says that no row of a full chunk has one of the names.
func (f *listingFilter) skips(c *chunk) bool {
	if f.names == nil {
		return false
	}
	for name := range f.names {
		if len(c.sealed.of(name).rows) > 0 {
			return false
		}
	}
	return true
}

// keeps says whether the row is shown. The caller holds the chunk's mu.
func (f *listingFilter) keeps(c *chunk, row int) bool {
	if f.names != nil && !f.names[c.name[row]] {
		return false
	}
	if len(f.platforms) == 0 && f.statuses == nil {
		return true
	}
	return slices.ContainsFunc(f.slotsIn(c.platforms[row]), func(slot int) bool {
		return f.statuses == nil || f.statuses[c.deliveries[slot][row].status()]
	})
}

// slotsIn returns where in a list of platforms those stand that are asked for.
func (f *listingFilter) slotsIn(list uint16) []int {
	slots, known := f.slots[list]
	if known || f.lists[list] == "" {
		return slots
	}
	for slot, name := range strings.Split(f.lists[list], platformSeparator) {
		if len(f.platforms) == 0 || slices.Contains(f.platforms, name) {
			slots = append(slots, slot)
		}
	}
	f.slots[list] = slots
	return slots
}

// record returns the row as the listing shows it. The caller holds the chunk's mu.
func (s *snapshot) record(c *chunk, row int) Record {
	received := c.position[row].Time()
	r := Record{
		Position: c.position[row], Event: s.names[c.name[row]], ReceivedAt: received, Currency: s.currencies[c.currency[row]],
	}
	r.EventID, r.OrderID = readDetail(c.detail(row))
	if value := c.value[row]; value != noValue {
		r.Value = &value
	}
	if visitor := c.visitor[row]; visitor != 0 {
		r.Visitor, r.ClientID = s.keys[visitor].String(), s.clientIDs[visitor]
	}
	if number := c.touch[row]; number != 0 {
		touch := s.touches[number]
		r.Touch = &touch
	}
	list := s.platforms[c.platforms[row]]
	count := platformCount(list)
	if count > 0 {
		r.Deliveries = make([]Delivery, 0, count)
	}
	for slot := range count {
		platform, rest, _ := strings.Cut(list, platformSeparator)
		list = rest
		r.Deliveries = append(r.Deliveries, c.deliveries[slot][row].shown(platform, received, s.reasons))
	}
	return r
}

// shown returns the delivery as the listing shows it.
func (d delivery) shown(platform string, received time.Time, reasons *reasons) Delivery {
	shown := Delivery{
		Platform: platform, Status: d.status(), Attempts: int(d.attempts), UpdatedAt: d.updated(received), Reason: reasons.text(d.reason),
	}
	if d.attempts > 0 {
		latency := time.Duration(d.latency()) * time.Millisecond
		shown.Latency = &latency
	}
	return shown
}
