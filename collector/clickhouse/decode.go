package clickhouse

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	// mostColumns, mostRows and longestText bound what a block of an answer has its reader keep. A server's blocks have some 65,000
	// rows; those that are made of arrays have more.
	mostColumns = 1000
	mostRows    = 1 << 20
	longestText = 64 << 20
	// firstRows is for how many rows room is made before any has come: their number may be a lie.
	firstRows = 1 << 10
)

// mismatch says that a query's columns are not those that its reader is for, in words that have nothing of the server's.
type mismatch struct{ message string }

// Error implements error.
func (m *mismatch) Error() string { return m.message }

// errNonsense says that an answer is not in the Native format.
var errNonsense = &Problem{Kind: Nonsense, Message: "it is not in the format that was asked for"}

// readBlock reads the next rows; [io.EOF] after the last.
func readBlock[T any](in *bufio.Reader) ([]T, error) {
	// Where a block would begin an error may: its first bytes would be one of 67 columns.
	if text, _ := in.Peek(6); string(text) == "Code: " || string(text) == "__exce" {
		return nil, errNonsense
	}
	columns, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, err
	}
	count, err := readLength(in, mostRows)
	if err != nil {
		return nil, err
	}
	if columns > mostColumns {
		return nil, errNonsense
	}
	var rows growing[T]
	t := reflect.TypeFor[T]()
	names, fields := fieldsOf(t)
	place := func(i, row int) reflect.Value { return rows.at(row, count).FieldByIndex(fields[i].Index) }
	if len(fields) == 0 {
		names, fields = []string{""}, []reflect.StructField{{Type: t}}
		place = func(_, row int) reflect.Value { return rows.at(row, count) }
	}
	seen := 0
	for range columns {
		name, err := readText(in)
		if err != nil {
			return nil, unexpected(err)
		}
		kind, err := readText(in)
		if err != nil {
			return nil, unexpected(err)
		}
		i := slices.Index(names, name)
		if names[0] == "" && columns == 1 {
			i = 0
		}
		if i < 0 {
			return nil, &mismatch{fmt.Sprintf("column %d of the answer is none of %s", seen+1, t)}
		}
		seen++
		if count == 0 {
			continue
		}
		column := reader{in: in}
		if err := column.read(kind, fields[i].Type, count, func(row int) reflect.Value { return place(i, row) }); err != nil {
			if _, ok := errors.AsType[*mismatch](err); ok {
				return nil, &mismatch{"column " + strconv.Quote(names[i]) + ": " + err.Error()}
			}
			return nil, unexpected(err)
		}
	}
	if columns > 0 && seen != len(fields) {
		return nil, &mismatch{fmt.Sprintf("the answer has %d columns, and %s %d", seen, t, len(fields))}
	}
	if count > 0 && columns > 0 {
		rows.at(count-1, count) // the last may have nothing but NULL
	}
	return rows.rows, nil
}

// growing are the rows of a block, as far as something of them has come.
type growing[T any] struct{ rows []T }

// at returns a row of count.
func (g *growing[T]) at(row, count int) reflect.Value {
	if row >= len(g.rows) {
		size := min(count, max(firstRows, 2*len(g.rows), row+1))
		g.rows = append(g.rows, make([]T, size-len(g.rows))...)
	}
	return reflect.ValueOf(&g.rows[row]).Elem()
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// reader reads a column.
type reader struct{ in *bufio.Reader }

// read reads what stands before a column's values, and them.
func (r reader) read(kind string, t reflect.Type, n int, at func(int) reflect.Value) error {
	if err := r.prefix(kind); err != nil {
		return err
	}
	return r.values(kind, t, n, at)
}

// prefix reads what stands before the values of types with dictionaries, also inside of others.
func (r reader) prefix(kind string) error {
	outer, inner := split(kind)
	if outer == "LowCardinality" {
		_, err := io.CopyN(io.Discard, r.in, 8) // its version
		return err
	}
	if outer == "SimpleAggregateFunction" {
		inner = inner[1:]
	}
	if outer == "Array" || outer == "Nullable" || outer == "Tuple" || outer == "SimpleAggregateFunction" {
		for _, part := range inner {
			if err := r.prefix(typeOf(part)); err != nil {
				return err
			}
		}
	}
	return nil
}

// values reads n values into the places of a Go type.
func (r reader) values(kind string, t reflect.Type, n int, at func(int) reflect.Value) error {
	outer, inner := split(kind)
	switch {
	case n == 0:
		return nil
	case outer == "Array" && t.Kind() == reflect.Slice:
		return r.arrays(inner[0], t, n, at)
	case outer == "Nullable" && t.Kind() == reflect.Pointer:
		return r.nullables(inner[0], t, n, at)
	case outer == "LowCardinality":
		return r.dictionary(inner[0], t, n, at)
	case outer == "SimpleAggregateFunction":
		return r.values(inner[1], t, n, at)
	case outer == "Tuple" && t.Kind() == reflect.Struct && t.NumField() == len(inner):
		for i, part := range inner {
			if err := r.values(typeOf(part), t.Field(i).Type, n, func(row int) reflect.Value { return at(row).Field(i) }); err != nil {
				return err
			}
		}
		return nil
	}
	return r.scalars(kind, t, n, at)
}

func (r reader) arrays(kind string, t reflect.Type, n int, at func(int) reflect.Value) error {
	var places []reflect.Value
	before := uint64(0)
	for row := range n {
		end, err := r.bits(8)
		if err != nil {
			return err
		}
		if end < before || end > mostRows {
			return errNonsense
		}
		values := reflect.MakeSlice(t, int(end-before), int(end-before))
		for i := range values.Len() {
			places = append(places, values.Index(i))
		}
		at(row).Set(values)
		before = end
	}
	return r.values(kind, t.Elem(), len(places), func(i int) reflect.Value { return places[i] })
}

func (r reader) nullables(kind string, t reflect.Type, n int, at func(int) reflect.Value) error {
	nulls := make([]byte, n)
	if _, err := io.ReadFull(r.in, nulls); err != nil {
		return err
	}
	unused := reflect.New(t.Elem()).Elem()
	return r.values(kind, t.Elem(), n, func(row int) reflect.Value {
		if nulls[row] != 0 {
			return unused
		}
		if at(row).IsNil() {
			at(row).Set(reflect.New(t.Elem()))
		}
		return at(row).Elem()
	})
}

// dictionary reads keys and which of them each row has. The first key of a Nullable is NULL.
func (r reader) dictionary(kind string, t reflect.Type, n int, at func(int) reflect.Value) error {
	flags, err := r.bits(8)
	if err != nil {
		return err
	}
	count, err := r.bits(8)
	if err != nil || count > mostRows {
		return cmpErr(err)
	}
	null := false
	elem := t
	if outer, inner := split(kind); outer == "Nullable" {
		if t.Kind() != reflect.Pointer {
			return fits(t)
		}
		null, kind, elem = true, inner[0], t.Elem()
	}
	keys := reflect.MakeSlice(reflect.SliceOf(elem), int(count), int(count))
	if err := r.values(kind, elem, int(count), keys.Index); err != nil {
		return err
	}
	rows, err := r.bits(8)
	if err != nil || rows != uint64(n) {
		return cmpErr(err)
	}
	size := 1 << (flags & 3)
	for row := range n {
		i, err := r.bits(size)
		switch {
		case err != nil:
			return err
		case i >= count:
			return errNonsense
		case !null:
			at(row).Set(keys.Index(int(i)))
		case i > 0:
			at(row).Set(keys.Index(int(i)).Addr())
		}
	}
	return nil
}

func cmpErr(err error) error {
	if err != nil {
		return err
	}
	return errNonsense
}

// integers are ClickHouse's integers by name: how many bytes they have.
var integers = map[string]int{
	"UInt8": 1, "UInt16": 2, "UInt32": 4, "UInt64": 8, "UInt128": 16, "UInt256": 32,
	"Int8": 1, "Int16": 2, "Int32": 4, "Int64": 8, "Int128": 16, "Int256": 32, "Bool": 1,
}

var (
	timeType = reflect.TypeFor[time.Time]()
	bigType  = reflect.TypeFor[big.Int]()
)

func (r reader) scalars(kind string, t reflect.Type, n int, at func(int) reflect.Value) error {
	read, err := r.scalar(kind, t)
	if err != nil {
		return err
	}
	for row := range n {
		if err := read(at(row)); err != nil {
			return err
		}
	}
	return nil
}

// scalar is how one value of a type is read.
func (r reader) scalar(kind string, t reflect.Type) (func(reflect.Value) error, error) {
	if read := r.numeric(kind, t); read != nil {
		return read, nil
	}
	outer, inner := split(kind)
	switch {
	case kind == "String" && t.Kind() == reflect.String:
		return func(v reflect.Value) error {
			text, err := readText(r.in)
			v.SetString(text)
			return err
		}, nil
	case outer == "FixedString" && t.Kind() == reflect.String:
		length, err := strconv.Atoi(inner[0])
		return r.fixed(length), err
	case kind == "UUID" && t == uuidType:
		return r.uuid, nil
	case outer == "DateTime" && t == timeType:
		return r.number(4, func(v reflect.Value, s uint64) { v.Set(reflect.ValueOf(time.Unix(int64(s), 0).UTC())) }), nil
	case kind == "Date" && t == timeType:
		return r.number(2, func(v reflect.Value, d uint64) { v.Set(reflect.ValueOf(time.Unix(int64(d)*86400, 0).UTC())) }), nil
	}
	return nil, fits(t)
}

func fits(t reflect.Type) error {
	return &mismatch{"the answer's type cannot be had as " + t.String()}
}

func (r reader) big(size int, signed bool, into *big.Int) error {
	text := make([]byte, size)
	if _, err := io.ReadFull(r.in, text); err != nil {
		return err
	}
	slices.Reverse(text)
	into.SetBytes(text)
	if signed && text[0] >= 0x80 {
		into.Sub(into, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	return nil
}

func (r reader) fixed(length int) func(reflect.Value) error {
	return func(v reflect.Value) error {
		text := make([]byte, length)
		_, err := io.ReadFull(r.in, text)
		v.SetString(string(text))
		return err
	}
}

func (r reader) uuid(v reflect.Value) error {
	var id uuid.UUID
	for i := range 2 {
		bits, err := r.bits(8)
		if err != nil {
			return err
		}
		binary.BigEndian.PutUint64(id[8*i:], bits)
	}
	v.Set(reflect.ValueOf(id))
	return nil
}

func readLength(in *bufio.Reader, most uint64) (int, error) {
	n, err := binary.ReadUvarint(in)
	if err == nil && n > most {
		err = errNonsense
	}
	return int(min(n, most)), unexpected(err)
}

// readText reads a text. It grows with what arrives, for its length may be a lie.
func readText(in *bufio.Reader) (string, error) {
	length, err := readLength(in, longestText)
	if err != nil {
		return "", err
	}
	if length <= in.Size() {
		text, err := in.Peek(length)
		if err != nil {
			return "", unexpected(err)
		}
		s := string(text)
		_, err = in.Discard(length)
		return s, err
	}
	var b strings.Builder
	_, err = io.CopyN(&b, in, int64(length))
	return b.String(), unexpected(err)
}

// split takes a type such as Tuple(a UInt8, b Array(String)) apart.
func split(kind string) (outer string, inner []string) {
	outer, rest, found := strings.Cut(kind, "(")
	if !found {
		return kind, nil
	}
	rest = strings.TrimSuffix(rest, ")")
	depth, begin := 0, 0
	for i := range len(rest) {
		switch rest[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				inner = append(inner, strings.TrimSpace(rest[begin:i]))
				begin = i + 1
			}
		}
	}
	return outer, append(inner, strings.TrimSpace(rest[begin:]))
}

// typeOf is the type in an element of a Tuple, which may have a name.
func typeOf(element string) string {
	if name, kind, found := strings.Cut(element, " "); found && !strings.Contains(name, "(") {
		return kind
	}
	return element
}
