// Package operator is the operator's process: its command line, its controller-runtime manager, and the two commands by
// which the Helm chart prepares a Redis and checks an installation.
package operator

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/weir-dev/weir/cli/flags"
)

// program is what the binary is called.
const program = "weir-operator"

const usage = `The operator of Weir, which collects a website's events, delivers them to ad and analytics platforms, and answers
questions about them.

Usage:
  weir-operator FLAG…      serve the Property resources of a cluster
  weir-operator acl-file   prepare the ACL file of the Redis in Weir's Helm chart, before that starts
  weir-operator console    serve the cluster's page for people, who sign in at an OpenID Connect provider
  weir-operator check      look whether an installation's operator and Redis are as they should be, for helm test
  weir-operator version    print the version

"weir-operator COMMAND -h" lists a command's flags. Flags of weir-operator itself:

`

// Run runs the command that args name. It returns the exit code: 0, 1 for what went wrong while serving, 2 for what was
// asked wrongly.
func Run(ctx context.Context, version string, args []string, stdout, stderr io.Writer) int {
	command := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	var err error
	switch command {
	case "":
		err = serve(ctx, version, args, stdout, stderr)
	case "acl-file":
		err = aclFile(args, stdout)
	case "console":
		err = consoleServe(ctx, version, args, stdout, stderr)
	case "check":
		err = check(ctx, args, stdout)
	case "version":
		fmt.Fprintln(stdout, version)
	default:
		err = flags.Errors{fmt.Sprintf("unknown command %q; the commands are acl-file, check, console and version; to serve takes flags alone", command)}
	}
	return flags.ExitCode(program, err, stderr)
}
