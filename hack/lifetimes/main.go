// Command lifetimes says which version of its interface each platform type speaks, when that ends and whether the type is beta.
// It fails where a version ends within 90 days: who installs a release that speaks it would have less than that to install the
// next. hack/release-check.sh runs it.
//
//	go run ./hack/lifetimes
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/weir-dev/weir/collector/platforms"
)

// shortest is how long the versions that a release speaks have to go on for.
const shortest = 90 * 24 * time.Hour

func main() {
	if err := write(os.Stdout, spoken(), time.Now()); err != nil {
		fmt.Fprintf(os.Stderr, "lifetimes: %v\n", err)
		os.Exit(1)
	}
}

// row is what there is to say of a type.
type row struct {
	kind    platforms.Type
	version platforms.Version
	beta    bool
}

// spoken are the rows of the types whose interfaces have versions, and of those that are beta.
func spoken() []row {
	var rows []row
	for _, kind := range platforms.Types() {
		traits, _ := kind.Traits()
		if r := (row{kind, kind.Version(""), traits.Proof.Beta()}); r.version.Name != "" || r.beta {
			rows = append(rows, r)
		}
	}
	return rows
}

// write writes a line for each row. It fails where a version ends too soon after now, with each of these.
func write(out io.Writer, rows []row, now time.Time) error {
	var errs []error
	for _, r := range rows {
		line := string(r.kind)
		switch version := r.version; {
		case version.Name == "":
			line += ": no version"
		case version.Ends.IsZero():
			line += " " + version.Name + ": no end announced"
		default:
			line += fmt.Sprintf(" %s: ends on %s", version.Name, version.Ends.Format(time.DateOnly))
			if left := version.Ends.Sub(now); left <= shortest {
				errs = append(errs, fmt.Errorf("%s ends version %s of its interface on %s, in %d days; a release has to speak one that goes on for more than %d",
					r.kind, version.Name, version.Ends.Format(time.DateOnly), int(left.Hours()/24), int(shortest.Hours()/24)))
			}
		}
		if r.beta {
			line += "; beta"
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}
