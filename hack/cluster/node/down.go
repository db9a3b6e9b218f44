package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Down ends the node and removes everything of it from the machine but what the cache holds. Where there is none,
// it finds nothing to do.
func (n *Node) Down(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("a node is removed by root")
	}
	begin := time.Now()
	process, err := n.running()
	if err != nil && !errors.Is(err, errNoNode) {
		return err
	}
	if err != nil {
		if err := n.checkOthers(); err != nil {
			return err
		}
	} else if err := n.follow(ctx, begin, []step{{"processes ended", nil, process.end}}); err != nil {
		return err
	}
	return n.follow(ctx, begin, []step{{"link, routes, cgroups and state removed", nil, n.remains}})
}

// remains removes what a node leaves when it ends.
func (n *Node) remains(ctx context.Context) error {
	if err := errors.Join(disconnect(ctx), removeCgroups(ctx)); err != nil {
		return err
	}
	// The last of the node's mounts go a moment after its last process.
	var last error
	err := poll(ctx, removeTimeout, "the removal of "+n.State, func(context.Context) (bool, error) {
		last = os.RemoveAll(n.State)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}
