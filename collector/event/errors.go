package event

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// FieldError says what is wrong with one field. Its message names the field and never repeats its value.
type FieldError struct {
	// Field is a path with dots: "data.value", "data.contents.0.price", "steps.1".
	Field string
	// Message is a sentence.
	Message string
}

// Errors are the errors of an envelope or a query, in the order in which they are reported. An empty Errors
// is no error.
type Errors []FieldError

// Add appends an error.
func (e *Errors) Add(field, message string) { *e = append(*e, FieldError{field, message}) }

// Error returns the first error's message and how many more there are.
func (e Errors) Error() string {
	switch len(e) {
	case 0:
		return ""
	case 1:
		return e[0].Message
	case 2:
		return e[0].Message + " (and 1 more error)"
	default:
		return fmt.Sprintf("%s (and %d more errors)", e[0].Message, len(e)-1)
	}
}

// MarshalJSONTo writes {"message": …, "errors": {FIELD: [MESSAGE…]…}} with the fields in order of their first
// error.
func (e Errors) MarshalJSONTo(enc *jsontext.Encoder) error {
	return excerpt{e, len(e)}.MarshalJSONTo(enc)
}

// First is written as the errors are, but with the first n in full alone; the message counts all.
func (e Errors) First(n int) json.MarshalerTo { return excerpt{e, min(n, len(e))} }

// excerpt is of errors the first, as many as listed says.
type excerpt struct {
	Errors
	listed int
}

// MarshalJSONTo is [Errors.MarshalJSONTo] for the listed ones.
func (e excerpt) MarshalJSONTo(enc *jsontext.Encoder) error {
	var fields []string
	messages := map[string][]string{}
	for _, fieldErr := range e.Errors[:e.listed] {
		if messages[fieldErr.Field] == nil {
			fields = append(fields, fieldErr.Field)
		}
		messages[fieldErr.Field] = append(messages[fieldErr.Field], fieldErr.Message)
	}
	for _, token := range []jsontext.Token{
		jsontext.BeginObject, jsontext.String("message"), jsontext.String(e.Error()), jsontext.String("errors"), jsontext.BeginObject,
	} {
		if err := enc.WriteToken(token); err != nil {
			return err
		}
	}
	for _, field := range fields {
		if err := json.MarshalEncode(enc, field); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, messages[field]); err != nil {
			return err
		}
	}
	if err := enc.WriteToken(jsontext.EndObject); err != nil {
		return err
	}
	return enc.WriteToken(jsontext.EndObject)
}
