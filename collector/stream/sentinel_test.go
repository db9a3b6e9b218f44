package stream

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// saying is what a Sentinel of a test names; "" has it say nothing.
type saying struct {
	names  atomic.Pointer[string]
	asked  atomic.Int64 // how often
	answer chan struct{}
}

// sayings are Sentinels that name addresses, and a client of what they guard that looks every so often.
func sayings(t *testing.T, every time.Duration, names ...string) ([]*saying, *Client) {
	t.Helper()
	all, addresses, ended := make([]*saying, len(names)), make([]string, len(names)), make(chan struct{})
	for i, name := range names {
		s := &saying{answer: make(chan struct{})}
		close(s.answer)
		s.names.Store(&name)
		all[i] = s
		addresses[i] = listen(t, answers(func(string) string {
			s.asked.Add(1)
			name := *s.names.Load()
			if name == "" {
				<-ended
				return ""
			}
			<-s.answer
			host, port, _ := net.SplitHostPort(name)
			return "*2\r\n" + bulk(host, port)
		}))
	}
	t.Cleanup(func() { close(ended) })
	client, err := Dial("redis://"+addresses[0]+"?master_name=shop&addr="+strings.Join(addresses[1:], "&addr="), DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client.sentinels.every = every
	t.Cleanup(func() { client.Close() })
	return all, client
}

// guardedBy returns the address of a Redis, and how many connections it has been made.
func guardedBy(t *testing.T) (address string, made *atomic.Int64) {
	t.Helper()
	made = new(atomic.Int64)
	serve := answers(func(string) string { return "+OK\r\n" })
	return listen(t, func(connection net.Conn) {
		made.Add(1)
		serve(connection)
	}), made
}

func (s *saying) name(address string) { s.names.Store(&address) }

// mustPing makes a connection where there is none.
func mustPing(t *testing.T, client *Client) {
	t.Helper()
	if err := client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// mustLook has the client look once.
func mustLook(t *testing.T, client *Client) {
	t.Helper()
	asked := client.sentinels.dial()
	defer closeAll(asked)
	client.sentinels.look(t.Context(), asked)
}

func TestAStaleSentinelThatIsTheFirstToAnswerLeadsNobody(t *testing.T) {
	before, madeBefore := guardedBy(t)
	now, made := guardedBy(t)
	all, client := sayings(t, time.Hour, before, now, now)
	late := make(chan struct{})
	all[1].answer, all[2].answer = late, late
	answered := make(chan error, 1)
	go func() { answered <- client.Ping(t.Context()) }()
	eventually(t, "all are asked, and the stale one has answered", func() bool {
		return all[0].asked.Load() > 0 && all[1].asked.Load() > 0 && all[2].asked.Load() > 0
	})
	close(late)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	for range 3 {
		mustLook(t, client)
		mustPing(t, client)
	}
	if madeBefore.Load() != 0 || made.Load() != 1 {
		t.Errorf("%d connections lead to the primary before, and %d to the one that it is, want 0 and 1", madeBefore.Load(), made.Load())
	}
}

func TestConnectionsEndWhenTheAgreedPrimaryChanges(t *testing.T) {
	const silent = ""
	type at struct{ before, now int64 } // connections that were made so far
	type step struct {
		names [3]string
		want  at
	}
	tests := map[string][]step{
		"another is agreed on": {
			{[3]string{"before", "before", "before"}, at{1, 0}},
			{[3]string{"now", "now", "now"}, at{1, 1}},
			{[3]string{"now", "now", "now"}, at{1, 1}},
		},
		"one is ahead of the others": {
			{[3]string{"before", "before", "before"}, at{1, 0}},
			{[3]string{"now", "before", "before"}, at{1, 0}},
			{[3]string{"now", "now", "before"}, at{1, 1}},
			{[3]string{"now", "now", "now"}, at{1, 1}},
		},
		"one is silent": {
			{[3]string{"before", "before", silent}, at{1, 0}},
			{[3]string{"now", "now", silent}, at{1, 1}},
		},
		"no two name the same": {
			{[3]string{"before", "before", "before"}, at{1, 0}},
			{[3]string{"before", "now", "nowhere"}, at{1, 0}},
		},
		"all name a host in another way, and back": {
			{[3]string{"now", "now", "now"}, at{0, 1}},
			{[3]string{"localhost", "now", "now"}, at{0, 1}},
			{[3]string{"localhost", "localhost", "now"}, at{0, 2}}, // once
			{[3]string{"localhost", "localhost", "localhost"}, at{0, 2}},
			{[3]string{"localhost", "localhost", "now"}, at{0, 2}},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			before, madeBefore := guardedBy(t)
			now, made := guardedBy(t)
			_, port, _ := net.SplitHostPort(now)
			addresses := map[string]string{"before": before, "now": now, "localhost": "localhost:" + port, "nowhere": "127.0.0.1:1", silent: silent}
			all, client := sayings(t, time.Hour, "", "", "")
			for i, step := range steps {
				for j, named := range step.names {
					all[j].name(addresses[named])
				}
				mustLook(t, client)
				mustPing(t, client)
				mustLook(t, client)
				mustPing(t, client)
				if got := (at{madeBefore.Load(), made.Load()}); got != step.want {
					t.Errorf("step %d, %v: connections so far %+v, want %+v", i+1, step.names, got, step.want)
				}
			}
		})
	}
}

func TestAConnectionToAPrimaryThatOneSentinelIsAheadWithStays(t *testing.T) {
	before, madeBefore := guardedBy(t)
	now, made := guardedBy(t)
	all, client := sayings(t, time.Hour, before, before, before)
	mustPing(t, client)
	mustLook(t, client)
	for _, s := range all[1:] {
		s.name("")
	}
	all[0].name(now)
	client.sentinels.turning.mu.Lock()
	for connection := range client.sentinels.turning.open {
		connection.Close() // as of a primary that has died
	}
	client.sentinels.turning.mu.Unlock()
	eventually(t, "the one that is left leads to the other", func() bool {
		return client.Ping(t.Context()) == nil && made.Load() == 1
	})
	for _, others := range []string{before, before, now, now} {
		for _, s := range all[1:] {
			s.name(others)
		}
		mustLook(t, client)
		mustPing(t, client)
	}
	if madeBefore.Load() != 1 || made.Load() != 1 {
		t.Errorf("%d connections to the one before and %d to the other, want 1 of each", madeBefore.Load(), made.Load())
	}
}

func TestSentinelsAreCounted(t *testing.T) {
	type said struct {
		after time.Duration
		name  string // "" for an error
	}
	const never = time.Hour
	tests := map[string]struct {
		said   []said
		want   string
		agreed bool
		after  time.Duration
	}{
		"one of one":                              {[]said{{0, "a"}}, "a", true, 0},
		"a majority, one is silent":               {[]said{{10, "a"}, {20, "a"}, {never, ""}}, "a", true, 20},
		"the first is in the minority":            {[]said{{0, "b"}, {10, "a"}, {20, "a"}}, "a", true, 20},
		"one answers, the others are away":        {[]said{{10, "a"}, {20, ""}, {30, ""}}, "a", false, 30},
		"one answers, the others are silent":      {[]said{{10, "a"}, {never, ""}, {never, ""}}, "a", false, agreeWithin},
		"one answers late, the others are silent": {[]said{{2 * agreeWithin, "a"}, {never, ""}, {never, ""}}, "a", false, 2 * agreeWithin},
		"each names another":                      {[]said{{10, "a"}, {20, "b"}, {30, "c"}}, "a", false, 30},
		"two of five, the others name one each":   {[]said{{10, "b"}, {20, "a"}, {30, "c"}, {40, "a"}, {50, "d"}}, "a", false, 50},
		"none answers":                            {[]said{{never, ""}, {never, ""}, {never, ""}}, "", false, connectTimeout},
		"all refuse":                              {[]said{{10, ""}, {20, ""}}, "", false, 20},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), connectTimeout)
				defer cancel()
				begin, answers := time.Now(), make(chan answer[string], len(tt.said))
				for _, said := range tt.said {
					time.AfterFunc(said.after, func() {
						if said.name == "" {
							answers <- answer[string]{"", errNoPrimary}
							return
						}
						answers <- answer[string]{said.name, nil}
					})
				}
				got, agreed, err := count(ctx, answers, len(tt.said), agreeWithin)
				took := time.Since(begin)
				if got != tt.want || agreed != tt.agreed || took != tt.after || (err == nil) != (tt.want != "") {
					t.Errorf("%q, agreed %v, after %s, error %v; want %q, %v, %s", got, agreed, took, err, tt.want, tt.agreed, tt.after)
				}
			})
		})
	}
}

// TestCloseWaitsForNoSentinel closes a client while it looks.
func TestCloseWaitsForNoSentinel(t *testing.T) {
	address, _ := guardedBy(t)
	all, client := sayings(t, time.Millisecond, address, address, address)
	mustPing(t, client)
	var before [3]int64
	for i, s := range all {
		s.name("")
		before[i] = s.asked.Load()
	}
	eventually(t, "each is asked what it does not answer", func() bool {
		return all[0].asked.Load() > before[0] && all[1].asked.Load() > before[1] && all[2].asked.Load() > before[2]
	})
	begin := time.Now()
	client.Close()
	if took := time.Since(begin); took > lookEvery/2 {
		t.Errorf("closing took %s", took)
	}
	if err := client.Ping(t.Context()); err == nil {
		t.Error("a closed client reaches what it is not connected to")
	}
}
