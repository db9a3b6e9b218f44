package server

import "net"

// unwatchedListener hands out connections that net/http does not watch while a request is served.
type unwatchedListener struct{ net.Listener }

// Accept waits for the next connection.
func (l unwatchedListener) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &unwatchedConnection{Conn: connection}, nil
}

// unwatchedConnection is a connection of which net/http does not learn that its client has left before it writes. For
// that it reads one byte, in a goroutine that it starts when it has read a request's body and interrupts before it
// answers. Waiting there and being interrupted is a twentieth of what taking an event in costs.
type unwatchedConnection struct {
	net.Conn
	// putOff says that the last read was one of one byte and was put off.
	putOff bool
}

// Read puts off a read of one byte: it says that there is nothing at the moment. The watch leaves it at that. A buffer that
// has room for no more than that byte asks again at once.
func (c *unwatchedConnection) Read(p []byte) (int, error) {
	c.putOff = len(p) == 1 && !c.putOff
	if c.putOff {
		return 0, nil
	}
	return c.Conn.Read(p)
}
