package lake

import (
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/event"
)

// JSON returns the row as a JSON object of its columns, without those that are null: what a file has of an event, for people.
func (r *Row) JSON() ([]byte, error) {
	return json.Marshal(columns(reflect.ValueOf(r).Elem()), json.Deterministic(true))
}

// columns returns a struct's columns by their names.
func columns(of reflect.Value) map[string]any {
	members := map[string]any{}
	for i := range of.NumField() {
		tag := strings.Split(of.Type().Field(i).Tag.Get("parquet"), ",")
		if value := column(of.Field(i), strings.Join(tag[1:], ",")); value != nil {
			members[tag[0]] = value
		}
	}
	return members
}

// column returns a column's value, nil where it is null.
func column(of reflect.Value, kind string) any {
	switch of.Kind() {
	case reflect.Pointer:
		if of.IsNil() {
			return nil
		}
		return column(of.Elem(), kind)
	case reflect.String:
		if of.Len() == 0 {
			return nil
		}
	case reflect.Slice:
		if of.Len() == 0 {
			return nil
		}
		if of.Type().Elem().Kind() != reflect.Struct {
			return of.Interface()
		}
		list := make([]any, of.Len())
		for i := range list {
			list[i] = columns(of.Index(i))
		}
		return list
	case reflect.Struct:
		return columns(of)
	case reflect.Int64:
		switch {
		case kind == "delta" && of.Int() == 0:
			return nil // the position of what has none
		case strings.Contains(kind, "decimal"):
			return event.Amount(of.Int())
		case strings.Contains(kind, "timestamp"):
			return time.UnixMilli(of.Int()).UTC().Format("2006-01-02T15:04:05.000Z07:00")
		}
	}
	return of.Interface()
}
