// Package clickhouseserver has a private ClickHouse server at hand for development and tests, and runs it as a child that does
// not outlive its parent. Nothing here needs root or changes the machine.
package clickhouseserver

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrMissing says that there is no server, and how there comes one.
var ErrMissing = errors.New("there is no ClickHouse server: put a clickhouse on the PATH, or have one made in a checkout of Weir, by hack/clickhouse.sh")

// Find returns the path of the clickhouse on the PATH, else of the one that hack/clickhouse.sh has made. The error is [ErrMissing].
func Find() (string, error) {
	if path, err := exec.LookPath("clickhouse"); err == nil {
		return filepath.Abs(path)
	}
	cache := os.Getenv("WEIR_CACHE")
	if cache == "" {
		found, err := os.UserCacheDir()
		if err != nil {
			return "", ErrMissing
		}
		cache = filepath.Join(found, "weir")
	}
	path, err := filepath.EvalSymlinks(filepath.Join(cache, "clickhouse", "current", "clickhouse"))
	if err != nil {
		return "", ErrMissing
	}
	return path, nil
}
