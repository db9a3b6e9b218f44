package wire

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-dev/weir/collector/event"
)

// field is one as it stands on the wire, with its value by its type.
type field struct {
	number  protowire.Number
	kind    protowire.Type
	varint  uint64
	fixed64 uint64
	bytes   []byte
}

// eachField calls read for every field of a message; a type that is never written comes without a value.
func eachField(data []byte, read func(field) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("is malformed: %w", protowire.ParseError(n))
		}
		data = data[n:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(data)
		case protowire.Fixed64Type:
			f.fixed64, n = protowire.ConsumeFixed64(data)
		default:
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 {
			return fmt.Errorf("field %d is malformed: %w", number, protowire.ParseError(n))
		}
		data = data[n:]
		if err := read(f); err != nil {
			return fmt.Errorf("field %d %w", number, err)
		}
	}
	return nil
}

var errWireType = errors.New("has the wrong wire type")

// text reads a string.
func (f *field) text(into *string) error {
	if f.kind != protowire.BytesType {
		return errWireType
	}
	if !utf8.Valid(f.bytes) {
		return errors.New("is not UTF-8")
	}
	*into = string(f.bytes)
	return nil
}

// fixed reads bytes of exactly len(into).
func (f *field) fixed(into []byte) error {
	if f.kind != protowire.BytesType {
		return errWireType
	}
	if len(f.bytes) != len(into) {
		return fmt.Errorf("has %d bytes and must have %d", len(f.bytes), len(into))
	}
	copy(into, f.bytes)
	return nil
}

// number64 reads a varint of at most highest.
func (f *field) number64(into *uint64, highest uint64) error {
	if f.kind != protowire.VarintType {
		return errWireType
	}
	if f.varint > highest {
		return fmt.Errorf("is %d and must be at most %d", f.varint, highest)
	}
	*into = f.varint
	return nil
}

func (f *field) amount(into **event.Amount) error {
	if f.kind != protowire.VarintType {
		return errWireType
	}
	a := event.Amount(protowire.DecodeZigZag(f.varint))
	if a > event.MaxAmount || a < -event.MaxAmount {
		return errors.New("is an amount out of range")
	}
	*into = &a
	return nil
}

// json reads a JSON object.
func (f *field) json(into *[]byte) error {
	var object string
	err := f.text(&object)
	*into = []byte(object)
	return err
}

// flag reads a boolean.
func (f *field) flag(into *bool) error {
	var n uint64
	err := f.number64(&n, 1)
	*into = n == 1
	return err
}

func (f *field) decision(into *event.Decision) error {
	var n uint64
	err := f.number64(&n, uint64(event.Denied))
	*into = event.Decision(n)
	return err
}

// message calls read for every field of an embedded message.
func (f *field) message(read func(field) error) error {
	if f.kind != protowire.BytesType {
		return errWireType
	}
	return eachField(f.bytes, read)
}
