package query

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/audit"
)

// figureTable is an answer in rows that has been worked out, as an export.
type figureTable[R any] struct {
	// act and object are what the audit log is told.
	act    audit.Act
	object audit.Party
	// asked is the period, zero for what has none, completeFrom what JSON says of it.
	asked        analytics.Range
	completeFrom *string
	// blank is a record of which only the members' names count: a table without rows has them too.
	blank R
	rows  []R
}

// figures is the object of a figure's export.
func figures(table string) audit.Party { return audit.Party{Kind: audit.Figures, Name: table} }

// exportFigures answers with a line for each record. The columns are the record's members.
func exportFigures[R any](h *Handler, w http.ResponseWriter, r *http.Request, t *Tenant, f format, table *figureTable[R]) {
	blank, err := figureRowOf(table.blank)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	noteCompleteFrom(w, table.completeFrom)
	rows, err := newRowWriter(w, f, strings.Join(blank.names, ","))
	rows.lapsed = h.lapsing(t)
	if err == nil && r.Method == http.MethodHead {
		return // with nothing written, so that no length is told that is another than GET's
	}
	for i := 0; i < len(table.rows) && err == nil; i++ {
		var row figureRow
		if row, err = figureRowOf(table.rows[i]); err == nil {
			err = rows.write(row)
		}
	}
	if err == nil {
		err = rows.send()
	}
	h.noteExport(r, t, exportAct{table.act, table.object, f, table.asked, rows.written, err})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// figureRow is a record as a line of an export.
type figureRow struct {
	text   jsontext.Value
	names  []string
	values []column
}

func figureRowOf(record any) (figureRow, error) {
	text, err := json.Marshal(record)
	if err != nil {
		return figureRow{}, fmt.Errorf("render a row: %w", err)
	}
	row := figureRow{text: text}
	err = eachMember(row.text, func(name string, value jsontext.Value) error {
		c, err := columnOf(value)
		row.names, row.values = append(row.names, name), append(row.values, c)
		return err
	})
	return row, err
}

// columnOf returns a member's value as a column: null is empty, and a text counts as somebody's. What is no scalar stays JSON.
func columnOf(value jsontext.Value) (column, error) {
	switch value.Kind() {
	case 'n':
		return computed(""), nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		return sent(string(text)), err
	case '{', '[':
		return structure(string(value)), nil
	}
	return computed(string(value)), nil
}

func (r figureRow) columns() []column { return r.values }

func (r figureRow) appendJSON(b []byte) ([]byte, error) { return append(b, r.text...), nil }
