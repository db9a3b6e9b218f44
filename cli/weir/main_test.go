package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheCommandsOfWeir(t *testing.T) {
	tests := map[string]struct {
		args []string
		code int
		// stdout and stderr must stand in the output.
		stdout, stderr string
	}{
		"without a command they are listed":      {nil, 2, "", "weir dev -f FILE…"},
		"help lists them":                        {[]string{"--help"}, 0, "weir dev -f FILE…", ""},
		"the version is the module's":            {[]string{"version"}, 0, moduleVersion() + "\n", ""},
		"help of dev lists its flags":            {[]string{"dev", "-h"}, 0, "-fake-platforms", ""},
		"an argument of dev is no file":          {[]string{"dev", "shop.yaml"}, 2, "", `weir: "shop.yaml" is no flag`},
		"a command that there is not is refused": {[]string{"operator"}, 2, "", `weir: unknown command "operator"; the commands are dev, import, backup, restore, token, key and version`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), tt.args, &stdout, &stderr)
			if code != tt.code || !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("exit code %d, %q and %q; want %d, %q and %q", code, stdout.String(), stderr.String(), tt.code, tt.stdout, tt.stderr)
			}
		})
	}
}
