package operator

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/controllers/resources"
)

const logLevelFlag = "log-level-file"

// logLevelInterval is how often the file is looked at. The kubelet takes up to a minute to bring a change.
const logLevelInterval = 2 * time.Second

// logLevels are the words for what is logged.
const logLevels = "debug, info, warn or error"

// readLogLevel reads the file of --log-level-file.
func readLogLevel(file string) (slog.Level, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return slog.LevelInfo, err
	}
	level, known := resources.LogLevel(strings.TrimSpace(string(content)))
	if !known {
		return level, fmt.Errorf("%s must hold %s", file, logLevels)
	}
	return level, nil
}

// checkLogLevel judges the file, "" for none.
func checkLogLevel(file string, errs *flags.Errors) {
	if file == "" {
		return
	}
	if _, err := readLogLevel(file); err != nil {
		errs.Add("--%s: %v", logLevelFlag, err)
	}
}

// followLogLevel has the log follow the file until ctx ends. What cannot be read leaves it as it was.
func followLogLevel(ctx context.Context, file string, level *slog.LevelVar, logger *slog.Logger) {
	ticker := time.NewTicker(logLevelInterval)
	defer ticker.Stop()
	said := ""
	for {
		now, err := readLogLevel(file)
		switch {
		case err != nil && err.Error() != said:
			said = err.Error()
			logger.WarnContext(ctx, "the log level stays as it is", "level", level.Level().String(), "error", err)
		case err == nil && now != level.Level():
			said = ""
			level.Set(slog.LevelInfo) // so that this is said in any case
			logger.InfoContext(ctx, "the log level changes", "level", now.String())
			level.Set(now)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
