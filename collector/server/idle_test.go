package server

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWhereAllHaveAuthenticatedTheOneIdleForLongestIsClosed tells of the connections' states itself: net/http tells of
// them after the answer, so a client cannot know in which order.
func TestWhereAllHaveAuthenticatedTheOneIdleForLongestIsClosed(t *testing.T) {
	l := limitConnections(nil, 2, 2)
	names := map[*connection]string{}
	connect := func(name string) (spared []string) {
		inner, peer := net.Pipe()
		t.Cleanup(func() { _, _ = inner.Close(), peer.Close() })
		c := &connection{Conn: inner, of: l, address: peerOf("127.0.0.1:1")}
		names[c] = name
		for _, closed := range l.admit(c) {
			spared = append(spared, names[closed])
		}
		return spared
	}
	serve := func(name string, during func()) {
		for c := range names {
			if names[c] != name {
				continue
			}
			r, err := http.NewRequestWithContext(l.within(context.Background(), c), http.MethodGet, "/", nil)
			if err != nil {
				t.Fatal(err)
			}
			l.busy(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				Authenticated(r)
				during()
			})).ServeHTTP(nil, r)
			l.changed(c, http.StateIdle)
		}
	}
	nothing := func() {}

	connect("first")
	serve("first", nothing)
	connect("second")
	serve("second", nothing)
	serve("first", nothing)
	if diff := cmp.Diff([]string{"second"}, connect("third")); diff != "" {
		t.Errorf("closed, where the first was busy after the second (-want +got):\n%s", diff)
	}
	serve("third", nothing)
	serve("first", func() {
		if diff := cmp.Diff([]string{"third"}, connect("fourth")); diff != "" {
			t.Errorf("closed, where the first is busy (-want +got):\n%s", diff)
		}
	})
}
