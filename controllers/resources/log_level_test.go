package resources_test

import (
	"log/slog"
	"testing"

	"github.com/weir-dev/weir/controllers/resources"
)

func TestThePodsLogWhatTheirPropertyAsksFor(t *testing.T) {
	_, property := readObjectsInput(t, "testdata/objects/defaults.in.yaml")
	for word, want := range map[string]slog.Level{
		"": slog.LevelInfo, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
		"loud": slog.LevelInfo, "DEBUG": slog.LevelInfo, "error+2": slog.LevelInfo,
	} {
		property.Annotations = map[string]string{resources.AnnotationLogLevel: word}
		rendered, err := resources.PropertyConfig(property, resources.Options{})
		if err != nil || rendered.LogLevel != want {
			t.Errorf("%q: they log from %s on, %v; want %s", word, rendered.LogLevel, err, want)
		}
	}
}
