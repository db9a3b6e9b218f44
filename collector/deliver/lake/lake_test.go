package lake

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/deliver/fakes"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

func TestKeysOrderAsPositionsDoAndAreReadBack(t *testing.T) {
	day := DayOf(stream.At(time.Date(2026, 11, 24, 23, 59, 59, 0, time.UTC)))
	if day != "2026-11-24" {
		t.Errorf("the day is %s", day)
	}
	positions := []stream.Position{0, stream.At(time.UnixMilli(1_795_512_476_434)), stream.At(time.UnixMilli(1_795_512_476_434)) + 9, stream.At(time.UnixMilli(1_795_512_476_434)) + 10, stream.At(time.UnixMilli(1_795_512_476_435))}
	var keys []string
	for _, p := range positions {
		key := Key("weir/shop/", day, p)
		if got, ours := startOf(key); !ours || got != p {
			t.Errorf("%s is read as %s", key, got)
		}
		keys = append(keys, key)
	}
	if !slices.IsSorted(keys) {
		t.Errorf("not in order: %q", keys)
	}
	if want := "weir/shop/date=2026-11-24/1795512476434-0000009.parquet"; keys[2] != want {
		t.Errorf("got %s, want %s", keys[2], want)
	}
	for _, other := range []string{"weir/shop/_weir/conditional-writes", "weir/shop/date=2026-11-24/readme.parquet", "weir/shop/date=2026-11-24/1-0.csv"} {
		if _, ours := startOf(other); ours {
			t.Errorf("%s is taken for a file", other)
		}
	}
}

func TestARowIsReadAsItWasWritten(t *testing.T) {
	e := purchase(7)
	occurred := time.UnixMilli(1_795_512_470_000)
	e.OccurredAt, e.EngagementTime, e.Context.ClickIDs = occurred, 3*time.Second, map[string]string{"gclid": "g"}
	e.Consent = event.Consent{AdStorage: event.Denied, Categories: map[string]bool{"ads": false}}
	want, err := RowOf(&e, stream.At(time.UnixMilli(1_795_512_476_434)), "default/shop", true)
	if err != nil {
		t.Fatal(err)
	}
	data := fileOf(t, want)
	read := 0
	err = each(bytes.NewReader(data), int64(len(data)), func(got *Row) error {
		read++
		if got.PhoneSHA256 = nil; cmp.Diff(&want, got) != "" {
			t.Error(cmp.Diff(&want, got))
		}
		return nil
	})
	if err != nil || read != 1 {
		t.Errorf("%d rows, %v", read, err)
	}
}

func fileOf(t *testing.T, rows ...Row) []byte {
	t.Helper()
	encoder := NewEncoder()
	for _, row := range rows {
		if err := encoder.Add(row); err != nil {
			t.Fatal(err)
		}
	}
	data, err := encoder.Close(1)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func newLake(t *testing.T, erased func(*event.Event, time.Time) bool) (*Lake, *fakes.Server) {
	t.Helper()
	cfg := platforms.Platform{Name: "p", Settings: platforms.Settings{S3: &platforms.S3{Bucket: "bucket", Region: "eu-central-1"}}}
	fake, err := fakes.New(platforms.TypeS3, []fakes.Account{{Platform: cfg, Credentials: map[string]string{"accessKeyID": "k", "secretAccessKey": "s"}}}, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(fake)
	t.Cleanup(func() {
		fake.Close()
		server.Close()
	})
	bucket := NewBucket(BucketOptions{
		Bucket: "bucket", Region: "eu-central-1", Endpoint: server.URL, PathStyle: true, AccessKeyID: "k", SecretAccessKey: "s", Client: server.Client(),
	})
	return New(bucket, "p/", erased), fake
}

func nobody(*event.Event, time.Time) bool { return false }

// TestAFileThatIsLargeIsReadByItsColumns has one of more than is read as a whole.
func TestAFileThatIsLargeIsReadByItsColumns(t *testing.T) {
	l, fake := newLake(t, nobody)
	const rows = 20_000
	encoder := NewEncoder()
	for n := range rows {
		e := purchase(n)
		e.SearchTerm = strings.Repeat(e.ID+e.User[event.EmailLower].String()[:8], 6) + string(e.DeliveryID[:3])
		e.ContentName = noise(n)
		row, err := RowOf(&e, stream.Position(n+1)<<20, "default/shop", true)
		if err == nil {
			err = encoder.Add(row)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	data, err := encoder.Close(1)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) <= wholeFile {
		t.Fatalf("the file has %d bytes only", len(data))
	}
	day := Day("1970-01-01")
	if err := l.Append(t.Context(), day, 0, rows<<20, data); err != nil {
		t.Fatal(err)
	}
	removed, err := l.Search(t.Context(), func(row *Identity) bool { return row.ClientID == "17.17" })
	if err != nil || removed != 1 {
		t.Errorf("%d rows were removed, want 1: %v", removed, err)
	}
	has, err := l.Has(t.Context(), Key("p/", day, 0))
	if err != nil || len(has) != rows-1 {
		t.Errorf("%d rows are left, want %d: %v", len(has), rows-1, err)
	}
	if n := len(fake.Objects()); n != 1 {
		t.Errorf("%d objects", n)
	}
}

// noise is a text that does not compress.
func noise(n int) string {
	var b strings.Builder
	for i := range 8 {
		b.WriteString(event.Hash{byte(n), byte(n >> 8), byte(i), byte(n * i * 31), 1}.String()[:10])
	}
	sum := n
	for range 256 {
		sum = sum*1103515245 + 12345
		b.WriteByte(byte('0' + (sum>>16)&63))
	}
	return b.String()
}

func TestTwoThatGoOnFromTheSamePlace(t *testing.T) {
	one, fake := newLake(t, nobody)
	other := New(one.bucket, "p/", nobody)
	day := Day("2026-11-24")
	for _, l := range []*Lake{one, other} {
		if end, err := l.End(t.Context(), day); err != nil || end != 0 {
			t.Fatalf("the end is %s: %v", end, err)
		}
	}
	data := fileOf(t, Row{EventID: "a", Position: 5})
	if err := one.Append(t.Context(), day, 0, 5, data); err != nil {
		t.Fatal(err)
	}
	if err := other.Append(t.Context(), day, 0, 7, data); !errors.Is(err, ErrChanged) {
		t.Errorf("the second one is told %v", err)
	}
	if end, err := other.End(t.Context(), day); err != nil || end != 5 {
		t.Errorf("it finds the end at %s: %v", end, err)
	}
	if n := len(fake.Objects()); n != 1 {
		t.Errorf("%d files", n)
	}
}

func TestRowsAreAddedInTheirOrderAndNoneTwice(t *testing.T) {
	l, fake := newLake(t, nobody)
	day := Day("1970-01-01")
	if err := l.Append(t.Context(), day, 0, 9, fileOf(t, Row{EventID: "b", Position: 2}, Row{EventID: "d", Position: 9})); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Add(t.Context(), Key("p/", day, 0), []Row{{EventID: "c", Position: 4}, {EventID: "a", Position: 1}, {EventID: "b", Position: 2}}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, data := range fake.Objects() {
		if err := each(bytes.NewReader(data), int64(len(data)), func(row *Identity) error {
			got = append(got, strings.Clone(row.EventID))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhereAFileEndsIsReadFromItWhereACopyHasLostTheMetadata(t *testing.T) {
	l, _ := newLake(t, nobody)
	day := Day("1970-01-01")
	encoder := NewEncoder()
	if err := encoder.Add(Row{EventID: "a", Position: 5}); err != nil {
		t.Fatal(err)
	}
	data, err := encoder.Close(7)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.bucket.Create(t.Context(), Key("p/", day, 0), data, 0); err != nil {
		t.Fatal(err)
	}
	if end, err := l.End(t.Context(), day); err != nil || end != 7 {
		t.Errorf("the end is %s: %v", end, err)
	}
	if err := l.Add(t.Context(), Key("p/", day, 0), []Row{{EventID: "b", Position: 6}}); err != nil {
		t.Fatal(err)
	}
	if _, object, err := l.bucket.Get(t.Context(), Key("p/", day, 0)); err != nil || object.Last != 7 {
		t.Errorf("the file that is written anew ends at %s: %v", object.Last, err)
	}
}

func TestWhatAnEventLacksIsNull(t *testing.T) {
	e := purchase(7)
	for asked, want := range map[bool]*bool{false: nil, true: new(true)} {
		e.Consent.LimitedDataUse = asked
		row, err := RowOf(&e, 1, "default/shop", true)
		if diff := cmp.Diff(want, row.Consent.LimitedDataUse); diff != "" || err != nil {
			t.Errorf("limited_data_use of %t (-want +got):\n%s%v", asked, diff, err)
		}
	}
}

func TestAFileOfWhomSomebodyErasedBeforeItWasThereIsLookedThrough(t *testing.T) {
	erased := false
	l, _ := newLake(t, func(e *event.Event, _ time.Time) bool { return erased && e.ClientID == "ada" })
	day := Day("1970-01-01")
	data := fileOf(t, Row{EventID: "a", Position: 1, ClientID: "ada"}, Row{EventID: "b", Position: 2, ClientID: "bob"})
	if err := l.bucket.Create(context.Background(), Key("p/", day, 0), data, 2); err != nil { // by a writer that dies then
		t.Fatal(err)
	}
	erased = true
	if end, err := l.End(t.Context(), day); err != nil || end != 2 {
		t.Errorf("the end is %s: %v", end, err)
	}
	has, err := l.Has(t.Context(), Key("p/", day, 0))
	if diff := cmp.Diff(map[Place]bool{{2, "b"}: true}, has); diff != "" || err != nil {
		t.Errorf("rows (-want +got):\n%s%v", diff, err)
	}
}
