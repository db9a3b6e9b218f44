package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/go-chi/chi/v5"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/demo"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/query"
	"github.com/weir-dev/weir/collector/stream"
)

const token = "wt_bench"

// past is a demo past in both engines.
type past struct {
	options
	from, to time.Time
	view     *analytics.View
	api      http.Handler
	stop     context.CancelFunc
	ended    chan error
	db       *sql.DB
}

func (p *past) close() {
	p.stop()
	<-p.ended
	if p.db != nil {
		_ = p.db.Close()
	}
}

// fill tells the past to both engines and reports what the view takes for it.
func (p *past) fill(ctx context.Context) error {
	told, err := demo.New(demo.Options{Property: property(), Events: p.events, Days: p.days, Seed: p.seed, End: p.to})
	if err != nil {
		return err
	}
	p.view = analytics.NewView(analytics.Options{Property: "default/shop", Currency: "EUR", Logger: quiet()})
	before := heap()
	var duck *loader
	if p.duck {
		if duck, err = newLoader(ctx); err != nil {
			return err
		}
		p.db = duck.db
	}
	adding, records := time.Duration(0), 0
	samples := make([]stream.Entry, 0, 10_000)
	for batch := range told.Batches() {
		if err := ctx.Err(); err != nil {
			return err
		}
		began := time.Now()
		if err := p.view.AddEvents(batch.Entries); err != nil {
			return err
		}
		p.view.AddRecords(batch.Records)
		adding += time.Since(began)
		records += len(batch.Records)
		if duck != nil {
			if err := duck.add(&batch); err != nil {
				return err
			}
		}
		if len(samples) < cap(samples) {
			samples = append(samples, batch.Entries[:min(len(batch.Entries), cap(samples)-len(samples))]...)
		}
	}
	visitors := 0
	if duck != nil {
		visitors = len(duck.visitors)
		if err := duck.finish(ctx); err != nil {
			return err
		}
	}
	status := p.view.Status(context.Background())
	fmt.Printf("%d events, %d delivery records, %d days, %d visitors\n", status.Events, records, p.days, visitors)
	fmt.Printf("heap: %.1f bytes an event; adding: %.0f events/s with their records\n\n",
		(heap()-before)/float64(status.Events), float64(status.Events)/adding.Seconds())
	p.serve(ctx, samples)
	return nil
}

// serve answers the read API while further events arrive behind the past.
func (p *past) serve(ctx context.Context, samples []stream.Entry) {
	ctx, p.stop = context.WithCancel(ctx)
	p.ended = make(chan error, 1)
	source := &arrivals{samples: samples, perSecond: p.ingest, last: stream.At(p.to)}
	go func() { p.ended <- p.view.Follow(ctx, source) }()
	for !p.view.Status(context.Background()).Ready {
		runtime.Gosched()
	}
	handler := query.New(query.Options{Logger: quiet(), Now: time.Now})
	handler.Serve([]query.Tenant{{
		Property: *property(), Location: time.UTC, Engine: p.view,
		Tokens: []auth.Credential{{Name: "bench", Hash: auth.HashOf(token), Scope: auth.ScopeRead}},
	}})
	router := chi.NewRouter()
	handler.Routes(router)
	p.api = router
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// arrivals is a source whose events are samples of the past, received anew at a steady rate.
type arrivals struct {
	mu        sync.Mutex // guards last and next
	samples   []stream.Entry
	perSecond int
	last      stream.Position
	next      int
}

// arrivalPause is how long arrivals are gathered before they are read.
const arrivalPause = 10 * time.Millisecond

// ReadEvents returns the arrivals of a pause.
func (a *arrivals) ReadEvents(ctx context.Context, after stream.Position, count int, block time.Duration) ([]stream.Entry, error) {
	if block == 0 { // a look whether the newest is still there
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.next == 0 || after >= a.last {
			return nil, nil
		}
		// The arrivals' positions follow one another.
		return []stream.Entry{{Position: after + 1, Data: a.samples[0].Data}}, nil
	}
	if a.perSecond == 0 {
		return nil, wait(ctx, block)
	}
	if err := wait(ctx, arrivalPause); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	entries := make([]stream.Entry, min(count, a.perSecond*int(arrivalPause/time.Millisecond)/1000))
	for i := range entries {
		a.last++
		entries[i] = stream.Entry{Position: a.last, Data: a.samples[a.next%len(a.samples)].Data}
		a.next++
	}
	return entries, nil
}

// ReadRecords has none.
func (a *arrivals) ReadRecords(ctx context.Context, after stream.Position, _ int, block time.Duration) (stream.Records, error) {
	return stream.Records{Last: after}, wait(ctx, block)
}

// Bounds says nothing.
func (a *arrivals) Bounds(context.Context) (stream.Bounds, error) { return stream.Bounds{}, nil }

// RecordBounds says nothing.
func (a *arrivals) Dropped(context.Context) (stream.Dropped, error)     { return stream.Dropped{}, nil }
func (a *arrivals) Beyond(context.Context) (stream.Position, error)     { return 0, nil }
func (a *arrivals) RecordBounds(context.Context) (stream.Bounds, error) { return stream.Bounds{}, nil }

func wait(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return nil
	}
}

// loader fills DuckDB. Visitors, touches and channels are numbered, names and platforms become enums, and the
// deliveries carry their event's name and time, so that DuckDB has as little to read and to join as can be.
type loader struct {
	db         *sql.DB
	connection driver.Conn
	events     *duckdb.Appender
	deliveries *duckdb.Appender
	visitors   map[string]uint32
	touches    map[columns.Touch]uint32
	// open holds the events of which records are still to come.
	open map[stream.Position]openEvent
}

// openEvent is an event's name and how many records are still to come.
type openEvent struct {
	name    string
	missing int
}

func newLoader(ctx context.Context) (*loader, error) {
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		return nil, err
	}
	l := &loader{
		db: sql.OpenDB(connector), visitors: map[string]uint32{}, touches: map[columns.Touch]uint32{}, open: map[stream.Position]openEvent{},
	}
	for _, statement := range []string{
		`CREATE TABLE raw_events (pos UBIGINT, ms BIGINT, name VARCHAR, visitor UINTEGER, value BIGINT, currency VARCHAR, touch UINTEGER, channel VARCHAR, event_id VARCHAR, order_id VARCHAR, client_id VARCHAR)`,
		`CREATE TABLE raw_deliveries (pos UBIGINT, ms BIGINT, name VARCHAR, platform VARCHAR, status UTINYINT, latency UINTEGER, attempts UINTEGER)`,
	} {
		if _, err := l.db.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	if l.connection, err = connector.Connect(ctx); err != nil {
		return nil, err
	}
	if l.events, err = duckdb.NewAppenderFromConn(l.connection, "", "raw_events"); err != nil {
		return nil, err
	}
	l.deliveries, err = duckdb.NewAppenderFromConn(l.connection, "", "raw_deliveries")
	return l, err
}

func (l *loader) add(batch *demo.Batch) error {
	for i := range batch.Events {
		e, position := &batch.Events[i], batch.Entries[i].Position
		l.open[position] = openEvent{e.Name, len(e.Platforms)}
		var value driver.Value
		if e.Value != nil {
			value = int64(*e.Value)
		}
		touch, channel := uint32(0), ""
		if t, some := analytics.TouchOf(&e.Context); some {
			touch, channel = numberOf(l.touches, t), t.Channel
		}
		err := l.events.AppendRow(uint64(position), position.Milliseconds(), e.Name, l.visitor(e), value, e.Currency, touch, channel, e.ID, e.OrderID, e.ClientID)
		if err != nil {
			return err
		}
	}
	for _, r := range batch.Records {
		e := l.open[r.Event]
		if e.missing--; e.missing > 0 {
			l.open[r.Event] = e
		} else {
			delete(l.open, r.Event)
		}
		err := l.deliveries.AppendRow(uint64(r.Event), r.Event.Milliseconds(), e.name, r.Platform, uint8(r.Status), uint32(r.Latency.Milliseconds()), uint32(r.Attempts))
		if err != nil {
			return err
		}
	}
	return nil
}

// visitor numbers visitors from 1; 0 is nobody.
func (l *loader) visitor(e *event.Event) uint32 {
	email, phone := e.User.Get(event.EmailLower), e.User.Get(event.PhoneDigits)
	switch {
	case e.ClientID != "":
		return numberOf(l.visitors, "client "+e.ClientID)
	case !email.IsZero():
		return numberOf(l.visitors, "email "+email.String())
	case !phone.IsZero():
		return numberOf(l.visitors, "phone "+phone.String())
	default:
		return 0
	}
}

func numberOf[K comparable](numbers map[K]uint32, key K) uint32 {
	number, known := numbers[key]
	if !known {
		number = uint32(len(numbers)) + 1
		numbers[key] = number
	}
	return number
}

// finish brings the tables into their final form.
func (l *loader) finish(ctx context.Context) error {
	if err := errors.Join(l.events.Close(), l.deliveries.Close(), l.connection.Close()); err != nil {
		return err
	}
	l.visitors, l.touches, l.open = nil, nil, nil
	for _, statement := range []string{
		`CREATE TYPE names AS ENUM (SELECT DISTINCT name FROM raw_events)`,
		`CREATE TYPE channels AS ENUM (SELECT DISTINCT channel FROM raw_events)`,
		`CREATE TYPE currencies AS ENUM (SELECT DISTINCT currency FROM raw_events)`,
		`CREATE TYPE platforms AS ENUM (SELECT DISTINCT platform FROM raw_deliveries)`,
		`CREATE TABLE events AS SELECT * REPLACE (name::names AS name, channel::channels AS channel, currency::currencies AS currency) FROM raw_events ORDER BY pos`,
		`DROP TABLE raw_events`,
		`CREATE TABLE deliveries AS SELECT * REPLACE (name::names AS name, platform::platforms AS platform) FROM raw_deliveries ORDER BY pos`,
		`DROP TABLE raw_deliveries`,
	} {
		if _, err := l.db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
