package server

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// connections bounds how many connections are open. A connection is unauthenticated until a request on it has shown a
// valid key or token. Where there is no room for a further one, the oldest unauthenticated one is closed, or else the
// authenticated one that has been idle for longest; where all of these have a request under way, the further one waits.
// So whoever only connects, sends a header byte by byte or guesses keys keeps nobody out.
type connections struct {
	net.Listener
	limit int
	// perAddress is how many unauthenticated connections one address may have; a further one takes the place of its oldest.
	perAddress int

	mu   sync.Mutex
	room sync.Cond
	open int
	// unauthenticated and idle hold *connection, the oldest first. by has the unauthenticated of each address, likewise.
	unauthenticated, idle list.List
	by                    map[netip.Addr]*list.List
	closed                bool
}

// connection is an open one. Its listener's mu guards what it holds.
type connection struct {
	net.Conn
	of      *connections
	address netip.Addr
	// place is where it stands among the unauthenticated or the idle, nil while a request is under way; peer is where it
	// stands among the unauthenticated of its address.
	place, peer         *list.Element
	authenticated, gone bool
}

func limitConnections(listener net.Listener, limit, perAddress int) *connections {
	l := &connections{Listener: listener, limit: limit, perAddress: perAddress, by: map[netip.Addr]*list.List{}}
	l.room.L = &l.mu
	return l
}

// Accept waits for the next connection and for room for it.
func (l *connections) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: accepted, of: l, address: Network(peerOf(accepted.RemoteAddr().String()))}
	for _, spared := range l.admit(c) {
		_ = spared.Conn.Close() // it is of no use to anybody any more
	}
	if c.gone {
		_ = accepted.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

// admit makes room for a connection, takes it in and returns those that have to be closed for it.
func (l *connections) admit(c *connection) (spared []*connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if peers := l.by[c.address]; peers != nil && peers.Len() >= l.perAddress {
		spared = append(spared, l.remove(peers.Front()))
	}
	for l.open >= l.limit && !l.closed {
		switch {
		case l.unauthenticated.Len() > 0:
			spared = append(spared, l.remove(l.unauthenticated.Front()))
		case l.idle.Len() > 0:
			spared = append(spared, l.remove(l.idle.Front()))
		default:
			l.room.Wait()
		}
	}
	if l.closed {
		c.gone = true
		return spared
	}
	l.open++
	c.place = l.unauthenticated.PushBack(c)
	if l.by[c.address] == nil {
		l.by[c.address] = list.New()
	}
	c.peer = l.by[c.address].PushBack(c)
	return spared
}

// remove counts out the connection at an element.
func (l *connections) remove(e *list.Element) *connection {
	c := e.Value.(*connection)
	l.leave(c)
	return c
}

// leave counts a connection out once.
func (l *connections) leave(c *connection) {
	if c.gone {
		return
	}
	c.gone = true
	l.open--
	l.withdraw(c)
	l.room.Signal()
}

// withdraw takes a connection out of the lists.
func (l *connections) withdraw(c *connection) {
	if c.peer != nil {
		peers := l.by[c.address]
		peers.Remove(c.peer)
		if peers.Len() == 0 {
			delete(l.by, c.address)
		}
		l.unauthenticated.Remove(c.place)
	} else if c.place != nil {
		l.idle.Remove(c.place)
	}
	c.place, c.peer = nil, nil
}

// Close ends the wait for room as well.
func (l *connections) Close() error {
	l.mu.Lock()
	l.closed = true
	l.room.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// Close closes the connection and makes room for another.
func (c *connection) Close() error {
	c.of.mu.Lock()
	c.of.leave(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// changed is told by net/http that a connection has got into another state.
func (l *connections) changed(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*connection)
	if !ok || state != http.StateIdle {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.authenticated && !c.gone && c.place == nil {
		c.place = l.idle.PushBack(c)
		l.room.Signal()
	}
}

// connectionKey is the key under which a request's context holds its *connection.
type connectionKey struct{}

// within lets requests find the connection that they come by.
func (l *connections) within(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// busy keeps a connection from being closed as idle while a request is under way.
func (l *connections) busy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
			l.mu.Lock()
			if c.authenticated {
				l.withdraw(c)
			}
			l.mu.Unlock()
		}
		next.ServeHTTP(w, r)
	})
}

// Authenticated notes that a request's caller has shown a valid key or token. Its connection is kept from then on in
// favour of those on which nobody has. Outside of [Run] it does nothing.
func Authenticated(r *http.Request) {
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if !c.authenticated {
		c.of.withdraw(c)
		c.authenticated = true
	}
}

// Refuse asks for the connection to be closed once a request has been answered that showed no valid key or token: whoever
// guesses has to connect anew for each guess. It is called before the answer.
func Refuse(w http.ResponseWriter) { w.Header().Set("Connection", "close") }
