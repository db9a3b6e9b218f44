// Command findredis prints the path of the redis-server that weir dev and the tests start, and on the next line the
// folders of those of its libraries that the system lacks, with colons between: what LD_LIBRARY_PATH must name.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/weir-dev/weir/collector/redisserver"
)

func main() {
	binary, err := redisserver.Find(context.Background(), slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "findredis:", err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stdout, "%s\n%s\n", binary.Path, binary.LibraryPath)
}
