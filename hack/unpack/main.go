// Command unpack unpacks packages of the machine's distribution, and those of their dependencies that the machine lacks, into
// a folder, without root and without installing them.
//
//	go run ./hack/unpack FOLDER PACKAGE…
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/weir-dev/weir/collector/redisserver/debian"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "unpack: a folder and at least one package must be named")
		os.Exit(2)
	}
	if err := debian.Unpack(context.Background(), os.Args[1], os.Args[2:]...); err != nil {
		fmt.Fprintln(os.Stderr, "unpack:", err)
		os.Exit(1)
	}
}
