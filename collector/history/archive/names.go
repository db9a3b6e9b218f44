package archive

import (
	"context"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// mostNamed is about how many events the names are held of. Each takes 16 bytes.
	mostNamed = 1_000_000
	// mostKinds is how many different events are held once.
	mostKinds = 10_000
	// askedAtOnce is how many positions stand in one statement.
	askedAtOnce = 2000
)

// kind is what a record has of its event: the name, and which platforms there may be records of.
type kind struct {
	name      string
	platforms []string
}

// names know what events at some positions are: those that were archived last from memory, the others from the table. They are safe
// for concurrent use.
type names struct {
	client *clickhouse.Client

	mu     sync.Mutex
	blocks []namedBlock
	held   int
	kinds  map[[2]string]*kind
}

// namedBlock are events, in order.
type namedBlock struct {
	at    []uint64
	kinds []*kind
}

// kindOf returns what events are that have a name and platforms. The caller holds the lock.
func (n *names) kindOf(name, platforms string) *kind {
	key := [2]string{name, platforms}
	one := n.kinds[key]
	if one == nil {
		if n.kinds == nil || len(n.kinds) >= mostKinds {
			n.kinds = map[[2]string]*kind{}
		}
		one = &kind{name: name, platforms: strings.Split(platforms, rows.PlatformSeparator)}
		n.kinds[key] = one
	}
	return one
}

// add adds events that are about to be archived. Those of before that are not before them are forgotten.
func (n *names) add(list []rows.Event) {
	if len(list) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.blocks) > 0 && last(n.blocks[len(n.blocks)-1].at) >= list[0].At {
		n.held -= len(n.blocks[len(n.blocks)-1].at)
		n.blocks = n.blocks[:len(n.blocks)-1]
	}
	// Small blocks are put together: there is one a second.
	var block *namedBlock
	if end := len(n.blocks) - 1; end >= 0 && len(n.blocks[end].at) < readCount {
		block = &n.blocks[end]
	} else {
		n.blocks = append(n.blocks, namedBlock{})
		block = &n.blocks[len(n.blocks)-1]
	}
	for i := range list {
		block.at, block.kinds = append(block.at, list[i].At), append(block.kinds, n.kindOf(list[i].Name, list[i].Platforms))
	}
	n.held += len(list)
	for n.held > mostNamed && len(n.blocks) > 1 {
		n.held -= len(n.blocks[0].at)
		n.blocks = slices.Delete(n.blocks, 0, 1)
	}
}

func last[T any](list []T) T { return list[len(list)-1] }

// find returns the kinds of events by position, in any order: nil for one that is not there.
func (n *names) find(ctx context.Context, positions []stream.Position) ([]*kind, error) {
	found := make([]*kind, len(positions))
	unknown := n.recall(positions, found)
	if len(unknown) == 0 {
		return found, nil
	}
	read, err := n.read(ctx, unknown)
	if err != nil {
		return nil, err
	}
	for i, at := range positions {
		if found[i] == nil {
			found[i] = read[uint64(at)]
		}
	}
	return found, nil
}

// recall fills in those that are held in memory, and returns the positions of the others, sorted, each once.
func (n *names) recall(positions []stream.Position, found []*kind) (unknown []uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, position := range positions {
		at := uint64(position)
		b := sort.Search(len(n.blocks), func(b int) bool { return last(n.blocks[b].at) >= at })
		if b < len(n.blocks) {
			if place, here := slices.BinarySearch(n.blocks[b].at, at); here {
				found[i] = n.blocks[b].kinds[place]
				continue
			}
		}
		unknown = append(unknown, at)
	}
	slices.Sort(unknown)
	return slices.Compact(unknown)
}

// namedRow is what the table has of an event.
type namedRow struct {
	At        uint64 `ch:"at"`
	Name      string `ch:"name"`
	Platforms string `ch:"platforms"`
}

// read asks the table for events: for all between the first and the last where most of them are wanted, else one by one.
func (n *names) read(ctx context.Context, positions []uint64) (map[uint64]*kind, error) {
	found := make(map[uint64]*kind, len(positions))
	ask := func(condition string, parameters map[string]any) error {
		query := clickhouse.Query{SQL: "SELECT at, name, platforms FROM events WHERE " + condition, Parameters: parameters}
		for row, err := range clickhouse.Rows[namedRow](ctx, n.client, query) {
			if err != nil {
				return err
			}
			n.mu.Lock()
			found[row.At] = n.kindOf(row.Name, row.Platforms)
			n.mu.Unlock()
		}
		return nil
	}
	bounds := map[string]any{"first": positions[0], "last": last(positions)}
	const between = "at BETWEEN {first:UInt64} AND {last:UInt64}"
	count, err := clickhouse.One[uint64](ctx, n.client, clickhouse.Query{SQL: "SELECT count() FROM events WHERE " + between, Parameters: bounds})
	if err != nil {
		return nil, err
	}
	if count <= uint64(4*len(positions)+askedAtOnce) {
		return found, ask(between, bounds)
	}
	for some := range slices.Chunk(positions, askedAtOnce) {
		if err := ask("at IN {positions:Array(UInt64)}", map[string]any{"positions": some}); err != nil {
			return nil, err
		}
	}
	return found, nil
}
