package imports

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/stream"
)

// errSalt says that who was erased cannot be told.
var errSalt = errors.New("persons were erased, and erasures/ledger is missing, by which they are told")

// errLedger says that there is nothing which tells whether anybody was erased.
var errLedger = errors.New("erasures/ledger is missing in --config, which says who was erased: their events would come back; " +
	"where nobody was, say --nobody-erased")

// ledger is who of a property's persons was erased: what the file has, and what the ledger stream has told since.
type ledger struct {
	known *erasure.Ledger
	// client is nil where there is no Redis to ask; read is how far its stream has been read.
	client *stream.Client
	stream *stream.Stream
	read   stream.Position
}

// openLedger reads who was erased, by the files of a configuration directory. Without redis/url the file alone tells.
func openLedger(ctx context.Context, dir string, property *config.Property) (*ledger, error) {
	file, err := config.LoadLedger(dir)
	if err != nil {
		return nil, err
	}
	l := &ledger{known: file}
	redis, err := config.LoadRedis(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	if l.client, err = stream.Dial(redis.URL, stream.DialOptions{TLS: redis.TLS}); err != nil {
		return nil, fmt.Errorf("%s: %w", config.RedisURLFile, err)
	}
	l.stream = l.client.Stream(property.Namespace, property.Name)
	if err := l.refresh(ctx); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *ledger) close() {
	if l.client != nil {
		_ = l.client.Close() // nothing was written
	}
}

// refresh reads on in the ledger stream.
func (l *ledger) refresh(ctx context.Context) error {
	if l.stream == nil {
		return nil
	}
	const atOnce = 1000
	for {
		list, last, err := l.stream.ReadLedger(ctx, l.read, atOnce)
		if err != nil {
			return fmt.Errorf("read who was erased: %w", err)
		}
		if last == l.read {
			return nil
		}
		l.read = last
		for _, read := range list {
			for _, entry := range read.Entries {
				if l.known == nil {
					return errSalt
				}
				l.known.Add(entry)
			}
		}
	}
}

// tells says whether there is anything that tells who was erased. Before the first erasure there may be no file; that nobody was is
// then the ledger stream's to say.
func (l *ledger) tells() bool { return l.known != nil || l.stream != nil }

// erased is [Options.Erased].
func (l *ledger) erased(ids event.Identifiers, received time.Time) bool {
	return l.known != nil && l.known.Erased(ids, received)
}
