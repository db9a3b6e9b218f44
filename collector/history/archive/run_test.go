package archive

import (
	"testing"
)

func TestBothStreamsAreCopied(t *testing.T) {
	s := newShop(t)
	s.append(1234)
	s.deliver(s.positions(0))
	run(t, s.archiver())
	s.settled()
	s.complete(s.positions(0), s.recorded())
	s.append(10)
	s.settled()
	s.complete(s.positions(0), s.recorded())
}
