package query

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
)

// rowTimeout is how long a caller may take to accept what was written last. It bounds what a slow one holds,
// while an export as a whole may take as long as it needs.
const rowTimeout = 30 * time.Second

// row is what an export has one of for each line.
type row interface {
	// columns returns the row's values, as many as the table has columns.
	columns() []column
	// appendJSON appends the row's object.
	appendJSON(b []byte) ([]byte, error)
}

// column is a value in a line of CSV.
type column struct {
	text string
	// computed values are numbers, times and JSON that Weir has written; others hold what somebody has sent.
	computed bool
}

// sent is a column with somebody's text, "" for none.
func sent(text string) column { return column{text: text} }

// computed is a column that holds nothing of anybody's choice.
func computed(text string) column { return column{text: text, computed: true} }

// rowWriter writes an export as it comes into being.
type rowWriter struct {
	response *http.ResponseController
	buffer   *bufio.Writer
	format   format
	line     []byte
	// csv writes the fields of a line into text.
	csv    *csv.Writer
	text   bytes.Buffer
	fields []string
	// lapsed returns an error where the caller is to have no more; nil for one who always may.
	lapsed func() error
	// written counts the rows, those among them that the caller may not have yet.
	written int
}

// newRowWriter begins an answer with rows. For CSV the header line names the columns.
func newRowWriter(w http.ResponseWriter, f format, columns string) (*rowWriter, error) {
	kind := string(f)
	if f == typeCSV {
		kind += "; charset=utf-8; header=present"
	}
	w.Header().Set("Content-Type", kind)
	out := &rowWriter{response: http.NewResponseController(w), buffer: bufio.NewWriterSize(w, 32<<10), format: f}
	w.WriteHeader(http.StatusOK)
	if f != typeCSV {
		return out, nil
	}
	out.csv = csv.NewWriter(&out.text)
	_, err := out.buffer.WriteString(columns + "\r\n")
	return out, err
}

// write adds a row.
func (o *rowWriter) write(r row) error {
	if o.lapsed != nil {
		if err := o.lapsed(); err != nil {
			return err
		}
	}
	o.written++
	if o.format == typeCSV {
		return o.writeColumns(r.columns())
	}
	var err error
	if o.line, err = r.appendJSON(o.line[:0]); err != nil {
		return fmt.Errorf("render a row: %w", err)
	}
	o.line = append(o.line, '\n')
	_, err = o.buffer.Write(o.line)
	return err
}

// writeColumns adds a line of CSV. The library ends it with a line feed: asked to end it as RFC 4180 has it, it would
// change the line ends within values as well.
func (o *rowWriter) writeColumns(columns []column) error {
	o.fields = o.fields[:0]
	for _, c := range columns {
		o.fields = append(o.fields, c.guarded())
	}
	o.text.Reset()
	if err := o.csv.Write(o.fields); err != nil {
		return fmt.Errorf("render a row: %w", err)
	}
	o.csv.Flush()
	o.text.Truncate(o.text.Len() - len("\n"))
	o.text.WriteString("\r\n")
	_, err := o.buffer.Write(o.text.Bytes())
	return err
}

// send lets the caller have what was written so far, and gives it time to take that and what comes next.
func (o *rowWriter) send() error {
	// A response that has no deadline, as in tests, is one that cannot be late.
	_ = o.response.SetWriteDeadline(time.Now().Add(rowTimeout))
	return o.buffer.Flush()
}

// guarded returns the column's text. A spreadsheet takes a cell that begins like a formula for one, whoever has sent it. It may
// split lines at semicolons or tabs, as in countries whose decimals have a comma, so that a cell begins within a text. Before
// what would make a formula an apostrophe stands, which spreadsheets take as the mark of a text. Blanks and quotes before it, which
// they may leave out, do not count.
func (c column) guarded() string {
	if c.computed {
		return c.text
	}
	var guarded strings.Builder
	from, begins := 0, true
	for i, r := range c.text {
		switch {
		case r == ';' || r == ',' || r == '\t' || r == '\r' || r == '\n':
			begins = true
		case begins && strings.ContainsRune("=+-@＝＋－＠", r):
			guarded.WriteString(c.text[from:i])
			guarded.WriteByte('\'')
			from, begins = i, false
		case r != '"' && !unicode.IsSpace(r) && !unicode.IsControl(r):
			begins = false
		}
	}
	if guarded.Len() == 0 {
		return c.text
	}
	return guarded.String() + c.text[from:]
}

// structure is a column with a list or an object. Its semicolons are escaped, which JSON takes for the same, so that no cell begins
// within it: names and texts in it may be somebody's.
func structure(text string) column { return computed(strings.ReplaceAll(text, ";", `\u003b`)) }
