package operator

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheCommandsOfTheOperator(t *testing.T) {
	t.Setenv("WEIR_IMAGE", "")
	tests := map[string]struct {
		args []string
		code int
		// stdout and stderr must stand in the output.
		stdout, stderr string
	}{
		"the version is printed":                       {[]string{"version"}, 0, "v0.0.0\n", ""},
		"help lists the commands":                      {[]string{"-h"}, 0, "weir-operator acl-file", ""},
		"help lists the flags":                         {[]string{"--help"}, 0, "-redis-url-file", ""},
		"without a flag it serves, and lacks an image": {nil, 2, "", "weir-operator: --image: must name the image"},
		"a command that there is not is refused":       {[]string{"dev"}, 2, "", `weir-operator: unknown command "dev"; the commands are acl-file, check, console and version`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := Run(t.Context(), "v0.0.0", tt.args, &stdout, &stderr)
			if code != tt.code || !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("exit code %d, %q and %q; want %d, %q and %q", code, stdout.String(), stderr.String(), tt.code, tt.stdout, tt.stderr)
			}
		})
	}
}
