package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/ledger"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// ledgerInterval is how often requests for erasures are looked for, and purgeInterval whether files are to be rewritten.
	ledgerInterval = 250 * time.Millisecond
	purgeInterval  = time.Second
)

// ledgerFile is a property's ledger of erasures in the state directory, where it outlives the Redis.
type ledgerFile struct{ path string }

// Load reads it.
func (f ledgerFile) Load(context.Context) (*erasure.Ledger, error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return erasure.Decode(text)
}

// Save replaces it in one step, and returns when the disk has it. Nobody else writes it: the state directory is locked.
func (f ledgerFile) Save(_ context.Context, l *erasure.Ledger) error {
	directory := filepath.Dir(f.path)
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	temporary := f.path + ".new"
	if err := writeSynced(temporary, l.Encode()); err != nil {
		return err
	}
	if err := os.Rename(temporary, f.path); err != nil {
		return err
	}
	return syncDirectory(directory)
}

// writeSynced writes a file, readable for its owner alone, and returns when the disk has it.
func writeSynced(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

// syncDirectory returns when the disk has the names in a directory.
func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// devErasures plays the operator's part in erasures: it keeps the ledgers, and has each Redis rewrite its files.
type devErasures struct {
	logger  *slog.Logger
	audit   *audit.Log
	keepers []*keptLedger
	// purgers are of each Redis, with the properties that are there.
	purgers map[*stream.Client]*purgedRedis
}

// maxLedger is how many identifiers a ledger may have, so that its file is one that pods read.
const maxLedger = 65_000

// keptLedger is a ledger with what was said of it last.
type keptLedger struct {
	*ledger.Keeper
	property, problem string
}

// purgedRedis is a Redis with what was said of its files last.
type purgedRedis struct {
	*ledger.Purger
	streams []*stream.Stream
	problem string
}

// add has a property's erasures kept, whose pods read the ledger in the directory. Whatever the ledger has and Redis has
// forgotten is back there when it returns, before anything is served.
func (e *devErasures) add(ctx context.Context, client *stream.Client, p *loadedProperty, file ledgerFile, pod string) error {
	keeper := &ledger.Keeper{
		Stream: client.Stream(p.Namespace, p.Name), Store: file, Retention: time.Duration(p.Spec.Retention.Days) * 24 * time.Hour, Capacity: maxLedger,
	}
	if _, err := keeper.Look(ctx, time.Now()); err != nil {
		return err
	}
	directory, err := filepath.Rel(pod, filepath.Dir(file.path))
	if err == nil {
		err = os.Symlink(directory, filepath.Join(pod, path.Dir(config.LedgerFile)))
	}
	if err != nil {
		return err
	}
	e.keepers = append(e.keepers, &keptLedger{Keeper: keeper, property: p.id().String()})
	if e.purgers == nil {
		e.purgers = map[*stream.Client]*purgedRedis{}
	}
	if e.purgers[client] == nil {
		e.purgers[client] = &purgedRedis{Purger: ledger.NewPurger(client)}
		e.purgers[client].Audit = e.audit
	}
	e.purgers[client].streams = append(e.purgers[client].streams, keeper.Stream)
	return nil
}

// keep goes on with that until ctx ends.
func (e *devErasures) keep(ctx context.Context) {
	look, purge := time.NewTicker(ledgerInterval), time.NewTicker(purgeInterval)
	defer look.Stop()
	defer purge.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			for _, kept := range e.keepers {
				e.look(ctx, kept)
			}
		case <-purge.C:
			for client, redis := range e.purgers {
				e.purge(ctx, client, redis)
			}
		}
	}
}

// look writes what is requested to a ledger. What keeps it from that is said once.
func (e *devErasures) look(ctx context.Context, kept *keptLedger) {
	problem := ""
	if _, err := kept.Look(ctx, time.Now()); err != nil && ctx.Err() == nil {
		problem = err.Error()
	}
	if problem != "" && problem != kept.problem {
		e.logger.Warn("requests for erasures wait", "property", kept.property, "error", problem)
	}
	kept.problem = problem
}

// purge has a Redis rewrite its files where it is time. What somebody has to mend there is said once.
func (e *devErasures) purge(ctx context.Context, client *stream.Client, redis *purgedRedis) {
	work, err := client.ErasureWork(ctx, redis.streams)
	if err != nil {
		return // a Redis that is away; the roles say so
	}
	var waiting []*stream.Stream
	for i, s := range redis.streams {
		if work[i].Unpurged() {
			waiting = append(waiting, s)
		}
	}
	problem := ""
	if err := redis.Look(ctx, time.Now(), waiting); err != nil && stream.UnpurgedReason(err) != "" {
		problem = err.Error()
	}
	if problem != "" && problem != redis.problem {
		e.logger.Warn("the files of a Redis still have what was erased", "error", problem)
	}
	redis.problem = problem
}
