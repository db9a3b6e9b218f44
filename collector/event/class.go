package event

// Class says who an event counts for. Only a human's events are in the numbers of the read API and are delivered.
type Class uint8

// The values of a [Class], numbered as in the stream. New ones are appended.
const (
	Human Class = iota
	// Bot is a program that says so by its user agent.
	Bot
	// Internal is somebody whom the Property excludes: its own people and environments.
	Internal
	// Test is an event that its sender marks as one.
	Test

	// Classes is how many there are.
	Classes = int(iota)
)

// String returns the class as the APIs spell it.
func (c Class) String() string { return [...]string{"human", "bot", "internal", "test"}[c] }

// Counts says whether events of the class are in the numbers and are delivered.
func (c Class) Counts() bool { return c == Human }
