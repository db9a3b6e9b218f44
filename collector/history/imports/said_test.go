package imports_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/imports"
)

// notes are those of imports, the last moment of what is imported, as often as they are there.
func (p *place) notes() []string {
	p.t.Helper()
	list, err := clickhouse.Select[string](context.Background(), p.client, clickhouse.Query{
		SQL: "SELECT begin = 0 ? 'end' : toString(fromUnixTimestamp64Milli(toInt64(bitShiftRight(begin, 20)), 'UTC')) FROM gaps WHERE end = 0 ORDER BY begin DESC",
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return list
}

func TestAnImportIsNotedInTheHistory(t *testing.T) {
	lines, dry := many(0, 400), func(o *imports.Options) { o.DryRun = true }
	const last = "2026-10-02 22:33:00.000"
	for name, test := range map[string]struct {
		before []string
		lines  []string
		change func(*imports.Options)
		want   []string
	}{
		"up to where it goes, and its end":        {nil, lines, nil, []string{last, "end"}},
		"its end alone where it adds nothing":     {lines, lines, nil, []string{last, "end", "end"}},
		"not what is left out":                    {nil, lines, func(o *imports.Options) { o.Before = time.Date(2026, 10, 1, 0, 10, 0, 0, time.UTC) }, []string{"2026-10-01 00:07:00.000", "end"}},
		"nothing where it is to add nothing":      {nil, lines, dry, nil},
		"its end alone where there is no event":   {nil, nil, nil, []string{"end"}},
		"nothing of a dry run behind another one": {lines, lines, dry, []string{last, "end"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			if test.before != nil {
				p.run(file(t, "before.json", test.before...))
			}
			if test.change != nil {
				test.change(&p.Options)
			}
			p.run(file(t, "a.json", test.lines...))
			if diff := cmp.Diff(test.want, p.notes()); diff != "" {
				t.Errorf("the notes (-want +got):\n%s", diff)
			}
		})
	}
}
