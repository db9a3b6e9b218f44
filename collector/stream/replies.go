package stream

import (
	"bytes"
	"errors"
	"math"
	"net"
	"strconv"
)

// ErrReply says that a server answers with something else than Redis would, or with more than is taken.
var ErrReply = errors.New("what answers is no Redis, or answers with more than is taken")

const (
	// mostReply is what a reply may cost: the longest string that Redis itself has.
	mostReply = 512 << 20
	// mostUntrustedReply holds 1,000 users. The longest that every Redis has, of its commands, is a quarter of it.
	mostUntrustedReply = 1 << 20
	// mostUntrustedString is the longest string in it, for which there has to be room as soon as it is announced. The longest
	// that the operator reads is the code of the functions, a quarter of it.
	mostUntrustedString = 128 << 10
	// mostNodes is what an untrusted cluster's list of its nodes may cost: 500 of them fit.
	mostNodes = 64 << 10
	// mostLine is the longest line: an error's text, for numbers are shorter.
	mostLine = 16 << 10
	// mostNesting is how deep lists lie in lists.
	mostNesting = 16
	// elementCost is what the Redis library spends on an element of a list before it has seen it.
	elementCost = 16
)

// replies is a connection that believes the server no length. The Redis library makes room for as much as a server
// announces, ends the process where that cannot be, and calls itself for each list within a list; so what arrives is
// looked at before it: RESP 2 and nothing else, in which each reply costs no more than a limit. A reply that does
// ends the connection.
type replies struct {
	net.Conn
	// limit is what one reply may cost: its bytes, and for each element of its lists elementCost. No string may be longer
	// than longest.
	limit, longest int64
	// untrusted has lists of nodes bounded by themselves: the library makes a client of every one.
	untrusted bool

	// left is what the reply under way may still cost.
	left int64
	// payload is how much of a string, with the end of its line, is still to come.
	payload int64
	// kind is the first byte of the line under way, 0 before it; length is that of the line so far, and number holds what
	// follows the first byte where that is a number. ended says that the line's last byte was a carriage return.
	kind   byte
	length int
	number []byte
	ended  bool
	// pending are the elements that the lists around still want, the innermost last.
	pending []int64
}

func newReplies(connection net.Conn, untrusted bool) *replies {
	r := &replies{
		Conn: connection, untrusted: untrusted, limit: mostReply, longest: mostReply,
		number: make([]byte, 0, 24), pending: make([]int64, 0, mostNesting),
	}
	if untrusted {
		r.limit, r.longest = mostUntrustedReply, mostUntrustedString
	}
	r.left = r.limit
	return r
}

// Read implements [net.Conn].
func (r *replies) Read(buffer []byte) (int, error) {
	n, err := r.Conn.Read(buffer)
	if !r.take(buffer[:n]) {
		r.Close()
		return 0, ErrReply
	}
	return n, err
}

// askForNodes is how the library asks a cluster for its nodes.
var askForNodes = []byte("*2\r\n$7\r\ncluster\r\n$5\r\nslots\r\n")

// Write implements [net.Conn].
func (r *replies) Write(buffer []byte) (int, error) {
	if r.untrusted && bytes.Equal(buffer, askForNodes) {
		r.left = min(r.left, mostNodes)
	}
	return r.Conn.Write(buffer)
}

// take goes through the next bytes; false ends the connection.
func (r *replies) take(b []byte) bool {
	for len(b) > 0 {
		var n int
		if r.payload > 0 {
			n = int(min(r.payload, int64(len(b))))
			if r.payload -= int64(n); r.payload == 0 {
				r.value()
			}
		} else {
			var ok bool
			if n, ok = r.takeLine(b); !ok {
				return false
			}
		}
		b = b[n:]
	}
	return true
}

// takeLine takes bytes up to the end of a line, or as many as there are, and returns how many.
func (r *replies) takeLine(b []byte) (int, bool) {
	rest := b
	if r.kind == 0 {
		r.kind, rest = b[0], b[1:]
		r.left--
	}
	end := bytes.IndexByte(rest, '\n')
	part := rest
	if end >= 0 {
		part = rest[:end]
	}
	r.length += len(part)
	r.left -= int64(len(part))
	if r.length > mostLine || r.left < 0 || !r.text(part) {
		return 0, false
	}
	if end < 0 {
		return len(b), true
	}
	if !r.ended || !r.line() {
		return 0, false
	}
	r.kind, r.length, r.number, r.ended = 0, 0, r.number[:0], false
	return len(b) - len(rest) + end + 1, true
}

// text takes what follows the first byte of a line. A carriage return stands at the line's end alone.
func (r *replies) text(part []byte) bool {
	switch {
	case len(part) == 0:
		return true
	case r.ended:
		return false
	}
	if i := bytes.IndexByte(part, '\r'); i >= 0 {
		if i != len(part)-1 {
			return false
		}
		r.ended, part = true, part[:i]
	}
	switch r.kind {
	case '+', '-':
		return true
	case ':', '$', '*':
		r.number = append(r.number, part[:min(len(part), cap(r.number)-len(r.number))]...)
		return len(r.number) < cap(r.number)
	default:
		return false
	}
}

// line takes what a whole line says.
func (r *replies) line() bool {
	if r.kind == '+' || r.kind == '-' {
		r.value()
		return true
	}
	n, err := strconv.ParseInt(string(r.number), 10, 64)
	switch {
	case err != nil:
		return false
	case r.kind == ':', n == -1:
		r.value()
	case n < 0:
		return false
	case r.kind == '$':
		if n > min(r.left, r.longest) {
			return false
		}
		r.left -= n
		r.payload = n + 2
	case n == 0:
		r.value()
	case len(r.pending) == mostNesting || n > math.MaxInt32 || n*elementCost > r.left:
		return false
	default:
		r.left -= n * elementCost
		r.pending = append(r.pending, n)
	}
	return true
}

// value is told of each value that is complete.
func (r *replies) value() {
	for len(r.pending) > 0 {
		innermost := &r.pending[len(r.pending)-1]
		if *innermost--; *innermost > 0 {
			return
		}
		r.pending = r.pending[:len(r.pending)-1]
	}
	r.left = r.limit
}
