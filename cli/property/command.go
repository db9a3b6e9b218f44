// Package property is the commands of weir, and of kubectl weir, about one Property in a cluster: how it stands, its events and what was
// refused, delivering again, exports and imports.
package property

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/cli/cluster"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/cli/readapi"
	"github.com/weir-dev/weir/cli/terminal"
	"github.com/weir-dev/weir/collector/auth"
)

// Environment is what a command has around it.
type Environment struct {
	// Program is what people have called it by: weir, or kubectl weir.
	Program        string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Terminal says that stdout is one, Asks that stdin is.
	Terminal, Asks bool
	Getenv         func(string) string
	Now            func() time.Time
	// Forward is the way to a pod.
	Forward readapi.Forward
	// Version is the command's own.
	Version string
}

// Command is one of them.
type Command struct {
	// Word is what it is called, Arguments what follows in usage texts, Summary what it does, in some words.
	Word, Arguments, Summary string
	run                      func(context.Context, *call) error
}

// Commands are all of them, in the order in which people are told of them.
func Commands() []Command {
	return []Command{
		{"status", "[PROPERTY]", "how a Property stands, or all of a namespace", status},
		{"doctor", "PROPERTY", "look for what is wrong, from where the pods are", examine},
		{"events", "PROPERTY", "the newest events, and what became of their deliveries", events},
		{"tail", "PROPERTY", "events as they come in", tail},
		{"rejections", "PROPERTY", "what was refused, and why", rejections},
		{"replay", "PROPERTY --platform P --from DAY", "deliver again what failed or expired", replay},
		{"export", "PROPERTY", "all events of a period, as NDJSON or CSV", export},
		{"import-job", "PROPERTY --claim CLAIM", "make a Job that imports the files of a volume into the history", importJob},
	}
}

// Find returns the command of a word.
func Find(word string) (Command, bool) {
	all := Commands()
	i := slices.IndexFunc(all, func(c Command) bool { return c.Word == word })
	if i < 0 {
		return Command{}, false
	}
	return all[i], true
}

// Run runs it. It returns [flag.ErrHelp] where help was asked for, and [flags.Errors] with what was asked wrongly.
func (c Command) Run(ctx context.Context, around Environment, args []string) error {
	call := &call{Environment: around, command: c, args: args, set: flags.NewSet(around.Program + " " + c.Word)}
	call.cluster.Add(call.set)
	return c.run(ctx, call)
}

// call is a command that is being run.
type call struct {
	Environment
	command Command
	args    []string
	set     *flag.FlagSet
	cluster cluster.Flags
	api     readapi.Flags
	// output is the form in which people or programs read the answer.
	output string
	// name is the Property's.
	name string
	errs flags.Errors
	// reached is the cluster, once it has been.
	reached *cluster.Cluster
}

// The forms of answers.
const (
	outputText = ""
	outputJSON = "json"
)

// addOutput adds the flag of the answer's form.
func (c *call) addOutput() {
	c.set.StringVar(&c.output, "output", "", "`FORMAT` of the answer: json; default: text for people")
	c.set.StringVar(&c.output, "o", "", "`FORMAT`, as --output")
}

// parse reads the command line, whose one argument is the Property's name. about is what the usage says of the command.
func (c *call) parse(about string, nameRequired bool) error {
	usage := fmt.Sprintf("Usage: %s %s %s [flags]\n\n%s\n\n", c.Program, c.command.Word, c.command.Arguments, about)
	names, err := flags.ParseMixed(c.set, usage, c.args, c.Stdout)
	if err != nil {
		return err
	}
	switch {
	case len(names) == 1:
		c.name = names[0]
	case len(names) > 1:
		c.errs.Add("%s: one Property only", strings.Join(names, " "))
	case nameRequired:
		c.errs.Add("PROPERTY is missing: say which, as in %s %s shop; kubectl get properties lists them", c.Program, c.command.Word)
	}
	if c.output != outputText && c.output != outputJSON {
		c.errs.Add("--output: %q must be json, or absent", c.output)
	}
	c.api.Check(&c.errs)
	return c.errs.Err()
}

// connect reaches the cluster, once.
func (c *call) connect() (*cluster.Cluster, error) {
	if c.reached == nil {
		reached, err := cluster.Connect(c.cluster, c.Stderr)
		if err != nil {
			return nil, err
		}
		c.reached = reached
	}
	return c.reached, nil
}

// open finds the way to the read API. The caller closes the client by [call.close].
func (c *call) open(ctx context.Context, scope auth.Scope, lasts time.Duration) (*readapi.Client, error) {
	around := readapi.Surroundings{Getenv: c.Getenv, Stderr: c.Stderr, Forward: c.Forward}
	return readapi.Open(ctx, c.api, around, c.connect, readapi.Wish{Property: c.name, Scope: scope, Lasts: lasts})
}

// close gives back what was opened, and adds to err what went wrong with that.
func closing(client *readapi.Client, err *error) {
	if failed := client.Close(); failed != nil {
		*err = errors.Join(*err, failed)
	}
}

// shortly is how long a token lives that is made for a command with one question.
const shortly = 10 * time.Minute

// printJSON writes an answer for programs.
func (c *call) printJSON(value any) error { return terminal.JSON(c.Stdout, value) }

// table begins one for people.
func (c *call) table(indent string, header ...string) *terminal.Table {
	return terminal.NewTable(c.Stdout, indent, header...)
}

// say writes a line for people, in which nothing of others' takes the terminal over.
func (c *call) say(format string, values ...any) {
	fmt.Fprintln(c.Stdout, terminal.Lines(fmt.Sprintf(format, values...)))
}
