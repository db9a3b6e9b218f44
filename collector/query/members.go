package query

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// named is a record of which the caller has chosen what names it: {NAME: value, …}, with the record's members behind.
type named[R any] struct {
	name, value string
	record      R
}

// MarshalJSONTo writes the name's member, and behind it the record's.
func (n named[R]) MarshalJSONTo(enc *jsontext.Encoder) error {
	for _, token := range []jsontext.Token{jsontext.BeginObject, jsontext.String(n.name), jsontext.String(n.value)} {
		if err := enc.WriteToken(token); err != nil {
			return err
		}
	}
	text, err := json.Marshal(n.record)
	if err == nil {
		err = eachMember(text, func(name string, value jsontext.Value) error {
			if err := enc.WriteToken(jsontext.String(name)); err != nil {
				return err
			}
			return enc.WriteValue(value)
		})
	}
	if err != nil {
		return err
	}
	return enc.WriteToken(jsontext.EndObject)
}

// eachMember calls each for the members of an object, in their order. The value is valid until each returns.
func eachMember(object jsontext.Value, each func(name string, value jsontext.Value) error) error {
	decoder := jsontext.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for decoder.PeekKind() != '}' {
		token, err := decoder.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := decoder.ReadValue()
		if err != nil {
			return err
		}
		if err := each(name, value); err != nil {
			return err
		}
	}
	return nil
}
