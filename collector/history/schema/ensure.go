package schema

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/clickhouse"
)

// Existing is a column, projection or index as ClickHouse has it.
type Existing struct {
	Table string `ch:"table"`
	Name  string `ch:"name"`
	Kind  string `ch:"kind"`
}

// State is what there is of a history.
type State struct{ Columns, Projections, Indexes []Existing }

// Ensure makes the tables of the client's database where they are missing, and adds the columns, projections and indexes that they lack:
// so a newer Weir goes on with the tables of an older one, and what somebody has dropped comes back. The database has to be
// there. It returns the statements that it ran beside those that make tables.
func Ensure(ctx context.Context, client *clickhouse.Client) (repaired []string, err error) {
	return EnsureOn(ctx, client, "")
}

// EnsureOn is [Ensure] for tables that are spread over a cluster. What each shard has is taken to be what the server has that is asked:
// what somebody has changed on one alone is not seen.
func EnsureOn(ctx context.Context, client *clickhouse.Client, c Cluster) (repaired []string, err error) {
	for _, statement := range Creates(client.Database(), c) {
		if err := client.Exec(ctx, clickhouse.Query{SQL: statement}); err != nil {
			return nil, fmt.Errorf("make the tables: %w", err)
		}
	}
	state, err := read(ctx, client)
	if err != nil {
		return nil, err
	}
	statements, err := RepairsOn(state, c)
	if err != nil {
		return nil, err
	}
	for _, statement := range statements {
		if err := client.Exec(ctx, clickhouse.Query{SQL: statement}); err != nil {
			return repaired, fmt.Errorf("repair the tables: %w", err)
		}
		repaired = append(repaired, statement)
	}
	return repaired, nil
}

// read asks what there is.
func read(ctx context.Context, client *clickhouse.Client) (state State, err error) {
	parameters := map[string]any{"database": client.Database()}
	state.Columns, err = clickhouse.Select[Existing](ctx, client, clickhouse.Query{
		SQL: "SELECT table, name, type AS kind FROM system.columns WHERE database = {database:String}", Parameters: parameters,
	})
	if err != nil {
		return State{}, fmt.Errorf("look at the tables: %w", err)
	}
	state.Projections, err = clickhouse.Select[Existing](ctx, client, clickhouse.Query{
		SQL: "SELECT table, name, query AS kind FROM system.projections WHERE database = {database:String}", Parameters: parameters,
	})
	if err != nil {
		return State{}, fmt.Errorf("look at the projections: %w", err)
	}
	state.Indexes, err = clickhouse.Select[Existing](ctx, client, clickhouse.Query{
		SQL: "SELECT table, name, expr AS kind FROM system.data_skipping_indices WHERE database = {database:String}", Parameters: parameters,
	})
	if err != nil {
		return State{}, fmt.Errorf("look at the indexes: %w", err)
	}
	return state, nil
}

// RepairsOn are the statements that make of what there is what there has to be. A column of another type is an error: its values would
// have to be read again. Of tables that are spread over a cluster those that have rows come first.
func RepairsOn(state State, c Cluster) ([]string, error) {
	var statements []string
	for _, t := range tables() {
		columns, err := t.missingColumns(state, c.Local(t.name), c.Alter(t.name))
		if err != nil {
			return nil, err
		}
		statements = append(statements, columns...)
		if c != "" {
			columns, err := t.missingColumns(state, t.name, "ALTER TABLE "+Quote(t.name)+c.on())
			if err != nil {
				return nil, err
			}
			for i := range columns { // it has no files, and so nothing to compress
				columns[i] = uncompressed.ReplaceAllString(columns[i], "")
			}
			statements = append(statements, columns...)
		}
		statements = append(statements, t.missingPrepared(state, c)...)
	}
	return statements, nil
}

// missingPrepared are the statements that add to a table what is prepared and what it lacks of that, also of the rows that are there: this
// goes on behind them.
func (t *table) missingPrepared(state State, c Cluster) (statements []string) {
	lacks := func(list []Existing, name string) bool {
		return !slices.ContainsFunc(list, func(e Existing) bool { return e.Table == c.Local(t.name) && e.Name == name })
	}
	for _, p := range t.projections {
		if lacks(state.Projections, p.name) {
			statements = append(statements,
				fmt.Sprintf("%s ADD PROJECTION IF NOT EXISTS %s (%s)", c.Alter(t.name), Quote(p.name), p.query),
				fmt.Sprintf("%s MATERIALIZE PROJECTION %s", c.Alter(t.name), Quote(p.name)))
		}
	}
	for i := range t.indexes {
		if one := &t.indexes[i]; lacks(state.Indexes, one.name) {
			statements = append(statements,
				fmt.Sprintf("%s ADD INDEX IF NOT EXISTS %s", c.Alter(t.name), one.definition()),
				fmt.Sprintf("%s MATERIALIZE INDEX %s", c.Alter(t.name), Quote(one.name)))
		}
	}
	return statements
}

// uncompressed is what a column of a table without files has not.
var uncompressed = regexp.MustCompile(` CODEC\(([^()]|\([^()]*\))*\)`)

// missingColumns are the statements that add to a table the columns that it lacks, given how these begin.
func (t *table) missingColumns(state State, name, alter string) (statements []string, err error) {
	for i, c := range t.columns {
		at := slices.IndexFunc(state.Columns, func(e Existing) bool { return e.Table == name && e.Name == c.name })
		if at < 0 {
			place := "FIRST"
			if i > 0 {
				place = "AFTER " + Quote(t.columns[i-1].name)
			}
			statements = append(statements, fmt.Sprintf("%s ADD COLUMN IF NOT EXISTS %s %s %s", alter, Quote(c.name), c.kind, place))
			continue
		}
		if want, got := c.dataType(), state.Columns[at].Kind; want != got {
			return nil, fmt.Errorf("column %s of table %s has the type %s; it must be %s", c.name, name, got, want)
		}
	}
	return statements, nil
}

// dataType is the column's type without how it is compressed.
func (c *column) dataType() string {
	kind, _, _ := strings.Cut(c.kind, " CODEC")
	return kind
}
