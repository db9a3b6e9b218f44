package clickhouse

import (
	"encoding/binary"
	"math"
	"math/big"
	"reflect"
	"strings"
)

// numeric is how one number is read; nil for what is none, or does not go together.
func (r reader) numeric(kind string, t reflect.Type) func(reflect.Value) error {
	size, signed := integers[kind], strings.HasPrefix(kind, "Int")
	switch {
	case size > 8 && t == bigType:
		return func(v reflect.Value) error { return r.big(size, signed, v.Addr().Interface().(*big.Int)) }
	case kind == "Bool" && t.Kind() == reflect.Bool:
		return r.number(1, func(v reflect.Value, bits uint64) { v.SetBool(bits != 0) })
	case size > 0 && size == int(t.Size()) && signed && t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		shift := 64 - 8*size
		return r.number(size, func(v reflect.Value, bits uint64) { v.SetInt(int64(bits<<shift) >> shift) })
	case size > 0 && size == int(t.Size()) && !signed && t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64:
		return r.number(size, reflect.Value.SetUint)
	case kind == "UInt8" && t.Kind() == reflect.Bool: // what comparisons are of
		return r.number(1, func(v reflect.Value, bits uint64) { v.SetBool(bits != 0) })
	case kind == "Float64" && t.Kind() == reflect.Float64:
		return r.number(8, func(v reflect.Value, bits uint64) { v.SetFloat(math.Float64frombits(bits)) })
	}
	return nil
}

func (r reader) number(size int, set func(reflect.Value, uint64)) func(reflect.Value) error {
	return func(v reflect.Value) error {
		bits, err := r.bits(size)
		if err == nil {
			set(v, bits)
		}
		return err
	}
}

// bits reads a number of up to 8 bytes.
func (r reader) bits(size int) (uint64, error) {
	text, err := r.in.Peek(size)
	if err != nil {
		return 0, unexpected(err)
	}
	var buffer [8]byte
	copy(buffer[:], text)
	_, err = r.in.Discard(size)
	return binary.LittleEndian.Uint64(buffer[:]), err
}
