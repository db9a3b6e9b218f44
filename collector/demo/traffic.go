package demo

import "time"

// slot is at most an hour of the past, [start, end) in ms since 1970.
type slot struct {
	start, end int64
	// quota is how many events belong to the past up to the slot's end.
	quota int
}

// hourWeights is how busy a shop is in each hour of the day, by the clocks of its customers.
var hourWeights = [24]int64{
	18, 10, 6, 4, 4, 7, 16, 30, 44, 54, 60, 64, 66, 60, 57, 58, 62, 68, 78, 92, 100, 92, 66, 36,
}

// weekdayWeights begins with Sunday, on which people have time.
var weekdayWeights = [7]int64{126, 100, 95, 93, 96, 104, 112}

// growth is how much busier the shop is at the end of the past than at its beginning, in percent.
const growth = 40

// slotsOf cuts a past into local hours and hands the events out among them, by the hour, the day of the week and
// the shop's growth.
func slotsOf(o Options, location *time.Location) []slot {
	start := o.End.Add(-time.Duration(o.Days) * 24 * time.Hour)
	total := o.End.UnixMilli() - start.UnixMilli()
	var slots []slot
	var weights []int64
	var sum int64
	for at := start; at.Before(o.End); {
		local := at.In(location)
		into := time.Duration(local.Minute())*time.Minute + time.Duration(local.Second())*time.Second + time.Duration(local.Nanosecond())
		end := at.Add(time.Hour - into)
		if end.After(o.End) {
			end = o.End
		}
		s := slot{start: at.UnixMilli(), end: end.UnixMilli()}
		// The products stay far below 2^63 for a year of hours.
		grown := 100 + growth*(s.start-start.UnixMilli())/total
		sum += hourWeights[local.Hour()] * weekdayWeights[local.Weekday()] * grown * (s.end - s.start) / 1000
		slots, weights = append(slots, s), append(weights, sum)
		at = end
	}
	for i := range slots {
		slots[i].quota = o.Events
		if sum > 0 {
			slots[i].quota = share(o.Events, weights[i], sum)
		}
	}
	slots[len(slots)-1].quota = o.Events
	return slots
}

// share returns n·part/whole without overflow; part is at most whole.
func share(n int, part, whole int64) int {
	for whole > 1<<36 {
		part, whole = part/2, whole/2
	}
	return int(int64(n) * part / whole)
}
