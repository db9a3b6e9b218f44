package role

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/forget"
	"github.com/weir-dev/weir/collector/stream"
)

func TestForHowLongAHistoryKeepsWhat(t *testing.T) {
	now := time.Date(2026, 5, 10, 12, 0, 0, 0, time.UTC)
	day := func(month time.Month, day int) stream.Position {
		return stream.At(time.Date(2026, month, day, 0, 0, 0, 0, time.UTC))
	}
	for name, test := range map[string]struct {
		property config.Property
		dropped  time.Time
		want     forget.Limits
	}{
		"events for whole days":                   {config.Property{History: &config.History{RetentionDays: 9}}, time.Time{}, forget.Limits{Oldest: day(5, 1)}},
		"whose they are for fewer":                {config.Property{History: &config.History{RetentionDays: 40}, Retention: config.Retention{IdentifiersDays: 9}}, time.Time{}, forget.Limits{Oldest: day(3, 31), Anonymous: day(5, 1)}},
		"no longer than Redis can tell whose":     {config.Property{History: &config.History{RetentionDays: 40}}, day(5, 4).Time(), forget.Limits{Oldest: day(3, 31), Anonymous: day(5, 4)}},
		"everything where there is none any more": {config.Property{}, time.Time{}, forget.Limits{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := limitsAt(now, stream.Dropped{Identities: test.dropped}, func() (int, int) { return keptFor(&test.property) })
			if test.want.Now = now; got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
