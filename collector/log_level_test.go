package main

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/redisserver"
)

// TestTheLogFollowsTheConfiguration: a running pod logs what its Property asks for, without a restart.
func TestTheLogFollowsTheConfiguration(t *testing.T) {
	t.Parallel()
	s := newSite(t, redisserver.Options{})
	c := s.start("collect")
	const said = "configuration reloaded"
	serves := func(key string, level slog.Level) {
		t.Helper()
		changed := shop()
		changed.LogLevel = level
		s.write(config.PropertyFile, changed)
		s.write(config.APIKeysFile, []auth.Credential{{Name: "server", Hash: auth.HashOf(key)}})
		eventually(t, "the key is taken", func() bool {
			response, err := http.Post("http://"+c.address+"/collect/"+key, "application/json", strings.NewReader(`{"event": "pageview"}`))
			if err != nil {
				return false
			}
			response.Body.Close()
			return response.StatusCode != http.StatusUnauthorized
		})
	}
	const first, second = "wk_1123456789ABCDEFGHIJKLMNOPQ2WYluI", "wk_2123456789ABCDEFGHIJKLMNOPQ2WYluI"
	serves(first, slog.LevelError)
	before := strings.Count(c.log.String(), said)
	serves(second, slog.LevelError)
	if got := strings.Count(c.log.String(), said); got != before {
		t.Errorf("%d reloads are in the log, want %d: it is to hold errors alone", got, before)
	}
	serves(shopKey, slog.LevelInfo)
	eventually(t, "it is told again", func() bool { return strings.Count(c.log.String(), said) > before })
}
