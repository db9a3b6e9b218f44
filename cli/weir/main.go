// Command weir is for people, and as kubectl-weir a plugin of kubectl's: `weir status`, `weir events` and others are about a Property in a
// cluster, `weir token` and `weir key` make tokens and keys for one, `weir dev` serves Property files on this machine, without a cluster,
// `weir import` brings the past of other systems into a Property's history, and `weir backup` and `weir restore` move what Redis has of one.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	_ "golang.org/x/crypto/x509roots/fallback" // a machine may have no files with the certificates of authorities
	"golang.org/x/term"

	"github.com/weir-dev/weir/cli/credentials"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/cli/property"
	"github.com/weir-dev/weir/cli/readapi"
	"github.com/weir-dev/weir/collector/backup"
	"github.com/weir-dev/weir/collector/history/imports"
	"github.com/weir-dev/weir/collector/stream"
)

// version is set when the binary is linked by make; `go install` leaves it to the module's version.
var version string

const usageText = `Weir collects a website's events, delivers them to ad and analytics platforms, and answers questions about them.

Usage:
%s
"PROGRAM COMMAND -h" lists a command's flags. In a cluster, Properties are served by weir-operator.
`

// command is one of the program's.
type command struct {
	word, arguments, summary string
	// run returns an error that [flags.ExitCode] makes an exit code of, or that code.
	run func(context.Context, surroundings, []string) (int, error)
}

// surroundings are what a command has around it.
type surroundings struct {
	// program is what people have called it by, word the command.
	program, word  string
	stdout, stderr io.Writer
}

// failing is a command that returns errors.
func failing(run func(context.Context, surroundings, []string) error) func(context.Context, surroundings, []string) (int, error) {
	return func(ctx context.Context, around surroundings, args []string) (int, error) {
		return 0, run(ctx, around, args)
	}
}

// commands are all of them: first those for a cluster, which kubectl weir is called for.
func commands() []command {
	var all []command
	for _, about := range property.Commands() {
		all = append(all, command{about.Word, about.Arguments, about.Summary, failing(func(ctx context.Context, around surroundings, args []string) error {
			return about.Run(ctx, around.property(), args)
		})})
	}
	create := failing(func(ctx context.Context, around surroundings, args []string) error {
		return credentials.Command(ctx, around.program, around.word, args, around.stdout, around.stderr)
	})
	return append(all,
		command{"token", "create NAME …", "make an access token for a Property in a cluster", create},
		command{"key", "create NAME …", "make an API key for a Property in a cluster", create},
		command{"dev", "-f FILE…", "serve the Property resources in FILE… on this machine, without a cluster", failing(func(ctx context.Context, around surroundings, args []string) error {
			return dev(ctx, args, around.stdout, around.stderr)
		})},
		command{"import", "--config DIR FILE…", "bring the past of another system into a Property's history in ClickHouse", func(ctx context.Context, around surroundings, args []string) (int, error) {
			return imports.Command(ctx, around.program+" import", args, os.Stdin, around.stdout, around.stderr), nil
		}},
		command{"backup", "--property P …", "write all that Redis has of a Property into one file", func(ctx context.Context, around surroundings, args []string) (int, error) {
			return backup.Command(ctx, around.program+" backup", args, around.backup()), nil
		}},
		command{"restore", "--property P FILE", "put that into a Redis that has nothing of the Property", func(ctx context.Context, around surroundings, args []string) (int, error) {
			return backup.RestoreCommand(ctx, around.program+" restore", args, around.backup()), nil
		}},
		command{"completion", "bash|zsh|fish", "print a script by which a shell completes commands, flags and names", failing(completionScript)},
		command{"version", "", "print the version", failing(func(_ context.Context, around surroundings, _ []string) error {
			fmt.Fprintln(around.stdout, cmp.Or(version, moduleVersion()))
			return nil
		})},
	)
}

func usage(program string) string {
	var lines strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&lines, "  %-56s  %s\n", strings.TrimSpace(program+" "+c.word+" "+c.arguments), c.summary)
	}
	return strings.ReplaceAll(fmt.Sprintf(usageText, lines.String()), "PROGRAM", program)
}

func main() {
	// The second signal is left to the runtime: whoever does not want to wait for the drain presses Ctrl-C again.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	// Where nobody reads any more, as behind `| head`, writing fails, and what was made for the command is taken back before it ends.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	program, args := called(os.Args)
	os.Exit(runAs(ctx, program, args, os.Stdout, os.Stderr))
}

// called says by which name people have called the program, and what they ask of it: kubectl runs a plugin as kubectl-weir, and asks
// kubectl_complete-weir what a word may be completed to.
func called(args []string) (program string, rest []string) {
	switch strings.TrimSuffix(filepath.Base(args[0]), ".exe") {
	case "kubectl-weir":
		return kubectlWeir, args[1:]
	case "kubectl_complete-weir":
		return kubectlWeir, append([]string{completeWord}, args[1:]...)
	}
	return "weir", args[1:]
}

// kubectlWeir is what the program is called as kubectl's plugin.
const kubectlWeir = "kubectl weir"

// runAs is the program without its globals. It returns the exit code: 0, 1 for what went wrong while serving,
// 2 for what was asked wrongly.
func runAs(ctx context.Context, program string, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage(program))
		return 2
	}
	around := surroundings{program, args[0], stdout, stderr}
	switch args[0] {
	case "-version", "--version":
		around.word = "version"
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage(program))
		return 0
	case completeWord:
		complete(ctx, around, args[1:])
		return 0
	}
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.word == around.word })
	if i < 0 {
		words := make([]string, len(all))
		for i := range all {
			words[i] = all[i].word
		}
		last := len(words) - 1
		err := flags.Errors{fmt.Sprintf("unknown command %q; the commands are %s and %s", args[0], strings.Join(words[:last], ", "), words[last])}
		return flags.ExitCode(program, err, stderr)
	}
	code, err := all[i].run(ctx, around, args[1:])
	if err == nil {
		return code
	}
	return flags.ExitCode(program, err, stderr)
}

// property are the surroundings of commands about one Property.
func (s surroundings) property() property.Environment {
	return property.Environment{
		Program: s.program, Stdin: os.Stdin, Stdout: s.stdout, Stderr: s.stderr, Terminal: isTerminal(s.stdout), Asks: isTerminal(os.Stdin),
		Getenv: os.Getenv, Now: time.Now, Forward: readapi.PortForward, Version: cmp.Or(version, moduleVersion()),
	}
}

// isTerminal says whether people look at what is written, or write what is read.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// backup are the surroundings of backups.
func (s surroundings) backup() backup.Environment {
	stream.RouteLogs(slog.New(slog.DiscardHandler)) // what fails the commands say
	return backup.Environment{Stdin: os.Stdin, Stdout: s.stdout, Stderr: s.stderr, Getenv: os.Getenv, Version: cmp.Or(version, moduleVersion())}
}

// moduleVersion is the version of the module that the program was built from, as `go install` notes it.
func moduleVersion() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return "dev"
	}
	return info.Main.Version
}
