package clickhouse

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// parameterText is a parameter's value as the HTTP interface takes it: as in a line of tab-separated values.
func parameterText(value any) (string, error) {
	if pointer := reflect.ValueOf(value); pointer.Kind() == reflect.Pointer {
		if pointer.IsNil() {
			return `\N`, nil
		}
		return parameterText(pointer.Elem().Interface())
	}
	if text, ok := value.(string); ok {
		return tabEscapes.Replace(text), nil
	}
	// Texts in an array are quoted, and what is quoted is not escaped again.
	return literalOf(reflect.ValueOf(value), false)
}

var (
	tabEscapes   = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`, "\b", `\b`, "\f", `\f`)
	quoteEscapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`)
)

// literalOf is a value as it stands in an array, where texts are quoted.
func literalOf(value reflect.Value, quoted bool) (string, error) {
	quote := func(text string) string {
		if quoted {
			return "'" + quoteEscapes.Replace(text) + "'"
		}
		return text
	}
	switch known := value.Interface().(type) {
	case uuid.UUID:
		return quote(known.String()), nil
	case time.Time:
		return quote(known.UTC().Format("2006-01-02 15:04:05.999999")), nil
	}
	switch value.Kind() {
	case reflect.String:
		return quote(value.String()), nil
	case reflect.Bool:
		return strconv.FormatBool(value.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(value.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(value.Uint(), 10), nil
	case reflect.Float32, reflect.Float64:
		return strconv.FormatFloat(value.Float(), 'g', -1, 64), nil
	case reflect.Slice, reflect.Array:
		parts := make([]string, value.Len())
		for i := range parts {
			var err error
			if parts[i], err = literalOf(value.Index(i), true); err != nil {
				return "", err
			}
		}
		return "[" + strings.Join(parts, ",") + "]", nil
	default:
		return "", errors.New("a value of type " + value.Type().String() + " cannot be sent")
	}
}
