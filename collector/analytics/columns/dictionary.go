package columns

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
}

// dictionaryBytes is about what a value takes beside its text.
const dictionaryBytes = 128

func newDictionary[K comparable](textOf func(K) int) *dictionary[K] {
	return &dictionary[K]{numbers: map[K]uint32{}, textOf: textOf}
}

// size is about how many bytes the dictionary takes.
func (d *dictionary[K]) size() int64 { return int64(dictionaryBytes*len(d.values) + d.text) }

func lengthOf[T ~string](text T) int { return len(text) }

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
		d.numbers[value] = number
		d.text += d.textOf(value)
	default:
		number = uint32(len(d.values))
		d.values = append(d.values, value)
		d.rows = append(d.rows, 0)
		d.numbers[value] = number
		d.text += d.textOf(value)
	}
	d.rows[number]++
	return number
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
