package controllers

import (
	"errors"
	"testing"
	"time"
)

// TestCertificatesAreReadAgainLaterEachTimeThatFails has attempts end one after the other, each when it is due.
func TestCertificatesAreReadAgainLaterEachTimeThatFails(t *testing.T) {
	denied, away := errors.New("denied"), errors.New("away")
	now, state := certificateStart, reloading{}
	for i, step := range []struct {
		err  error
		tell bool
		wait time.Duration
	}{
		{denied, true, time.Minute}, {denied, false, 2 * time.Minute}, {away, true, 4 * time.Minute}, {away, false, 8 * time.Minute},
		{away, false, 16 * time.Minute}, {away, false, 32 * time.Minute}, {away, false, time.Hour}, {away, false, time.Hour},
		{nil, false, time.Hour}, {away, true, time.Minute},
	} {
		if tell := state.after(step.err, now); tell != step.tell {
			t.Errorf("after attempt %d something is told: %t, want %t", i, tell, step.tell)
		}
		if wait := state.next.Sub(now); wait != step.wait {
			t.Errorf("after attempt %d it waits for %s, want %s", i, wait, step.wait)
		}
		now = state.next
	}
}
