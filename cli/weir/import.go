package main

import (
	"context"
	"io"
	"os"

	"github.com/weir-dev/weir/collector/history/imports"
)

// importPast brings files into a Property's history. It returns the exit code.
func importPast(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return imports.Command(ctx, "weir import", args, os.Stdin, stdout, stderr)
}
