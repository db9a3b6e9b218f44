package iab

import "errors"

// USPrivacy is what a US Privacy string says, which the Global Privacy Platform has replaced.
type USPrivacy struct {
	// Version is 1.
	Version int
	// Notice says whether the user was told of the right to opt out of the sale of their data.
	Notice Answer
	// OptOutSale says whether the user did so: [OptedOut] or [DidNotOptOut].
	OptOutSale Answer
	// LSPACovered says whether the publisher is a signatory of IAB's Limited Service Provider Agreement, and it applies.
	LSPACovered Answer
}

// ParseUSPrivacy reads a string such as 1YNN: the version, and Y, N or - for the user having been told, having opted out of sale,
// and the agreement that applies. The error never repeats the string.
func ParseUSPrivacy(text string) (USPrivacy, error) {
	var p USPrivacy
	fields := []*Answer{&p.Notice, &p.OptOutSale, &p.LSPACovered}
	if len(text) != 1+len(fields) || text[0] != '1' {
		return USPrivacy{}, errUSPrivacy
	}
	p.Version = 1
	for i, field := range fields {
		switch text[1+i] {
		case 'Y':
			*field = Yes
		case 'N':
			*field = No
		case '-':
			*field = NotApplicable
		default:
			return USPrivacy{}, errUSPrivacy
		}
	}
	return p, nil
}

var errUSPrivacy = errors.New("US Privacy string: it must be 1 and three of Y, N and -")
