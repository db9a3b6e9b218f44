package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/cli/cluster"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/cli/property"
	"github.com/weir-dev/weir/cli/terminal"
)

// completeWord is the command that shells ask what a word may be completed to, as cobra's scripts and kubectl call it.
const completeWord = cobra.ShellCompRequestCmd

// shells are those that there is a script for.
func shells() []string { return []string{"bash", "zsh", "fish"} }

// completionScript prints a shell's script. cobra has them; what may be completed is found by [complete].
func completionScript(_ context.Context, around surroundings, args []string) error {
	text := fmt.Sprintf("Usage: %s completion bash|zsh|fish\n\nPrints a script that completes commands, flags and the names of Properties and namespaces:\n\n  source <(weir completion bash)\n\nFor kubectl weir, kubectl's own completion asks kubectl_complete-weir, which is this program by another name.\n\n", around.program)
	set := flags.NewSet(around.program + " completion")
	found, err := flags.ParseMixed(set, text, args, around.stdout)
	if err != nil {
		return err
	}
	if len(found) != 1 || !slices.Contains(shells(), found[0]) {
		return flags.Errors{fmt.Sprintf("%s completion: must name the shell: %s", around.program, strings.Join(shells(), ", "))}
	}
	root := &cobra.Command{Use: "weir"}
	switch found[0] {
	case "bash":
		return root.GenBashCompletionV2(around.stdout, true)
	case "zsh":
		return root.GenZshCompletion(around.stdout)
	default:
		return root.GenFishCompletion(around.stdout, true)
	}
}

// answerWithin is how long the cluster may take to say which names there are: somebody waits at the keyboard.
const answerWithin = 3 * time.Second

// completer finds what a word may be completed to.
type completer struct {
	around surroundings
	// args are the words before, the command first.
	args []string
	word string
}

// complete answers in cobra's form: a line for each candidate with what it is behind a tab, then what the shell is to do beside that.
func complete(ctx context.Context, around surroundings, args []string) {
	if len(args) == 0 {
		return
	}
	last := len(args) - 1
	candidates, directive := (&completer{around, args[:last], args[last]}).candidates(ctx)
	for _, candidate := range candidates {
		name, about, _ := strings.Cut(candidate, "\t")
		if strings.HasPrefix(name, args[last]) {
			fmt.Fprintln(around.stdout, strings.TrimSuffix(terminal.Clean(name)+"\t"+terminal.Clean(about), "\t"))
		}
	}
	fmt.Fprintf(around.stdout, ":%d\n", directive)
}

func (c *completer) candidates(ctx context.Context) ([]string, cobra.ShellCompDirective) {
	const nothingElse = cobra.ShellCompDirectiveNoFileComp
	if len(c.args) == 0 {
		var words []string
		for _, known := range commands() {
			words = append(words, known.word+"\t"+known.summary)
		}
		return words, nothingElse
	}
	switch c.args[0] {
	case "token", "key":
		if len(c.args) == 1 {
			return []string{"create\tmake one"}, nothingElse
		}
	case "completion":
		return shells(), nothingElse
	}
	known := c.flags(ctx)
	if name, open := c.openFlag(known); open {
		return c.values(ctx, name, known)
	}
	if strings.HasPrefix(c.word, "-") {
		var names []string
		for _, f := range known {
			names = append(names, f.hyphened()+"\t"+f.about)
		}
		return names, nothingElse
	}
	if _, about := property.Find(c.args[0]); about {
		return c.properties(ctx), nothingElse
	}
	return nil, cobra.ShellCompDirectiveDefault // files
}

// flagLine is how [flag.FlagSet.PrintDefaults] prints a flag.
func flagLine() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^  -(\S+)(?: (\S+))?(?:\t|\n    \t)(.*)$`)
}

// completed is a flag of the command.
type completed struct {
	name, about string
	// takes says that a value follows.
	takes bool
}

func (f *completed) hyphened() string {
	if len(f.name) == 1 {
		return "-" + f.name
	}
	return "--" + f.name
}

// flags are those that the command's own help lists: nothing else has to be kept in step with it.
func (c *completer) flags(ctx context.Context) []completed {
	all := commands()
	i := slices.IndexFunc(all, func(known command) bool { return known.word == c.args[0] })
	if i < 0 {
		return nil
	}
	var text bytes.Buffer
	ask := []string{"-h"}
	if len(c.args) > 1 && c.args[1] == "create" {
		ask = []string{"create", "-h"}
	}
	_, _ = all[i].run(ctx, surroundings{c.around.program, c.args[0], &text, &text}, ask) // that help was asked for
	var found []completed
	for _, line := range flagLine().FindAllStringSubmatch(text.String(), -1) {
		found = append(found, completed{line[1], line[3], line[2] != ""})
	}
	return found
}

// openFlag is the flag whose value is to be completed.
func (c *completer) openFlag(known []completed) (string, bool) {
	last := c.args[len(c.args)-1]
	name := strings.TrimLeft(last, "-")
	if name == last || strings.Contains(last, "=") {
		return "", false
	}
	i := slices.IndexFunc(known, func(f completed) bool { return f.name == name })
	return name, i >= 0 && known[i].takes
}

// values are those of a flag.
func (c *completer) values(ctx context.Context, name string, known []completed) ([]string, cobra.ShellCompDirective) {
	fixed := map[string][]string{
		"output": {"json"}, "o": {"json"}, "format": {"ndjson", "csv"}, "scope": {"read", "write", "admin"}, "period": {"24h", "7d", "30d"},
		"class": {"human", "bot", "internal", "test"}, "status": {"pending", "retrying", "delivered", "failed", "skipped", "expired"},
	}
	switch name {
	case "namespace", "n":
		return c.names(ctx, property.Namespaces), cobra.ShellCompDirectiveNoFileComp
	case "property":
		return c.properties(ctx), cobra.ShellCompDirectiveNoFileComp
	case "platform":
		return c.names(ctx, func(ctx context.Context, reached *cluster.Cluster) ([]string, error) {
			return property.Platforms(ctx, reached, c.property(known))
		}), cobra.ShellCompDirectiveNoFileComp
	case "context":
		f := c.cluster()
		contexts, _ := f.Contexts() // without a kubeconfig there is nothing to offer
		return contexts, cobra.ShellCompDirectiveNoFileComp
	}
	if values := fixed[name]; values != nil {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

func (c *completer) properties(ctx context.Context) []string { return c.names(ctx, property.Names) }

// names asks the cluster. What goes wrong offers nothing: whoever completes a word wants no errors.
func (c *completer) names(ctx context.Context, list func(context.Context, *cluster.Cluster) ([]string, error)) []string {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	reached, err := cluster.Connect(c.cluster(), io.Discard)
	if err != nil {
		return nil
	}
	names, _ := list(ctx, reached)
	return names
}

// cluster are the flags of the cluster that were written before.
func (c *completer) cluster() cluster.Flags {
	var f cluster.Flags
	into := map[string]*string{"namespace": &f.Namespace, "n": &f.Namespace, "kubeconfig": &f.Kubeconfig, "context": &f.Context}
	for i, arg := range c.args {
		name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !strings.HasPrefix(arg, "-") || into[name] == nil {
			continue
		}
		if !given && i+1 < len(c.args) {
			value = c.args[i+1]
		}
		*into[name] = value
	}
	return f
}

// property is the Property that was named before.
func (c *completer) property(known []completed) string {
	for i := 1; i < len(c.args); i++ {
		arg := c.args[i]
		name := strings.TrimLeft(arg, "-")
		switch {
		case name == arg:
			return arg
		case !strings.Contains(arg, "=") && slices.ContainsFunc(known, func(f completed) bool { return f.name == name && f.takes }):
			i++
		}
	}
	return ""
}
