package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

// run is [runAs] of weir.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runAs(ctx, "weir", args, stdout, stderr)
}

func TestTheCommandsOfWeir(t *testing.T) {
	tests := map[string]struct {
		args []string
		code int
		// stdout and stderr must stand in the output.
		stdout, stderr string
	}{
		"without a command they are listed":        {nil, 2, "", "weir dev -f FILE…"},
		"help lists them":                          {[]string{"--help"}, 0, "weir dev -f FILE…", ""},
		"the version is the module's":              {[]string{"version"}, 0, moduleVersion() + "\n", ""},
		"help of dev lists its flags":              {[]string{"dev", "-h"}, 0, "-fake-platforms", ""},
		"an argument of dev is no file":            {[]string{"dev", "shop.yaml"}, 2, "", `weir: "shop.yaml" is no flag`},
		"a command that there is not is refused":   {[]string{"operator"}, 2, "", `weir: unknown command "operator"; the commands are status, doctor, events, tail, rejections, replay, export, import-job, token, key, dev, import, backup, restore, completion and version`},
		"a command about a Property has its flags": {[]string{"events", "-h"}, 0, "-kubeconfig FILE", ""},
		"there is a script for a shell":            {[]string{"completion", "bash"}, 0, "__start_weir", ""},
		"for three":                                {[]string{"completion", "powershell"}, 2, "", "must name the shell: bash, zsh, fish"},
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

func TestTheProgramByItsNames(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string
		program string
		rest    []string
	}{
		"weir is itself":                     {[]string{"/usr/bin/weir", "status"}, "weir", []string{"status"}},
		"a plugin of kubectl's":              {[]string{"/opt/kubectl-weir", "status"}, "kubectl weir", []string{"status"}},
		"on Windows too":                     {[]string{"kubectl-weir.exe", "status"}, "kubectl weir", []string{"status"}},
		"what kubectl's completion asks for": {[]string{"kubectl_complete-weir", "sta"}, "kubectl weir", []string{"__complete", "sta"}},
	} {
		t.Run(name, func(t *testing.T) {
			program, rest := called(c.args)
			if program != c.program || strings.Join(rest, " ") != strings.Join(c.rest, " ") {
				t.Errorf("got %q %v, want %q %v", program, rest, c.program, c.rest)
			}
		})
	}
}

func TestTheHelpOfAPluginSaysHowItIsCalled(t *testing.T) {
	for sentence, c := range map[string]struct {
		args           []string
		stdout, stderr string
		code           int
	}{
		"in the list":             {[]string{"--help"}, "kubectl weir status", "", 0},
		"of a command":            {[]string{"tail", "-h"}, "Usage: kubectl weir tail", "", 0},
		"of one that makes":       {[]string{"token", "create", "-h"}, "Usage: kubectl weir token create", "", 0},
		"of one without cluster":  {[]string{"backup", "-h"}, "kubectl weir backup", "", 0},
		"and where it is misused": {[]string{"key"}, "", "kubectl weir key: the command is create", 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := runAs(t.Context(), "kubectl weir", c.args, &stdout, &stderr)
			if code != c.code || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("got %d, %q and %q, want %+v", code, stdout.String(), stderr.String(), c)
			}
		})
	}
}
