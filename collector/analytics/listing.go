package analytics

import (
	"context"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// Listing returns a page of the events of a range, newest first. It fails with [ErrReplaying] or where the context
// ends.
func (v *View) Listing(ctx context.Context, q ListingQuery) (Page, error) {
	s, done, err := v.read(q.Events...)
	if err != nil {
		return Page{}, err
	}
	defer done()
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
	names    map[uint32]bool
	platform string
	status   *stream.Status
	lists    []string
	// slots remembers per list of platforms where the platform stands in it.
	slots map[uint16]int
}

func newListingFilter(s *snapshot, q ListingQuery) *listingFilter {
	f := &listingFilter{platform: q.Platform, status: q.Status, lists: s.platforms, slots: map[uint16]int{}}
	if len(q.Events) > 0 {
		f.names = map[uint32]bool{}
		for _, number := range s.numbers {
			f.names[number] = true
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
	if f.platform == "" {
		return f.status == nil || f.anyHasStatus(c, row)
	}
	list := c.platforms[row]
	slot, known := f.slots[list]
	if !known {
		slot = slotOf(f.lists[list], f.platform)
		f.slots[list] = slot
	}
	return slot >= 0 && (f.status == nil || c.deliveries[slot][row].status() == *f.status)
}

func (f *listingFilter) anyHasStatus(c *chunk, row int) bool {
	for slot := range platformCount(f.lists[c.platforms[row]]) {
		if c.deliveries[slot][row].status() == *f.status {
			return true
		}
	}
	return false
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
