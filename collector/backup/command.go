package backup

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// The ways in which a command ends.
const (
	succeeded = 0
	failed    = 1
	misused   = 2
)

const backupUsage = `Usage: %s --redis-url-file FILE --property NAMESPACE/NAME --to FILE [flags]

Writes all that Redis has of a Property into one file, as of one moment, while collecting and delivering go on.
Erasures wait until it is done. FILE is a file that is not there yet, - for the standard output, or s3://BUCKET/PREFIX/,
below which NAMESPACE/NAME/TIME.weir is written; several Properties, or with --all all of them, go there.

`

const restoreUsage = `Usage: %s --redis-url-file FILE --property NAMESPACE/NAME FILE [flags]

Puts a Property's backup into a Redis that has no events of it: at best before the Property is applied.
FILE is a file, - for the standard input, or s3://BUCKET/KEY. Broken off it goes on where it was when it is run again.

`

// Environment is what a command uses of its surroundings.
type Environment struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv returns a variable of the environment.
	Getenv func(string) string
	// Version is the program's.
	Version string
	// Patience is for how long a Redis is tried that cannot be reached; without it is tried once. A pod that has just been made may
	// not be let through to it yet: whoever enforces network policies learns its address only now.
	Patience time.Duration
}

// connection is which Redis, and which bucket.
type connection struct {
	url, urlFile string
	tls          stream.TLSFiles
	bucket       bucketFlags
}

func (c *connection) add(set *flag.FlagSet) {
	set.StringVar(&c.urlFile, "redis-url-file", "", "`FILE` with the URL of Redis, with a user that may do everything: the operator's")
	set.StringVar(&c.url, "redis-url", "", "this `URL` itself; it is seen by whoever lists processes, so rather set WEIR_REDIS_URL, or use a file")
	set.StringVar(&c.tls.CA, "redis-ca-file", "", "`FILE` with the authorities that Redis's certificate is from; default: those of the system")
	set.StringVar(&c.tls.Certificate, "redis-client-cert-file", "", "`FILE` with the certificate to show to Redis")
	set.StringVar(&c.tls.Key, "redis-client-key-file", "", "`FILE` with its key")
	c.bucket.add(set)
}

// dial makes a client.
func (c *connection) dial(getenv func(string) string) (*stream.Client, error) {
	address := c.url
	if c.urlFile != "" {
		content, err := os.ReadFile(c.urlFile)
		if err != nil {
			return nil, err
		}
		address = strings.TrimSpace(string(content))
	}
	if address == "" {
		address = getenv("WEIR_REDIS_URL")
	}
	if address == "" {
		return nil, errors.New("--redis-url-file: say where Redis is")
	}
	identity, err := c.tls.Read()
	if err != nil {
		return nil, err
	}
	return stream.Dial(address, stream.DialOptions{TLS: identity})
}

// parse reads a command line. Where it returns false, it has said why, and code is the exit code.
func parse(set *flag.FlagSet, usage string, args []string, e *Environment) (ok bool, code int) {
	set.SetOutput(io.Discard)
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(e.Stdout, usage, set.Name())
		set.SetOutput(e.Stdout)
		set.PrintDefaults()
		return false, succeeded
	case err != nil:
		fmt.Fprintf(e.Stderr, "%s: %v; \"%s -h\" lists the flags\n", set.Name(), err, set.Name())
		return false, misused
	}
	return true, 0
}

// backing is one call of the backup.
type backing struct {
	name string
	connection
	properties  []string
	to          string
	all, resume bool
	Environment
}

// Command is the backup as a command for people and for a CronJob. It returns the exit code: 0, 1 for what went wrong, 2 for what
// was asked wrongly.
func Command(ctx context.Context, name string, args []string, e Environment) int {
	c := &backing{name: name, Environment: e}
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	c.add(set)
	set.Func("property", "the Property, as `NAMESPACE/NAME`; may be given several times", func(text string) error {
		c.properties = append(c.properties, text)
		return nil
	})
	set.BoolVar(&c.all, "all", false, "all Properties that Redis has events of")
	set.StringVar(&c.to, "to", "", "where the backup is written: a `FILE`, - or s3://BUCKET/PREFIX/")
	set.BoolVar(&c.resume, "resume", false, "go on with FILE.partial, which a backup that was broken off has left; of the same moment as that")
	if ok, code := parse(set, backupUsage, args, &e); !ok {
		return code
	}
	if problems := c.check(set.Args()); len(problems) > 0 {
		for _, problem := range problems {
			fmt.Fprintf(e.Stderr, "%s: %s\n", name, problem)
		}
		return misused
	}
	client, err := c.dial(e.Getenv)
	if err != nil {
		fmt.Fprintf(e.Stderr, "%s: %v\n", name, err)
		return misused
	}
	defer client.Close()
	if err := c.reach(ctx, client, name); err != nil {
		fmt.Fprintf(e.Stderr, "%s: %v\n", name, err)
		return failed
	}
	return c.run(ctx, client)
}

func (c *backing) check(rest []string) (problems []string) {
	if len(rest) > 0 {
		problems = append(problems, fmt.Sprintf("%q is no flag", rest[0]))
	}
	inBucket := isBucket(c.to)
	switch {
	case c.to == "":
		problems = append(problems, "--to: say where the backup is written")
	case c.resume && (inBucket || c.to == "-"):
		problems = append(problems, "--resume: is for files alone; a bucket hands out no part of an upload that is not whole, so run it again without")
	case !inBucket && (c.all || len(c.properties) > 1):
		problems = append(problems, "--to: several Properties go to s3://BUCKET/PREFIX/ alone")
	}
	if c.all == (len(c.properties) > 0) {
		problems = append(problems, "--property: name a Property, or give --all")
	}
	for _, property := range c.properties {
		if !stream.IsProperty(property) {
			problems = append(problems, badProperty)
		}
	}
	if inBucket {
		problems = append(problems, c.bucket.check(c.to)...)
	}
	return problems
}

// run backs up one Property after the other. What goes wrong with one does not keep it from the next.
func (c *backing) run(ctx context.Context, client *stream.Client) int {
	if c.all {
		var err error
		if c.properties, err = client.Properties(ctx); err != nil {
			fmt.Fprintf(c.Stderr, "%s: %v\n", c.name, err)
			return failed
		}
	}
	code := succeeded
	for _, property := range c.properties {
		report, err := c.one(ctx, client, property)
		if err != nil {
			fmt.Fprintf(c.Stderr, "%s: %s: %v\n", c.name, property, said(err))
			code = failed
			continue
		}
		// The standard output may be the backup.
		fmt.Fprintf(c.Stderr, "%s: backed up %v\n", c.name, report)
	}
	return code
}

func (c *backing) one(ctx context.Context, client *stream.Client, property string) (Report, error) {
	namespace, name, _ := strings.Cut(property, "/")
	j := &job{stream: client.Stream(namespace, name), version: c.Version, said: c.progress(), now: time.Now}
	if isBucket(c.to) {
		to, err := c.bucket.target(c.to, property, time.Now(), c.Getenv, func(err error) {
			fmt.Fprintf(c.Stderr, "%s: %s: %v\n", c.name, property, err)
		})
		if err != nil {
			return Report{}, err
		}
		j.to = to
		return j.run(ctx)
	}
	if c.to == "-" {
		j.to = &pipe{to: c.Stdout}
		return j.run(ctx)
	}
	to := &file{path: c.to}
	j.to = to
	if c.resume {
		w, progress, events, begun, err := to.resume(property)
		if err != nil {
			return Report{}, errors.Join(err, to.close())
		}
		if begun {
			report, err := j.write(ctx, w, progress, events)
			if !errors.Is(err, stream.ErrErased) {
				return report, errors.Join(err, to.close())
			}
		}
	}
	return j.run(ctx)
}

const badProperty = "--property: must be NAMESPACE/NAME, such as shops/shop"

// progressInterval is how often it is said how far it is.
const progressInterval = 5 * time.Second

// progress returns what says every now and then how far it is.
func (e *Environment) progress() func(Report) {
	last := time.Now()
	return func(r Report) {
		if time.Since(last) < progressInterval {
			return
		}
		last = time.Now()
		fmt.Fprintf(e.Stderr, "%s: %d events, %d MiB\n", r.Property, r.Events, r.Bytes>>20)
	}
}

// said is an error in words for people.
func said(err error) error {
	if errors.Is(err, errTaken) {
		return fmt.Errorf("%w; %w: run it again", stream.ErrErased, errTaken)
	}
	return err
}
