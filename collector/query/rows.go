package query

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
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

func count(n int) column { return computed(strconv.Itoa(n)) }

// rowWriter writes an export as it comes into being.
type rowWriter struct {
	response *http.ResponseController
	buffer   *bufio.Writer
	format   format
	line     []byte
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
	if f == typeCSV {
		out.line = append(append(out.line, columns...), "\r\n"...)
	}
	return out, out.flushLine()
}

// write adds a row.
func (o *rowWriter) write(r row) error {
	if o.format == typeCSV {
		for i, c := range r.columns() {
			if i > 0 {
				o.line = append(o.line, ',')
			}
			o.line = c.appendTo(o.line)
		}
		o.line = append(o.line, "\r\n"...)
		return o.flushLine()
	}
	var err error
	if o.line, err = r.appendJSON(o.line); err != nil {
		return fmt.Errorf("render a row: %w", err)
	}
	o.line = append(o.line, '\n')
	return o.flushLine()
}

func (o *rowWriter) flushLine() error {
	_, err := o.buffer.Write(o.line)
	o.line = o.line[:0]
	return err
}

// send lets the caller have what was written so far, and gives it time to take that and what comes next.
func (o *rowWriter) send() error {
	// A response that has no deadline, as in tests, is one that cannot be late.
	_ = o.response.SetWriteDeadline(time.Now().Add(rowTimeout))
	return o.buffer.Flush()
}

// appendTo appends the column as RFC 4180 has it. A spreadsheet takes a text that begins like a formula for one,
// whoever has sent it, so such a text is given an apostrophe, which spreadsheets take as the mark of a text.
func (c column) appendTo(line []byte) []byte {
	text := c.text
	if !c.computed && text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", firstRune(text)) {
		text = "'" + text
	}
	if !strings.ContainsAny(text, "\",\r\n") {
		return append(line, text...)
	}
	line = append(line, '"')
	line = append(line, strings.ReplaceAll(text, `"`, `""`)...)
	return append(line, '"')
}

func firstRune(text string) rune {
	for _, r := range text {
		return r
	}
	return 0
}
