package clickhouse_test

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
)

func dial(t *testing.T, address string) *clickhouse.Client {
	t.Helper()
	client, err := clickhouse.Dial(address, clickhouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func exec(t *testing.T, client *clickhouse.Client, sql string) {
	t.Helper()
	if err := client.Exec(t.Context(), clickhouse.Query{SQL: sql}); err != nil {
		t.Fatal(err)
	}
}

// row uses every kind of column.
type row struct {
	Number uint64    `ch:"number"`
	Small  int8      `ch:"small"`
	Text   string    `ch:"text"`
	Name   string    `ch:"name"`
	Value  *int64    `ch:"value"`
	ID     uuid.UUID `ch:"id"`
	Names  []string  `ch:"names"`
	Values []*int64  `ch:"values"`
}

const table = "CREATE TABLE t (number UInt64, small Int8, text String, name LowCardinality(String), value Nullable(Int64), id UUID, " +
	"names Array(LowCardinality(String)), values Array(Nullable(Int64))) ENGINE = MergeTree ORDER BY number SETTINGS non_replicated_deduplication_window = 10"

func TestRowsComeBackAsTheyWereInserted(t *testing.T) {
	client := dial(t, clickhousetest.Shared(t))
	exec(t, client, table)
	want := []row{
		{},
		{Number: 1<<64 - 1, Small: -128, Text: "a\tb\n'c'\\\x00ü", Name: "purchase", Value: new(int64(-1 << 63)), ID: uuid.Max,
			Names: []string{"p", "", "q"}, Values: []*int64{nil, new(int64(7))}},
	}
	if err := clickhouse.Insert(t.Context(), client, "t", want, ""); err != nil {
		t.Fatal(err)
	}
	got, err := clickhouse.Select[row](t.Context(), client, clickhouse.Query{SQL: "SELECT * FROM t ORDER BY number"})
	if err != nil {
		t.Fatal(err)
	}
	want[0].Names, want[0].Values = []string{}, []*int64{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestABlockWithATokenThatIsKnownIsDropped(t *testing.T) {
	client := dial(t, clickhousetest.Shared(t))
	exec(t, client, table)
	for _, token := range []string{"a", "a", "b", "", ""} {
		if err := clickhouse.Insert(t.Context(), client, "t", []row{{Number: 1}}, token); err != nil {
			t.Fatal(err)
		}
	}
	got, err := clickhouse.One[uint64](t.Context(), client, clickhouse.Query{SQL: "SELECT count() FROM t"})
	if err != nil || got != 4 {
		t.Errorf("there are %d rows (%v), want 4: the token a once, b once, and each block without one", got, err)
	}
}

func TestParametersAreValuesWhateverStandsInThem(t *testing.T) {
	client := dial(t, clickhousetest.Shared(t))
	hostile := "'; DROP TABLE t; --\t\\N\n{x:String}\x00"
	for name, test := range map[string]struct {
		sql        string
		parameters map[string]any
	}{
		"a text":           {"SELECT {x:String}", map[string]any{"x": hostile}},
		"a text in a list": {"SELECT {x:Array(String)}[2]", map[string]any{"x": []string{"", hostile}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := clickhouse.One[string](t.Context(), client, clickhouse.Query{SQL: test.sql, Parameters: test.parameters})
			if err != nil || got != hostile {
				t.Errorf("got %q (%v), want %q", got, err, hostile)
			}
		})
	}
	sum, err := clickhouse.One[big.Int](t.Context(), client, clickhouse.Query{
		SQL: "SELECT sum(toInt128(n)) FROM (SELECT arrayJoin({n:Array(Int64)}) AS n)", Parameters: map[string]any{"n": []int64{1<<63 - 1, 1<<63 - 1}}})
	want, _ := new(big.Int).SetString("18446744073709551614", 10)
	if err != nil || sum.Cmp(want) != 0 {
		t.Errorf("the sum is %v (%v), want %v", &sum, err, want)
	}
}

func TestProblemsSayWhatIsWrongAndRepeatNothing(t *testing.T) {
	address := clickhousetest.Shared(t)
	const secret = "pa55w0rd"
	ask := func(sql string) func(*clickhouse.Client) error {
		return func(client *clickhouse.Client) error {
			_, err := clickhouse.One[uint8](t.Context(), client, clickhouse.Query{SQL: sql})
			return err
		}
	}
	tests := map[string]struct {
		fault   clickhousetest.Fault
		address func(string) string
		do      func(*clickhouse.Client) error
		want    clickhouse.Kind
	}{
		"no such table":         {do: ask("SELECT * FROM " + secret), want: clickhouse.Missing},
		"no such column":        {do: ask("SELECT " + secret), want: clickhouse.Missing},
		"what is no statement":  {do: ask("SELEKT '" + secret + "'"), want: clickhouse.Other},
		"an error of its own":   {do: ask("SELECT throwIf(1, '" + secret + "')"), want: clickhouse.Other},
		"a wrong password":      {address: func(a string) string { return strings.Replace(a, "weir:", "weir:"+secret, 1) }, do: ask("SELECT 1"), want: clickhouse.Denied},
		"a full disk":           {fault: clickhousetest.Fault{Code: 243, Message: secret}, do: ask("SELECT 1"), want: clickhouse.DiskFull},
		"too many parts":        {fault: clickhousetest.Fault{Code: 252, Message: secret}, do: ask("SELECT 1"), want: clickhouse.TooManyParts},
		"no memory":             {fault: clickhousetest.Fault{Code: 241, Message: secret}, do: ask("SELECT 1"), want: clickhouse.MemoryLimit},
		"too slow":              {fault: clickhousetest.Fault{Code: 159, Message: secret}, do: ask("SELECT 1"), want: clickhouse.Timeout},
		"no answer":             {fault: clickhousetest.Fault{CutBefore: true}, do: ask("SELECT 1"), want: clickhouse.Unreachable},
		"an answer that is not": {fault: clickhousetest.Fault{Nonsense: "<html>" + secret}, do: ask("SELECT 1"), want: clickhouse.Nonsense},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			proxy := clickhousetest.StartProxy(t, address)
			if test.fault.CutBefore || test.fault.Nonsense != "" || test.fault.Code != 0 {
				proxy.Add(test.fault)
			}
			to := proxy.URL()
			if test.address != nil {
				to = test.address(to)
			}
			err := test.do(dial(t, to))
			if !errors.Is(err, test.want) || err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v, want %v and nothing of what was asked or said", err, test.want)
			}
		})
	}
}

func TestAQueryEndsWithWhoeverAsked(t *testing.T) {
	client := dial(t, clickhousetest.Shared(t))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := clickhouse.One[uint64](ctx, client, clickhouse.Query{SQL: "SELECT max(cityHash64(number)) FROM numbers(1000000000000)"})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 30*time.Second {
		t.Errorf("got %v after %v, want the context's error at once", err, time.Since(begun))
	}
	if _, err := client.Version(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestARowsQueryHoldsABlockAtATime(t *testing.T) {
	client := dial(t, clickhousetest.Shared(t))
	sum, n := uint64(0), 0
	for number, err := range clickhouse.Rows[uint64](t.Context(), client, clickhouse.Query{SQL: "SELECT number FROM numbers(300000)"}) {
		if err != nil {
			t.Fatal(err)
		}
		sum, n = sum+number, n+1
	}
	if n != 300000 || sum != 300000*299999/2 {
		t.Errorf("%d rows with the sum %d", n, sum)
	}
	for _, err := range clickhouse.Rows[uint64](t.Context(), client, clickhouse.Query{SQL: "SELECT number FROM numbers(300000)"}) {
		if err != nil {
			t.Fatal(err)
		}
		break // which ends the query
	}
	if _, err := clickhouse.One[string](t.Context(), client, clickhouse.Query{SQL: "SELECT toUInt8(1)"}); err == nil {
		t.Error("a number is read as a text")
	}
}

func TestURLsThatAreNone(t *testing.T) {
	for name, address := range map[string]string{
		"another scheme":        "clickhouse://u:pa55@host:9000/d",
		"no host":               "http:///d",
		"a port that is none":   "http://u:pa55@host:99999/d",
		"two databases":         "http://u:pa55@host/a/b",
		"parameters":            "http://u:pa55@host/d?max_memory_usage=1",
		"skip_verify over http": "http://u:pa55@host/d?skip_verify=true",
		"a line's end":          "http://u:pa55@host/d%0ax",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := clickhouse.Dial(address, clickhouse.Options{})
			if !errors.Is(err, clickhouse.ErrURL) || strings.Contains(err.Error(), "pa55") {
				t.Errorf("got %v, want ErrURL and nothing of the URL", err)
			}
		})
	}
}

func TestVersions(t *testing.T) {
	version, err := dial(t, clickhousetest.Shared(t)).Version(t.Context())
	if err != nil || version == "" {
		t.Errorf("the engine for tests is %q: %v", version, err)
	}
}
