package clickhouse

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/uuid"
)

// encoder writes one column of rows.
type encoder struct {
	field []int
	kind  string
	write columnWriter
}

// columnWriter writes values in the Native format; at returns the value of a row. The writer keeps its first error, and whoever
// flushes it hears of that.
type columnWriter func(out *bufio.Writer, n int, at func(int) reflect.Value)

// fieldsOf are the fields of a struct that name a column, in their order; none of what is no struct.
func fieldsOf(t reflect.Type) (names []string, fields []reflect.StructField) {
	if t.Kind() != reflect.Struct {
		return nil, nil
	}
	for _, field := range reflect.VisibleFields(t) {
		if name := field.Tag.Get("ch"); name != "" && field.IsExported() {
			names, fields = append(names, name), append(fields, field)
		}
	}
	return names, fields
}

func encodersOf(t reflect.Type) ([]string, []encoder, error) {
	if t.Kind() != reflect.Struct {
		return nil, nil, fmt.Errorf("rows of type %s cannot be inserted: it must be a struct", t)
	}
	names, fields := fieldsOf(t)
	encoders := make([]encoder, len(fields))
	for i, field := range fields {
		kind, write, err := writerOf(field.Type)
		if err != nil {
			return nil, nil, fmt.Errorf("column %s: %w", names[i], err)
		}
		encoders[i] = encoder{field.Index, kind, write}
	}
	return names, encoders, nil
}

// writeBlock writes rows, a slice of structs. Errors stay in the writer.
func writeBlock(out *bufio.Writer, rows reflect.Value, names []string, encoders []encoder) {
	writeLength(out, len(encoders))
	writeLength(out, rows.Len())
	for i, column := range encoders {
		writeText(out, names[i])
		writeText(out, column.kind)
		column.write(out, rows.Len(), func(row int) reflect.Value { return rows.Index(row).FieldByIndex(column.field) })
	}
}

// writerOf is ClickHouse's type for one of Go's, and how its values are written.
func writerOf(t reflect.Type) (string, columnWriter, error) {
	if t == uuidType {
		return "UUID", writeUUIDs, nil
	}
	switch t.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		size := int(t.Size())
		return fmt.Sprintf("Int%d", 8*size), numbers(size, func(v reflect.Value) uint64 { return uint64(v.Int()) }), nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		size := int(t.Size())
		return fmt.Sprintf("UInt%d", 8*size), numbers(size, reflect.Value.Uint), nil
	case reflect.String:
		return "String", func(out *bufio.Writer, n int, at func(int) reflect.Value) {
			for i := range n {
				writeText(out, at(i).String())
			}
		}, nil
	case reflect.Pointer:
		return nullable(t)
	case reflect.Slice:
		return array(t)
	default:
		return "", nil, fmt.Errorf("values of type %s cannot be sent", t)
	}
}

func numbers(size int, bits func(reflect.Value) uint64) columnWriter {
	return func(out *bufio.Writer, n int, at func(int) reflect.Value) {
		var buffer [8]byte
		for i := range n {
			binary.LittleEndian.PutUint64(buffer[:], bits(at(i)))
			_, _ = out.Write(buffer[:size])
		}
	}
}

func nullable(t reflect.Type) (string, columnWriter, error) {
	kind, write, err := writerOf(t.Elem())
	zero := reflect.Zero(t.Elem())
	return "Nullable(" + kind + ")", func(out *bufio.Writer, n int, at func(int) reflect.Value) {
		for i := range n {
			if at(i).IsNil() {
				_ = out.WriteByte(1)
			} else {
				_ = out.WriteByte(0)
			}
		}
		write(out, n, func(i int) reflect.Value {
			if pointer := at(i); !pointer.IsNil() {
				return pointer.Elem()
			}
			return zero
		})
	}, err
}

func array(t reflect.Type) (string, columnWriter, error) {
	kind, write, err := writerOf(t.Elem())
	return "Array(" + kind + ")", func(out *bufio.Writer, n int, at func(int) reflect.Value) {
		var buffer [8]byte
		var flat []reflect.Value
		for i := range n {
			values := at(i)
			for j := range values.Len() {
				flat = append(flat, values.Index(j))
			}
			binary.LittleEndian.PutUint64(buffer[:], uint64(len(flat)))
			_, _ = out.Write(buffer[:])
		}
		write(out, len(flat), func(i int) reflect.Value { return flat[i] })
	}, err
}

func writeUUIDs(out *bufio.Writer, n int, at func(int) reflect.Value) {
	var buffer [16]byte
	for i := range n {
		id := at(i).Interface().(uuid.UUID)
		binary.LittleEndian.PutUint64(buffer[:], binary.BigEndian.Uint64(id[:8]))
		binary.LittleEndian.PutUint64(buffer[8:], binary.BigEndian.Uint64(id[8:]))
		_, _ = out.Write(buffer[:])
	}
}

func writeLength(out *bufio.Writer, n int) {
	var buffer [binary.MaxVarintLen64]byte
	_, _ = out.Write(buffer[:binary.PutUvarint(buffer[:], uint64(n))])
}

func writeText(out *bufio.Writer, text string) {
	writeLength(out, len(text))
	_, _ = out.WriteString(text)
}

// quoted are names as they stand in a statement.
func quoted(names []string) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("`" + strings.ReplaceAll(name, "`", "") + "`")
	}
	return b.String()
}
