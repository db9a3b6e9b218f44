package columns

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// remembered is what a test remembers of an event.
type remembered struct {
	row Row
	// erased and anonymous say what has become of it.
	erased, anonymous bool
	// isRest says that the row is what was left of a chunk that has ended early.
	isRest bool
}

// someRow makes up an event of one of some visitors.
func someRow(r *rand.Rand, n int) Row {
	row := Row{
		Position: stream.At(begin.Add(time.Duration(n) * 10 * time.Minute)), Name: fmt.Sprint("name ", r.IntN(4)), Class: event.Class(r.IntN(event.Classes)),
		Value: NoValue, EventID: fmt.Sprint("event ", n), Platforms: ListPlatforms([]string{"meta", "crm"}[:r.IntN(3)]),
	}
	if row.IsSomeone = r.IntN(5) > 0; row.IsSomeone {
		who := r.IntN(300) * (1 + r.IntN(20))
		row.Visitor = event.Person{byte(who), byte(who >> 8)}
		row.ClientID = fmt.Sprint("client ", who, " ", r.IntN(3)/2)
	}
	if r.IntN(4) == 0 {
		row.Value, row.Currency = event.Amount(r.IntN(1000)), "EUR"
	}
	if r.IntN(4) == 0 {
		row.Touch, row.IsTouch = Touch{Source: fmt.Sprint("source ", r.IntN(20))}, true
	}
	if r.IntN(2) == 0 {
		row.Page = fmt.Sprint("/", r.IntN(50))
	}
	row.IsSale = r.IntN(3) == 0
	for i := range r.IntN(3) {
		row.Products = append(row.Products, Product{ID: fmt.Sprint("product ", i, r.IntN(9)), Amount: event.Amount(r.IntN(99)), Quantity: 1})
	}
	return row
}

// wantWhole fails where what a table keeps beside its rows is not what these say.
func wantWhole(t *testing.T, table *Table, rows []remembered) {
	t.Helper()
	names, touches, platforms, currencies := map[Name]int{}, map[Touch]int{}, map[PlatformList]int{}, map[string]int{}
	pages, products := map[string]int{"": 1}, map[string]int{"": 1}
	origins := map[event.Person]uint64{}
	erased := Name{Class: event.Class(event.Classes)}
	names[erased], touches[Touch{}], currencies[""] = 1, 1, 1
	last, retained := map[event.Person]uint64{}, 0
	for ordinal := table.base; ordinal < table.next; ordinal++ {
		c, at := table.rowAt(ordinal)
		known := &rows[ordinal]
		row := known.row
		if known.anonymous {
			row.IsSomeone, row.ClientID = false, ""
		}
		if known.erased {
			row = Row{Position: row.Position, Class: erased.Class}
		} else {
			eventID, _, clientID := c.IDs(at, table.visitors.clientIDs[c.Visitor[at]])
			if eventID != row.EventID || clientID != row.ClientID {
				t.Fatalf("row %d has the ids %q and %q, want %q and %q", ordinal, eventID, clientID, row.EventID, row.ClientID)
			}
		}
		names[Name{row.Name, row.Class}]++
		currencies[row.Currency]++
		platforms[row.Platforms]++
		if row.IsTouch {
			touches[row.Touch]++
		}
		if !known.erased && ordinal >= table.first {
			retained++
		}
		if row.Page != "" {
			pages[row.Page]++
		}
		if table.pages.values[c.Page[at]] != row.Page {
			t.Fatalf("row %d is of page %q, want %q", ordinal, table.pages.values[c.Page[at]], row.Page)
		}
		for _, product := range row.Products {
			products[product.ID]++
		}
		wantProducts(t, table, ordinal, &row)
		wantOrigin(t, table, ordinal, &row, origins)
		back := uint32(0)
		if row.IsSomeone {
			back = NoPrevious
			if before, found := last[row.Visitor]; found {
				back = uint32(ordinal - before)
			}
			last[row.Visitor] = ordinal
		}
		// Only from another chunk may a row lead to where nothing is of a visitor any more.
		isBeyond := uint64(c.Back[at]) > ordinal-max(table.base, table.anonymous) && int64(c.Back[at]) > int64(at)
		if c.Back[at] != back && (back != NoPrevious || !isBeyond) {
			t.Fatalf("row %d leads back %d rows, want %d", ordinal, c.Back[at], back)
		}
		if (c.Visitor[at] != 0) != row.IsSomeone || c.Visitor[at] != 0 && table.visitors.keys[c.Visitor[at]] != row.Visitor {
			t.Fatalf("row %d is not whose it was", ordinal)
		}
	}
	if got := table.Events(); got != retained {
		t.Fatalf("%d events, want %d", got, retained)
	}
	wantCounts(t, "names", table.names, names)
	wantCounts(t, "touches", table.touches, touches)
	wantCounts(t, "lists of platforms", table.platforms, platforms)
	wantCounts(t, "currencies", table.currencies, currencies)
	wantCounts(t, "pages", table.pages, pages)
	wantCounts(t, "products", table.products, products)
	for person, ordinal := range last {
		if number, known := table.visitors.numbers[person]; !known || table.visitors.last[number] != ordinal {
			t.Fatalf("the newest event of visitor %s is not row %d", person, ordinal)
		}
	}
	if got := len(table.visitors.numbers); got != len(last) {
		t.Fatalf("%d visitors, want %d", got, len(last))
	}
	full := int64(0)
	for _, c := range table.chunks {
		if c.index != nil {
			full += c.size()
			if diff := cmp.Diff(newChunkIndex(c, table.names.values), c.index, cmp.AllowUnexported(ChunkIndex{}),
				cmp.Comparer(func(a, b event.Sum) bool { return a == b })); diff != "" {
				t.Fatalf("a chunk's index (-want +got):\n%s", diff)
			}
		}
	}
	if table.full != full {
		t.Fatalf("full chunks take %d bytes, want %d", table.full, full)
	}
}

// wantProducts fails where a row has other products than an event.
func wantProducts(t *testing.T, table *Table, ordinal uint64, row *Row) {
	t.Helper()
	c, at := table.rowAt(ordinal)
	one := ChunkRange{Chunk: c, From: at, To: at + 1, Ordinal: ordinal}
	var got, want, sold, wantSold []Product
	for _, number := range one.Products().Products {
		got = append(got, Product{ID: table.products.values[number]})
	}
	for _, sale := range one.Sales() {
		sold = append(sold, Product{table.products.values[sale.Product], sale.Amount, sale.Quantity})
	}
	for _, product := range row.Products {
		want = append(want, Product{ID: product.ID})
		if row.IsSale {
			wantSold = append(wantSold, product)
		}
	}
	if !slices.Equal(got, want) || !slices.Equal(sold, wantSold) {
		t.Fatalf("row %d has the products %v and the sales %v, want %v and %v", ordinal, got, sold, want, wantSold)
	}
}

// wantOrigin fails where a row comes from elsewhere than its visitor's latest touch; origins has that by visitor.
func wantOrigin(t *testing.T, table *Table, ordinal uint64, row *Row, origins map[event.Person]uint64) {
	t.Helper()
	c, at := table.rowAt(ordinal)
	if row.IsSomeone && row.IsTouch && ordinal >= table.first {
		origins[row.Visitor] = ordinal
	}
	want := Touch{}
	if source, known := origins[row.Visitor]; known && row.IsSomeone {
		from, there := table.rowAt(source)
		if c.Position[at].Time().Sub(from.Position[there].Time()) <= TouchLookback {
			want = table.touches.values[from.Touch[there]]
		}
	}
	s := table.Snapshot()
	of := s.Origins(&ChunkRange{Chunk: c, From: at, To: at + 1, Ordinal: ordinal})
	if got := table.touches.values[of.Touch(uint16(at))]; ordinal >= table.first && got != want {
		t.Fatalf("row %d comes from %+v, want %+v", ordinal, got, want)
	}
}

func wantCounts[K comparable](t *testing.T, what string, d *dictionary[K], want map[K]int) {
	t.Helper()
	got := map[K]int{}
	for value, number := range d.numbers {
		got[value] = int(d.rows[number])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("rows that use each of the %s (-want +got):\n%s", what, diff)
	}
}

func TestATableIsOfOnePieceWhateverLeavesIt(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			table, rows := NewTable(), []remembered(nil)
			for range 14 {
				switch r.IntN(5) {
				case 4:
					rows = flood(t, table, rows, r)
				case 0, 1:
					for range r.IntN(ChunkRows) {
						row := someRow(r, len(rows))
						rows = append(rows, remembered{row: row})
						if err := table.Add(&row); err != nil {
							t.Fatal(err)
						}
					}
				case 2:
					eraseSome(table, rows, r)
				default:
					shorten(table, rows, r)
				}
				wantWhole(t, table, rows)
			}
		})
	}
}

// flood adds events that have everything of their own, and ends the chunk where they take much.
func flood(t *testing.T, table *Table, rows []remembered, r *rand.Rand) []remembered {
	t.Helper()
	for range r.IntN(3000) {
		row := someRow(r, len(rows))
		own := fmt.Sprint("of event ", len(rows))
		row.Page, row.ClientID, row.IsSomeone = own, own, true
		if r.IntN(2) == 0 {
			row.Name = own
		}
		row.Visitor = event.Person{1, 2, byte(len(rows)), byte(len(rows) >> 8), byte(len(rows) >> 16)}
		row.Touch, row.IsTouch = Touch{Source: own}, true
		row.Products = append(row.Products, Product{ID: own}, Product{ID: own + "!"})
		rows = append(rows, remembered{row: row})
		if err := table.Add(&row); err != nil {
			t.Fatal(err)
		}
	}
	table.EndChunk(1)
	for uint64(len(rows)) < table.next {
		rows = append(rows, remembered{row: Row{Position: table.Last()}, erased: true, isRest: true})
	}
	return rows
}

// eraseSome erases some events of a table, or nearly all.
func eraseSome(table *Table, rows []remembered, r *rand.Rand) {
	var positions []stream.Position
	some := 1 + r.IntN(20)*r.IntN(20)
	for i := range rows {
		if r.IntN(400) < some && !rows[i].isRest {
			rows[i].erased = true
			positions = append(positions, rows[i].row.Position)
		}
	}
	all := table.All()
	for left := all.Find(positions); len(left) > 0; {
		left = table.Erase(left)
	}
}

// shorten makes some of the oldest events nobody's, or forgets them.
func shorten(table *Table, rows []remembered, r *rand.Rand) {
	before := r.IntN(len(rows) + 1)
	for before > 0 && before < len(rows) && rows[before].isRest {
		before-- // to the event at whose position the rest stands
	}
	position := table.Last() + 1
	if before < len(rows) {
		position = rows[before].row.Position
	}
	if r.IntN(3) == 0 {
		if table.Forget(position) {
			table.Drop()
		}
		return
	}
	for i := range rows[:before] {
		rows[i].anonymous = true
	}
	for more := table.AnonymizeBefore(position); more; {
		more = table.Anonymize()
	}
}

func TestNothingOfAnErasedEventStaysInMemory(t *testing.T) {
	table := NewTable()
	var erased []stream.Position
	var old stream.Position
	for n := range ChunkRows + 100 {
		row := rowAt(n)
		row.ClientID = "somebody"
		switch n % ChunkRows {
		case 50, 99:
			row.Visitor, row.EventID, row.OrderID, row.ClientID = event.Person{1, 1}, "secret event", "secret order", "secret client"
			row.Page, row.Products = "/secret page", []Product{{ID: "secret product"}}
			erased = append(erased, row.Position)
		case 60: // the same visitor without the client id
			row.Visitor, row.ClientID = event.Person{1, 1}, ""
		case 10:
			row.ClientID = "secret client of old"
			old = row.Position
		}
		if err := table.Add(row); err != nil {
			t.Fatal(err)
		}
		if n%ChunkRows == 99 {
			rows := table.All()
			table.Erase(rows.Find(erased))
			for more := table.AnonymizeBefore(old + 1); more; {
				more = table.Anonymize()
			}
		}
	}
	for i, c := range table.chunks {
		if bytes.Contains(c.details[:cap(c.details)], []byte("secret")) {
			t.Errorf("chunk %d still has it", i)
		}
	}
	if slices.Contains(table.visitors.clientIDs, "secret client") {
		t.Error("the visitor still has the erased event's client id")
	}
	if slices.Contains(table.pages.values, "/secret page") || slices.Contains(table.products.values, "secret product") {
		t.Error("the erased event's page or product is still there")
	}
}

func TestErasedEventsThatHaveNotBeenReadAreBounded(t *testing.T) {
	table := NewTable()
	addRows(t, table, 0, 1)
	var positions []stream.Position
	for i := range stream.Position(maxUnread) {
		positions = append(positions, table.Last()+1+i)
	}
	table.Apply(stream.Record{Event: positions[7], Platform: "crm", Status: stream.Failed, At: begin})
	if !table.PassOver(positions) {
		t.Error("as many as there may be are too many")
	}
	if table.earlyCount != 0 {
		t.Error("a record waits for an erased event")
	}
	if table.PassOver([]stream.Position{table.Last() + 1<<30}) {
		t.Error("there is room for more than there may be")
	}
	addRows(t, table, 1, 2)
	table.DiscardOrphans()
	if got := len(table.unread); got != 0 {
		t.Errorf("%d positions are remembered of events that cannot come any more", got)
	}
}
