package stream

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	// mostPending is how much may be pending in a group, many times what deliverers hold.
	mostPending = 1 << 20
	// mostRequested is how many requests for erasures, and rejections, are read at the cut, many times what there is.
	mostRequested = 100_000
	// cutAttempts is how often the cut is tried while platforms come and go.
	cutAttempts = 10
)

// ErrErased says that something was erased, or forgotten, since a backup began: what it has of that must not stay in it.
var ErrErased = errors.New("somebody was erased meanwhile, so that the backup has to begin anew")

// backupCut is the transaction by which a backup reads, at one moment, all that moves: how far each group is and what it has under
// way, what waits, and where the streams end. What it does not read only grows until the end of the backup, or can be told from
// what came later.
type backupCut struct {
	s       *Stream
	pipe    redis.Pipeliner
	now     *redis.TimeCmd
	clock   *redis.StringCmd
	ends    map[string]*redis.Cmd
	groups  *redis.Cmd
	pending map[string]*redis.XPendingExtCmd
	// parts are those that become pieces of one kind each, in order.
	parts []cutPart
}

// cutPart is a key that is read as a whole.
type cutPart struct {
	kind    PieceKind
	key     string
	value   *redis.Cmd
	expires *redis.Cmd
}

// endedStreams are those that are read after the cut, up to where they ended then.
func (k keys) endedStreams() []string {
	return []string{k.events(), k.deliveries(), k.erasureLedger()}
}

// cut reads what moves and hands it on, at the end a [PieceCut].
func (s *Stream) cut(ctx context.Context, emit func(*Piece) error) error {
	for range cutAttempts {
		groups, err := s.Groups(ctx)
		if err != nil {
			return err
		}
		platforms := make([]string, len(groups))
		for i, group := range groups {
			platforms[i] = group.Platform
		}
		c := &backupCut{s: s, ends: map[string]*redis.Cmd{}, pending: map[string]*redis.XPendingExtCmd{}}
		if err := c.read(ctx, platforms); err != nil {
			return err
		}
		made, err := c.groupPieces()
		if err != nil {
			return err
		}
		found := make([]string, len(made))
		for i := range made {
			found[i] = made[i].Items[0]
		}
		slices.Sort(found)
		slices.Sort(platforms)
		if slices.Equal(found, platforms) {
			return c.hand(made, emit)
		}
	}
	return errors.New("platforms come and go, so that nothing can be read of them at one moment")
}

// read asks for everything in one transaction.
func (c *backupCut) read(ctx context.Context, platforms []string) error {
	k := c.s.keys
	c.pipe = c.s.redis.TxPipeline()
	c.now, c.clock = c.pipe.Time(ctx), c.pipe.GetRange(ctx, k.clock(), 0, 63)
	for _, key := range k.endedStreams() {
		c.ends[key] = c.pipe.Do(ctx, "XINFO", "STREAM", key)
	}
	c.groups = c.pipe.Do(ctx, "XINFO", "GROUPS", k.events())
	for _, key := range []string{k.dedup(), k.join(), k.prefix + "seal:device", k.prefix + "seal:identity", k.sealDropped(), k.archive()} {
		c.whole(ctx, PieceHash, key, "HGETALL")
	}
	for _, key := range []string{k.usedKeys(), k.usedTokens(), k.openErasures(), k.hiddenErasures()} {
		c.whole(ctx, PieceScores, key, "ZRANGE", 0, -1, "WITHSCORES")
	}
	for _, key := range []string{k.erasureRequests(), k.rejections()} {
		c.whole(ctx, PieceEntries, key, "XRANGE", "-", "+", "COUNT", mostRequested)
	}
	for _, platform := range platforms {
		c.pending[platform] = c.pipe.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: k.events(), Group: platform, Start: "-", End: "+", Count: mostPending})
		c.whole(ctx, PieceScores, k.due(platform), "ZRANGE", 0, -1, "WITHSCORES")
		c.whole(ctx, PieceHash, k.attempts(platform), "HGETALL")
		c.whole(ctx, PieceText, k.writer(platform), "GET")
	}
	commands, err := c.pipe.Exec(ctx)
	for _, command := range commands {
		if _, answered := errors.AsType[redis.Error](command.Err()); command.Err() != nil && !answered {
			return fmt.Errorf("read what moves at one moment: %w", command.Err())
		}
	}
	if len(commands) == 0 {
		return err
	}
	return nil
}

func (c *backupCut) whole(ctx context.Context, kind PieceKind, key, command string, args ...any) {
	c.parts = append(c.parts, cutPart{
		kind, key, c.pipe.Do(ctx, append([]any{command, key}, args...)...), c.pipe.Do(ctx, "PEXPIRETIME", key),
	})
}

// hand hands on what was read.
func (c *backupCut) hand(groups []Piece, emit func(*Piece) error) error {
	for _, key := range c.s.keys.endedStreams() {
		piece, err := c.endsPiece(key)
		if err != nil {
			return err
		}
		if piece != nil {
			if err := emit(piece); err != nil {
				return err
			}
		}
	}
	for i := range groups {
		platform := groups[i].Items[0]
		if err := emit(&groups[i]); err != nil {
			return err
		}
		if err := c.handPending(platform, emit); err != nil {
			return err
		}
		if err := emitAll(PieceScores, c.s.keys.within(c.s.keys.open(platform)), 0, c.opened(platform), emit); err != nil {
			return err
		}
	}
	for i := range c.parts {
		if err := c.handPart(&c.parts[i], emit); err != nil {
			return err
		}
	}
	at := believed(c.now.Val(), c.clock.Val()).UnixMilli()
	return emit(&Piece{Kind: PieceCut, Items: []string{strconv.FormatInt(at, 10)}})
}

// endsPiece returns what a stream knows of itself; nil where there is none.
func (c *backupCut) endsPiece(key string) (*Piece, error) {
	fields, err := c.ends[key].Slice()
	if isNoKey(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at a stream: %w", err)
	}
	known := pairsOf(fields)
	return &Piece{Kind: PieceEnds, Key: c.s.keys.within(key), Items: []string{
		known["last-generated-id"], known["entries-added"], known["max-deleted-entry-id"],
	}}, nil
}

func (c *backupCut) groupPieces() ([]Piece, error) {
	list, err := c.groups.Slice()
	if isNoKey(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list consumer groups: %w", err)
	}
	pieces := make([]Piece, len(list))
	for i, group := range list {
		fields, _ := group.([]any)
		known := pairsOf(fields)
		pieces[i] = Piece{Kind: PieceGroup, Key: "events", Items: []string{known["name"], known["last-delivered-id"], known["entries-read"]}}
	}
	return pieces, nil
}

func (c *backupCut) handPending(group string, emit func(*Piece) error) error {
	list, err := c.pending[group].Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return describe("list what is pending for platform "+group, err)
	}
	for some := range slices.Chunk(list, 10_000) {
		items := []string{group}
		for _, one := range some {
			items = append(items, one.ID, one.Consumer, strconv.FormatInt(one.RetryCount, 10))
		}
		if err := emit(&Piece{Kind: PiecePending, Key: "events", Items: items}); err != nil {
			return err
		}
	}
	return nil
}

func (c *backupCut) handPart(part *cutPart, emit func(*Piece) error) error {
	value, err := part.value.Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what moves: %w", err)
	}
	expires, err := part.expires.Int64()
	if err != nil {
		return fmt.Errorf("look when something expires: %w", err)
	}
	key := c.s.keys.within(part.key)
	// What lives until somebody trims it may have got a last day since the Property was deleted: a restore is for having it again.
	if expires < 0 || part.kind != PieceText && part.key != c.s.keys.rejections() {
		expires = 0
	}
	switch part.kind {
	case PieceText:
		text, _ := value.(string)
		return emit(&Piece{Kind: PieceText, Key: key, Expires: expires, Items: []string{text}})
	case PieceEntries:
		list, _ := value.([]any)
		return emitAll(PieceEntries, key, expires, itemsOf(list), emit)
	default:
		list, _ := value.([]any)
		return emitAll(part.kind, key, expires, textsOf(list), emit)
	}
}

// pastAttempts is what attempts say of an event that the history has in place of the stream, as is_past of weir.lua knows it.
var pastAttempts = regexp.MustCompile(`^\d+:\d+h`)

// opened returns what waits by its own millisecond, as wait of weir.lua keeps it. It follows from the rest, and asking for it would
// hold Redis up half as long again.
func (c *backupCut) opened(platform string) []string {
	k := c.s.keys
	var due []string
	attempts := map[string]string{}
	for _, part := range c.parts {
		list, _ := part.value.Slice() // an error is said where the part is handed on
		switch part.key {
		case k.due(platform):
			due = each(textsOf(list), 0, 2)
		case k.attempts(platform):
			attempts = pairsOf(list)
		}
	}
	items := make([]string, 0, 2*len(due))
	for _, id := range due {
		ms, _, _ := strings.Cut(id, "-")
		if !pastAttempts.MatchString(attempts[id]) {
			items = append(items, id, ms)
		}
	}
	return items
}

// textsOf returns a flat reply's texts.
func textsOf(list []any) []string {
	texts := make([]string, len(list))
	for i, one := range list {
		switch value := one.(type) {
		case string:
			texts[i] = value
		case int64:
			texts[i] = strconv.FormatInt(value, 10)
		}
	}
	return texts
}

// pairsOf returns a flat reply of names and values as a map. What is nil is "".
func pairsOf(list []any) map[string]string {
	pairs := make(map[string]string, len(list)/2)
	texts := textsOf(list)
	for i := 0; i+1 < len(texts); i += 2 {
		pairs[texts[i]] = texts[i+1]
	}
	return pairs
}

// itemsOf returns a stream's entries as the items of a piece. Of one that has more than one field, which only somebody else can
// have written, there is the first.
func itemsOf(list []any) []string {
	items := make([]string, 0, 3*len(list))
	for _, one := range list {
		entry, _ := one.([]any)
		if len(entry) != 2 {
			continue
		}
		id, _ := entry[0].(string)
		fields, _ := entry[1].([]any)
		if texts := textsOf(fields); len(texts) >= 2 {
			items = append(items, id, texts[0], texts[1])
		}
	}
	return items
}
