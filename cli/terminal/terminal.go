// Package terminal writes for people and for programs what others have written: tables and JSON in which nothing can take the terminal
// over. Senders of events choose their names and ids, platforms their answers, and all of it may hold control characters.
package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
)

// Clean is text on one line in which everything that is not seen stands as its escape: control characters of both sets, line ends,
// what turns the direction of writing around, spaces of no width, and bytes that are no UTF-8.
func Clean(text string) string {
	if strings.IndexFunc(text, unseen) < 0 && utf8.ValidString(text) {
		return text
	}
	var clean strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&clean, `\x%02x`, text[i])
		case unseen(r):
			clean.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			clean.WriteRune(r)
		}
		i += size
	}
	return clean.String()
}

func unseen(r rune) bool { return !unicode.IsPrint(r) }

// Lines is [Clean] for text of several lines, which stay lines.
func Lines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Clean(lines[i])
	}
	return strings.Join(lines, "\n")
}

// JSON writes a value as JSON, indented, with an escape for everything in its strings that is not seen.
func JSON(w io.Writer, value any) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(w, escaped(text.String()))
	return err
}

// Line writes a value as JSON on one line, with the same escapes.
func Line(w io.Writer, value json.RawMessage) error {
	_, err := io.WriteString(w, strings.ReplaceAll(escaped(string(value)), "\n", "")+"\n")
	return err
}

// escaped replaces in JSON what is not seen by its escape. Outside of strings there is nothing of that but line ends.
func escaped(text string) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var escaped strings.Builder
	for _, r := range text {
		if !hidden(r) {
			escaped.WriteRune(r)
			continue
		}
		if r > 0xffff {
			r -= 0x10000
			fmt.Fprintf(&escaped, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
			continue
		}
		fmt.Fprintf(&escaped, `\u%04x`, r)
	}
	return escaped.String()
}

func hidden(r rune) bool { return r != '\n' && unseen(r) }

// Table is aligned columns. Its cells are cleaned.
type Table struct {
	w      *tabwriter.Writer
	indent string
}

// NewTable writes to w, each line behind indent.
func NewTable(w io.Writer, indent string, header ...string) *Table {
	table := &Table{w: tabwriter.NewWriter(w, 0, 0, 3, ' ', 0), indent: indent}
	if len(header) > 0 {
		table.Row(header...)
	}
	return table
}

// Row adds a line.
func (t *Table) Row(cells ...string) {
	clean := make([]string, len(cells))
	for i, cell := range cells {
		clean[i] = Clean(cell)
	}
	fmt.Fprintln(t.w, t.indent+strings.Join(clean, "\t"))
}

// Flush writes what is there.
func (t *Table) Flush() error { return t.w.Flush() }

// Safe is a writer that passes text on line by line with its control characters escaped: for a terminal that is given what others have
// written.
func Safe(w io.Writer) io.Writer { return &safe{w: w} }

type safe struct{ w io.Writer }

// Write takes any part of a text. A rune that is split over two of them is shown as its bytes.
func (s *safe) Write(p []byte) (int, error) {
	if _, err := io.WriteString(s.w, Lines(strings.ReplaceAll(string(p), "\r\n", "\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}
