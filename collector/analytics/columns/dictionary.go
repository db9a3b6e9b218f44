package columns

import "reflect"

// dictionary numbers the distinct values of a column and counts the rows that use each, so that a number is
// free for another value once the last row that used it has been dropped. It is not safe for concurrent use,
// save that a copy of values may be read at numbers that retained rows use.
type dictionary[K comparable] struct {
	numbers map[K]uint32
	values  []K
	rows    []uint32
	free    []uint32
	// textOf returns how many bytes of text a value has, text is how many all have.
	textOf func(K) int
	text   int
	// valueBytes is what a value takes in values, beside its text.
	valueBytes int
	// taken is how many bytes values have taken that were new, those that have gone among them.
	taken int64
}

func newDictionary[K comparable](textOf func(K) int) *dictionary[K] {
	return &dictionary[K]{numbers: map[K]uint32{}, textOf: textOf, valueBytes: int(reflect.TypeFor[K]().Size())}
}

// size is about how many bytes the dictionary takes.
func (d *dictionary[K]) size() int64 {
	slots := cap(d.values)*d.valueBytes + numberBytes*(cap(d.rows)+cap(d.free))
	return int64(slots + slotsFor(len(d.values))*(d.valueBytes+numberBytes) + d.text)
}

func lengthOf[T ~string](text T) int { return allocated(len(text)) }

// numberOf returns the value's number, NoNumber where no row has it.
func (d *dictionary[K]) numberOf(value K) uint32 {
	if number, known := d.numbers[value]; known {
		return number
	}
	return NoNumber
}

// acquire returns the value's number and counts one more row that uses it.
func (d *dictionary[K]) acquire(value K) uint32 {
	number, known := d.numbers[value]
	switch {
	case known:
	case len(d.free) > 0:
		number = d.free[len(d.free)-1]
		d.free = d.free[:len(d.free)-1]
		d.values[number] = value
		d.note(value, number)
	default:
		number = uint32(len(d.values))
		d.values = append(d.values, value)
		d.rows = append(d.rows, 0)
		d.note(value, number)
	}
	d.rows[number]++
	return number
}

// note notes the number of a value that is new.
func (d *dictionary[K]) note(value K, number uint32) {
	d.numbers[value] = number
	text := d.textOf(value)
	d.text += text
	d.taken += int64(text + 3*(d.valueBytes+numberBytes)) // of these two in the map, which is half full
}

// release takes back one acquire.
func (d *dictionary[K]) release(number uint32) {
	d.rows[number]--
	if d.rows[number] > 0 {
		return
	}
	delete(d.numbers, d.values[number])
	d.text -= d.textOf(d.values[number])
	var none K
	d.values[number] = none
	d.free = append(d.free, number)
}

// renumber numbers the values anew, in their order, where more than half of the numbers are free, and so gives back what these
// take. It returns the new numbers by the old ones, nil where they stay. No reader may be at work.
func (d *dictionary[K]) renumber() (to []uint32) {
	used := len(d.numbers)
	if !isSparse(used, len(d.values)) {
		return nil
	}
	to = make([]uint32, len(d.values))
	values, rows := make([]K, 0, used), make([]uint32, 0, used)
	d.numbers = make(map[K]uint32, used)
	for number, count := range d.rows {
		if count > 0 {
			to[number] = uint32(len(values))
			d.numbers[d.values[number]] = to[number]
			values, rows = append(values, d.values[number]), append(rows, count)
		}
	}
	d.values, d.rows, d.free = values, rows, nil
	return to
}
