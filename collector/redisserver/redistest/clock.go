package redistest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Clock is what the functions of Weir's library take for Redis's clock. Redis's own goes on: what Redis itself expires, and
// what it is told to date by "*", goes by that.
type Clock struct {
	t      testing.TB
	client *redis.Client
}

// The one place where the library asks for the time, and what a test has there.
const (
	asked  = "local t = redis.call('TIME')\n  return t[1] * 1000000 + t[2]"
	turned = `local t = redis.call('TIME')
  local kind, µs = string.match(redis.call('GET', 'turned') or '+0', '^([+=])(-?%d+)$')
  return kind == '=' and tonumber(µs) or t[1] * 1000000 + t[2] + µs`
)

// TurnClock makes the clock of a server that has the library one that can be turned. It goes right at first.
func TurnClock(t testing.TB, address string) *Clock {
	t.Helper()
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	loaded, err := client.FunctionList(t.Context(), redis.FunctionListQuery{LibraryNamePattern: "weir", WithCode: true}).Result()
	if err != nil || len(loaded) != 1 {
		t.Fatalf("the server has %d libraries: %v", len(loaded), err)
	}
	code := loaded[0].Code
	if strings.Count(code, asked) != 1 || strings.Count(code, "'TIME'") != 1 {
		t.Fatal("the library asks for the time elsewhere")
	}
	code = strings.Replace(code, asked, strings.ReplaceAll(turned, "µs", "us"), 1)
	if err := client.FunctionLoadReplace(t.Context(), code).Err(); err != nil {
		t.Fatal(err)
	}
	return &Clock{t, client}
}

// Ahead puts the clock ahead of the real one, or behind it.
func (c *Clock) Ahead(by time.Duration) { c.turn("+" + strconv.FormatInt(by.Microseconds(), 10)) }

// Stop has the clock stand still at a time.
func (c *Clock) Stop(at time.Time) { c.turn("=" + strconv.FormatInt(at.UnixMicro(), 10)) }

func (c *Clock) turn(to string) {
	c.t.Helper()
	if err := c.client.Set(context.Background(), "turned", to, 0).Err(); err != nil {
		c.t.Fatal(err)
	}
}
