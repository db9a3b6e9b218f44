package clickhouse

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"reflect"

	"github.com/google/uuid"
)

// One runs a query whose answer is one row.
func One[T any](ctx context.Context, c *Client, query Query) (T, error) {
	rows, err := Select[T](ctx, c, query)
	if err != nil {
		return *new(T), err
	}
	if len(rows) != 1 {
		return *new(T), &Problem{Kind: Nonsense, Message: fmt.Sprintf("there are %d rows instead of one", len(rows))}
	}
	return rows[0], nil
}

// Select returns all rows of a query.
//
// T is a struct whose fields name columns in a tag, as in `ch:"name"`, or the type of the only column. Types go with those of
// ClickHouse exactly: int64 with Int64, string with String and FixedString, *T with Nullable, []T with Array, [uuid.UUID] with UUID,
// [time.Time] with DateTime and Date, [big.Int] with integers of 128 and 256 bits, structs with Tuple by position.
// LowCardinality is as if it were not there. Each field needs its column, and each column its field.
func Select[T any](ctx context.Context, c *Client, query Query) ([]T, error) {
	var all []T
	for row, err := range Rows[T](ctx, c, query) {
		if err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, nil
}

// Rows is [Select] for answers of any size: it holds a block of rows at a time. The query ends with the loop. After
// an error nothing follows.
func Rows[T any](ctx context.Context, c *Client, query Query) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := read(ctx, c, query, func(row T) bool { return yield(row, nil) })
		if err != nil {
			yield(*new(T), err)
		}
	}
}

// read gives rows to a function until it returns false.
func read[T any](ctx context.Context, c *Client, query Query, to func(T) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	settings := maps.Clone(query.Settings)
	if settings == nil {
		settings = Settings{}
	}
	// Whoever goes away needs no answer; and what is wrong with a small answer is known before its status.
	settings["cancel_http_readonly_queries_on_client_close"] = true
	settings["default_format"] = "Native"
	query.Settings = settings
	answer, err := c.ask(ctx, query)
	if err != nil {
		return err
	}
	defer answer.Close()
	stream := bufio.NewReaderSize(answer, 64<<10)
	for {
		rows, err := readBlock[T](stream)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(ctx, stream, err)
		}
		for _, row := range rows {
			if !to(row) {
				return nil
			}
		}
	}
}

// broken is what is wrong with an answer that cannot be read on: an error that the server has added, perhaps.
func broken(ctx context.Context, rest *bufio.Reader, err error) error {
	text, readErr := io.ReadAll(io.LimitReader(rest, longestError))
	if found := exceptionIn(text); found != nil {
		return found
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if readErr != nil || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Problem{Kind: Unreachable, Message: "it breaks off in the middle of an answer"}
	}
	// A mistake of the statement's author, or of no ClickHouse.
	if known, ok := errors.AsType[*mismatch](err); ok {
		return &Problem{Kind: Nonsense, Message: known.message}
	}
	return explain(ctx, err)
}

// Insert inserts rows in one block, which is one part where all lie in one partition. Fields name columns as in [Select]; a
// server takes texts for LowCardinality. A block with the token of another that a table remembers is dropped; one without, "", never is.
// After an error which is none of the server's answers it is not known whether the rows are there.
func Insert[T any](ctx context.Context, c *Client, table string, rows []T, token string) error {
	if len(rows) == 0 {
		return nil
	}
	names, encoders, err := encodersOf(reflect.TypeFor[T]())
	if err != nil {
		return err
	}
	query := Query{SQL: "INSERT INTO " + table + " (" + quoted(names) + ") FORMAT Native", Settings: Settings{
		"async_insert": false, "insert_deduplicate": true, "insert_deduplication_token": token,
		"max_insert_block_size": int64(len(rows)), "min_insert_block_size_rows": 0, "min_insert_block_size_bytes": 0,
		// Also a Distributed table has the rows where they belong before it answers.
		"distributed_foreground_insert": true,
	}}
	if token == "" { // a token that never comes twice: how else blocks are kept from being compared differs by version
		query.Settings["insert_deduplication_token"] = uuid.NewString()
	}
	source, sink := io.Pipe()
	go func() {
		out := bufio.NewWriterSize(sink, 64<<10)
		writeBlock(out, reflect.ValueOf(rows), names, encoders)
		sink.CloseWithError(out.Flush())
	}()
	defer source.Close()
	answer, err := c.insert(ctx, query, source)
	if err != nil {
		return err
	}
	defer answer.Close()
	text, err := io.ReadAll(io.LimitReader(answer, longestError))
	if err != nil {
		return explain(ctx, err)
	}
	return exceptionIn(text)
}

var uuidType = reflect.TypeFor[uuid.UUID]()
