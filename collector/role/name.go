package role

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Name is one of the four roles that a process can serve.
type Name string

// The roles.
const (
	// Collect takes events in and appends them to the stream.
	Collect Name = "collect"
	// Deliver hands the stream's events to the platforms.
	Deliver Name = "deliver"
	// Query answers queries about the stream.
	Query Name = "query"
	// Archive copies the streams into the history.
	Archive Name = "archive"
)

var names = []Name{Collect, Deliver, Query, Archive}

// Parse reads role names with commas between them.
func Parse(list string) ([]Name, error) {
	var roles []Name
	for part := range strings.SplitSeq(list, ",") {
		name := Name(strings.TrimSpace(part))
		switch {
		case name == "":
			return nil, errors.New("a role is missing; the roles are collect, deliver, query and archive")
		case !slices.Contains(names, name):
			return nil, fmt.Errorf("%q is no role; the roles are collect, deliver, query and archive", name)
		case slices.Contains(roles, name):
			return nil, fmt.Errorf("%s is named twice", name)
		}
		roles = append(roles, name)
	}
	return roles, nil
}
