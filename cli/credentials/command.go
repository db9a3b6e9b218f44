// Package credentials is `weir token create` and `weir key create`: it makes an access token or an API key, and in the cluster the
// object by which a Property's pods recognise it. The cluster only ever sees the hash.
package credentials

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/cluster"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/collector/auth"
)

// kind is what a command makes.
type kind struct {
	// word is the command's, object the kind of the object, what is what people call it.
	word, object, what string
	resource           string
	generate           func() string
	scoped             bool
}

func kinds() []kind {
	return []kind{
		{word: "token", object: v1alpha1.AccessTokenKind, what: "access token", resource: "accesstokens", generate: auth.NewAccessToken, scoped: true},
		{word: "key", object: v1alpha1.APIKeyKind, what: "API key", resource: "apikeys", generate: auth.NewAPIKey},
	}
}

// request is what is asked for.
type request struct {
	kind
	name string
	// namespace is where the Property is, once the cluster has been found.
	namespace, property string
	scope               v1alpha1.AccessTokenScope
	expires             *time.Time
	cluster.Flags
	wait time.Duration
}

// scopes of access tokens, narrowest first.
var scopes = []string{string(auth.ScopeRead), string(auth.ScopeWrite), string(auth.ScopeAdmin)}

// Command is `weir token …` or `weir key …`, by the word; program is what people have called the command by. The key or token is all that it writes to stdout. It returns [flag.ErrHelp]
// where help was asked for, and [flags.Errors] with what was asked wrongly.
func Command(ctx context.Context, program, word string, args []string, stdout, stderr io.Writer) error {
	all := kinds()
	made := all[slices.IndexFunc(all, func(k kind) bool { return k.word == word })]
	if len(args) > 0 && strings.HasPrefix(args[0], "-") && strings.Trim(args[0], "-") == "help" || len(args) > 0 && args[0] == "-h" {
		fmt.Fprint(stdout, usageOf(program, made))
		return flag.ErrHelp
	}
	if len(args) == 0 || args[0] != "create" {
		return flags.Errors{fmt.Sprintf("%s %s: the command is create, as in %[1]s %[2]s create NAME --property PROPERTY", program, word)}
	}
	asked, err := parse(program, made, args[1:], stdout, time.Now())
	if err != nil {
		return err
	}
	return create(ctx, asked, stdout, stderr)
}

func usageOf(program string, k kind) string {
	return fmt.Sprintf(`Usage: %s %s create NAME --property PROPERTY [flags]

Makes an %s for a Property, and in the cluster the %s NAME with its hash. It is printed once, and nowhere else.
To revoke it: kubectl delete %s NAME

`, program, k.word, k.what, k.object, strings.ToLower(k.object))
}

// parse reads the command line. NAME may stand anywhere.
func parse(program string, k kind, args []string, output io.Writer, now time.Time) (request, error) {
	asked := request{kind: k}
	var scope string
	var expires *string
	set := flags.NewSet(program + " " + k.word + " create")
	asked.Add(set)
	set.StringVar(&asked.property, "property", "", "`NAME` of the Property")
	if k.scoped {
		set.StringVar(&scope, "scope", scopes[0], "`SCOPE` of the token: read for every query, write also to replay deliveries, admin for everything")
	}
	set.Func("expires", "when it stops working: a `TIME` from now as in 720h or 30d, a day as in 2027-01-31, at whose beginning in UTC, or a time as in 2027-01-31T12:00:00Z; default: never",
		func(text string) error { expires = &text; return nil })
	set.DurationVar(&asked.wait, "wait", 30*time.Second, "how long to wait at most until it is in force; 0 for not at all")
	names, err := flags.ParseMixed(set, usageOf(program, k), args, output)
	if err != nil {
		return asked, err
	}
	var errs flags.Errors
	switch len(names) {
	case 0:
		errs.Add("NAME is missing: say what the %s is to be called, as in %s %s create bi --property shop", k.what, program, k.word)
	case 1:
		asked.name = names[0]
	default:
		errs.Add("%s: one name only", strings.Join(names, " "))
	}
	if asked.property == "" {
		errs.Add("--property: must name the Property that the %s is for", k.what)
	}
	if k.scoped && !slices.Contains(scopes, scope) {
		errs.Add("--scope: %q must be %s", scope, strings.Join(scopes[:2], ", ")+" or "+scopes[2])
	}
	asked.scope = v1alpha1.AccessTokenScope(scope)
	if expires != nil { // also where it is empty, as a script's variable may be
		at, err := parseExpiry(*expires, now)
		if err != nil {
			errs.Add("--expires: %v", err)
		}
		asked.expires = &at
	}
	if asked.wait < 0 {
		errs.Add("--wait: %s must not be negative", asked.wait)
	}
	return asked, errs.Err()
}

// parseExpiry reads a duration, in days too, a day or a time, in whole seconds: the cluster keeps no more.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	unfit := fmt.Errorf("%q must be a time from now as in 720h or 30d, a day as in 2027-01-31, or a time as in 2027-01-31T12:00:00Z", text)
	days, inDays := strings.CutSuffix(text, "d")
	n, noNumber := strconv.ParseUint(days, 10, 16)
	after, noDuration := time.ParseDuration(text)
	day, noDay := time.Parse(time.DateOnly, text)
	at, noTime := time.Parse(time.RFC3339, text)
	switch {
	case inDays && noNumber == nil:
		at = now.AddDate(0, 0, int(n))
	case noDuration == nil:
		at = now.Add(after)
	case noDay == nil:
		at = day
	case noTime != nil:
		return at, unfit
	}
	at = at.UTC().Truncate(time.Second)
	if !at.After(now) {
		return at, errors.New(cmp.Or(text, "it") + " is past")
	}
	if at.Year() > 9999 { // which JSON cannot say
		return at, unfit
	}
	return at, nil
}
