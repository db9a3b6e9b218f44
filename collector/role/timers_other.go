//go:build !linux

package role

// RelaxTimers does nothing: other systems know no timer slack.
func RelaxTimers() error { return nil }
