package analytics

import (
	"math/bits"
	"slices"
	"time"
)

// medianOf returns the median of at least one number of milliseconds, the mean of the two middle ones where
// their count is even. None is negative.
func medianOf(ms []int64) time.Duration {
	middle := len(ms) / 2
	upper := selectRank(ms, middle)
	if len(ms)%2 == 1 {
		return time.Duration(upper) * time.Millisecond
	}
	return time.Duration(selectRank(ms, middle-1)+upper) * time.Millisecond / 2
}

// Below fewSorted numbers sorting is quicker than counting; bucketBits is how much one count tells of a number.
const (
	fewSorted  = 512
	bucketBits = 12
)

// selectRank returns the number that would stand at a rank if they were sorted; none is negative. It counts how many
// share their leading bits and goes on with those among which the rank lies.
func selectRank(numbers []int64, rank int) int64 {
	shift := max(0, bits.Len64(uint64(slices.Max(numbers)))-bucketBits)
	for len(numbers) > fewSorted {
		var counts [1 << bucketBits]int
		for _, n := range numbers {
			counts[n>>shift&(1<<bucketBits-1)]++
		}
		bucket := 0
		for rank >= counts[bucket] {
			rank -= counts[bucket]
			bucket++
		}
		chosen := make([]int64, 0, counts[bucket])
		for _, n := range numbers {
			if n>>shift&(1<<bucketBits-1) == int64(bucket) {
				chosen = append(chosen, n)
			}
		}
		if shift == 0 {
			return chosen[0]
		}
		numbers, shift = chosen, max(0, shift-bucketBits)
	}
	sorted := slices.Clone(numbers)
	slices.Sort(sorted)
	return sorted[rank]
}
