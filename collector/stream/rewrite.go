package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// What keeps a Redis's files from being rid of what was deleted.
var (
	// ErrRewriteDenied says that the connection's own user may not have the append-only file rewritten.
	ErrRewriteDenied = errors.New("the Redis user may not use the commands bgrewriteaof and config|get")
	// ErrSnapshots says that Redis writes snapshots, which hold the bytes of deleted entries: those of a stream stay where they
	// were in memory until all of their block have gone.
	ErrSnapshots = errors.New("redis must write no snapshots: they hold the bytes of deleted entries")
	// ErrRewriteFailed says that a node has not rewritten its file, as where there is no room for it, or has been restarted.
	ErrRewriteFailed = errors.New("redis has not rewritten its append-only file")
)

// errRewriting says that a node is busy rewriting its file for somebody else.
var errRewriting = errors.New("redis is rewriting its append-only file already")

// Rewriter has every node of a Redis, replicas too, write its append-only file anew: the new one holds commands for what
// is there, and nothing of what was deleted before. It is for one goroutine at a time.
type Rewriter struct {
	client *Client

	mu sync.Mutex
	// begun is what each node was like when it was asked, by address; the nodes of a cluster are asked at the same time.
	begun map[string]rewriteBegun
}

// rewriteBegun is how a node is recognised that has rewritten its file since.
type rewriteBegun struct {
	// run is the id of its process, rewrites how often that had rewritten the file.
	run      string
	rewrites int64
	// nothing says that it has no file.
	nothing bool
}

// NewRewriter prepares it; nothing is sent.
func NewRewriter(client *Client) *Rewriter { return &Rewriter{client: client} }

// Begin has the nodes begin. It fails with [ErrRewriteDenied], or with [ErrSnapshots] where rewriting would not do, and says
// false where a node is still at it for somebody else, or is a replica that has not caught up: then it is to be asked again.
// None begins before all can, or those that begin now would not be ready for the next time.
func (r *Rewriter) Begin(ctx context.Context) (begun bool, err error) {
	r.begun = map[string]rewriteBegun{}
	err = r.client.eachNode(ctx, func(ctx context.Context, node *redis.Client) error {
		state, err := prepareRewrite(ctx, node)
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.begun[node.Options().Addr] = state
		}
		return err
	})
	if err == nil {
		err = r.client.eachNode(ctx, r.begin)
	}
	if errors.Is(err, errRewriting) {
		return false, nil
	}
	return err == nil, err
}

// prepareRewrite says what a node is like that can begin.
func prepareRewrite(ctx context.Context, node *redis.Client) (rewriteBegun, error) {
	settings, err := node.Do(ctx, "config", "get", "save", "aof-use-rdb-preamble").StringSlice()
	if err != nil {
		return rewriteBegun{}, rewriteDeniedOr(err)
	}
	state, err := lookAtFiles(ctx, node)
	if err != nil {
		return rewriteBegun{}, err
	}
	setting := func(name string) string {
		for i := 0; i+1 < len(settings); i += 2 {
			if settings[i] == name {
				return settings[i+1]
			}
		}
		return ""
	}
	switch {
	case setting("save") != "":
		return rewriteBegun{}, &Problem{ErrSnapshots, `save must be ""`}
	case !state.enabled:
		return rewriteBegun{nothing: true}, nil
	case setting("aof-use-rdb-preamble") != "no":
		return rewriteBegun{}, &Problem{ErrSnapshots, "aof-use-rdb-preamble must be no"}
	case state.busy || state.behind:
		return rewriteBegun{}, errRewriting
	}
	return rewriteBegun{run: state.run, rewrites: state.rewrites}, nil
}

// begin has a node begin that has a file; one that nobody has prepared is new, and begins the next time.
func (r *Rewriter) begin(ctx context.Context, node *redis.Client) error {
	r.mu.Lock()
	state, known := r.begun[node.Options().Addr]
	r.mu.Unlock()
	switch {
	case !known:
		return errRewriting
	case state.nothing:
		return nil
	}
	err := node.BgRewriteAOF(ctx).Err()
	if err != nil && strings.Contains(err.Error(), "already in progress") {
		return errRewriting
	}
	return rewriteDeniedOr(err)
}

// Done says whether all nodes have rewritten their files since [Rewriter.Begin]. It fails with [ErrRewriteFailed] where that
// will not be.
func (r *Rewriter) Done(ctx context.Context) (bool, error) {
	done := true
	err := r.client.eachNode(ctx, func(ctx context.Context, node *redis.Client) error {
		state, err := lookAtFiles(ctx, node)
		if err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		begun, known := r.begun[node.Options().Addr]
		switch {
		case begun.nothing && !state.enabled:
			return nil
		case !known || state.run != begun.run:
			return &Problem{ErrRewriteFailed, "it has been restarted, or is a new node"}
		case state.busy:
			done = false
			return nil
		case state.rewrites <= begun.rewrites || !state.succeeded:
			return ErrRewriteFailed
		}
		return nil
	})
	return done && err == nil, err
}

// filesState is what a node says of its append-only file.
type filesState struct {
	run string
	// enabled says that it has one, busy that it rewrites it or is going to, succeeded that it did so the last time.
	enabled, busy, succeeded bool
	rewrites                 int64
	// behind says that it is a replica that does not follow its primary at the moment.
	behind bool
}

func lookAtFiles(ctx context.Context, node *redis.Client) (filesState, error) {
	text, err := node.Info(ctx, "server", "persistence", "replication").Result()
	if redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "unknown command") {
		return filesState{}, ErrInfoDenied
	}
	if err != nil {
		return filesState{}, fmt.Errorf("reach redis: %w", err)
	}
	rewrites, err := strconv.ParseInt(infoField(text, "aof_rewrites"), 10, 64)
	if err != nil {
		return filesState{}, &Problem{ErrRewriteFailed, "it does not say how often it has done so"}
	}
	return filesState{
		run:       infoField(text, "run_id"),
		enabled:   infoField(text, "aof_enabled") == "1",
		busy:      infoField(text, "aof_rewrite_in_progress") == "1" || infoField(text, "aof_rewrite_scheduled") == "1",
		succeeded: infoField(text, "aof_last_bgrewrite_status") == "ok",
		rewrites:  rewrites,
		behind:    infoField(text, "role") == "slave" && infoField(text, "master_link_status") != "up",
	}, nil
}

// rewriteDeniedOr makes [ErrRewriteDenied] of Redis's own words for it.
func rewriteDeniedOr(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if strings.Contains(text, "NOPERM") || strings.Contains(text, "unknown command") || strings.Contains(text, "unknown subcommand") {
		return ErrRewriteDenied
	}
	return fmt.Errorf("rewrite redis's append-only file: %w", err)
}
