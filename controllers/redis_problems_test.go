package controllers_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
)

func TestWhatToDoAboutARedisOfItsOwnNamesItsObjects(t *testing.T) {
	tests := map[string]struct {
		problem error
		want    string
	}{
		"a password that it does not take":    {stream.ErrAuthentication, "delete its pod shop-redis-0: it takes the password of the Secret shop-redis-admin when it starts"},
		"a certificate that is not its own":   {stream.ErrTLS, "delete its pod shop-redis-0, which takes the certificates of the Secret shop-redis-tls when it starts"},
		"something else":                      {stream.ErrReply, "its Service leads to something else"},
		"a setting that somebody has changed": {stream.ErrEvictionEnabled, "somebody has changed it: delete its pod shop-redis-0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			said := controllers.ProblemOfDedicated("shop-redis", tt.problem)
			if !strings.HasPrefix(said, "spec.redis.dedicated: ") || !strings.Contains(said, tt.want) {
				t.Errorf("the condition says %q, want %q", said, tt.want)
			}
		})
	}
}
