package analytics

import "time"

// latencies counts milliseconds exactly, in pages that are made when a latency falls into them.
type latencies struct {
	pages []*[latencyPage]uint32
	// spare are pages that were moved from, all zero.
	spare []*[latencyPage]uint32
	total int
}

const latencyPage = 256

func (l *latencies) add(ms uint32, reservation *reservation) {
	// Nearly always the page is there, and a look for it costs less than a call.
	number := int(ms / latencyPage)
	if number >= len(l.pages) || l.pages[number] == nil {
		l.page(number, reservation)
	}
	l.pages[number][ms%latencyPage]++
	l.total++
}

// page returns the page with a number.
func (l *latencies) page(number int, reservation *reservation) *[latencyPage]uint32 {
	if number >= len(l.pages) {
		_ = reservation.growFor(number+1-len(l.pages), 16) // where it fails the query ends with this chunk
		l.pages = append(l.pages, make([]*[latencyPage]uint32, number+1-len(l.pages))...)
	}
	if l.pages[number] == nil {
		l.pages[number] = l.newPage(reservation)
	}
	return l.pages[number]
}

func (l *latencies) newPage(reservation *reservation) *[latencyPage]uint32 {
	if last := len(l.spare) - 1; last >= 0 {
		page := l.spare[last]
		l.spare = l.spare[:last]
		return page
	}
	_ = reservation.grow(4 * latencyPage) // as above
	return new([latencyPage]uint32)
}

// percentile returns the smallest latency that at least percent of all do not exceed, nil where there is none.
func (l *latencies) percentile(percent int) *time.Duration {
	wanted := (l.total*percent + 99) / 100
	if wanted == 0 {
		return nil
	}
	seen := 0
	for page, counts := range l.pages {
		if counts == nil {
			continue
		}
		for ms, count := range counts {
			if seen += int(count); seen >= wanted {
				latency := time.Duration(page*latencyPage+ms) * time.Millisecond
				return &latency
			}
		}
	}
	return nil
}

// moveTo adds all latencies to others and leaves none.
func (l *latencies) moveTo(to *latencies, reservation *reservation) {
	for number, page := range l.pages {
		if page == nil {
			continue
		}
		l.pages[number], l.spare = nil, append(l.spare, page)
		sum := to.page(number, reservation)
		for ms, count := range page {
			sum[ms] += count
		}
		clear(page[:])
	}
	to.total += l.total
	l.total = 0
}
