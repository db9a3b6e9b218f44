package stream

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// reportedFor is for how long a deliverer's report counts.
	reportedFor = time.Minute
	// pausesReportedFor is for how long what it says of pauses does: another deliverer's, or the next one's, may have ended.
	pausesReportedFor = 20 * time.Second
	// maxReport is how long a report may be, in bytes; a reader passes over longer ones. maxReports is how many are read.
	maxReport, maxReports = 64 << 10, 200
)

// PlatformState is how it stands with the deliveries to a platform.
type PlatformState struct {
	Platform string `json:"platform"`
	// LagEvents is how many events were not taken up yet, below 0 where Redis does not know; LagSeconds is how long the oldest of
	// them has been waiting for that. Waiting is how many wait for another attempt.
	LagEvents  int64   `json:"lag_events"`
	LagSeconds float64 `json:"lag_seconds"`
	Waiting    int64   `json:"waiting"`
	// Pause is why nothing is sent, or nothing but new events; nil where there is no pause.
	Pause *Pause `json:"pause,omitempty"`
	// ReportedAt is when a deliverer said so.
	ReportedAt time.Time `json:"-"`
}

// Pause is why a platform gets nothing for a while, or until a person has mended something.
type Pause struct {
	// Misconfiguration is what a person has to mend, a reason of the Property's condition PlatformsReady; "" for what passes by
	// itself.
	Misconfiguration string `json:"misconfiguration,omitempty"`
	// Reason is the code of the answer that led to the pause, as in delivery records.
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// platformReport is what one deliverer says.
type platformReport struct {
	Consumer  string          `json:"consumer"`
	Platforms []PlatformState `json:"platforms"`
}

// ReportPlatforms notes for a minute how it stands with a property's platforms, as one of its deliverers sees it. now is the time
// that is believed.
func (s *Stream) ReportPlatforms(ctx context.Context, consumer string, states []PlatformState, now time.Time) error {
	text, err := json.Marshal(platformReport{consumer, states})
	if err != nil {
		return err
	}
	key, at := s.keys.platformStates(), now.UnixMilli()
	_, err = s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.ZAdd(ctx, key, redis.Z{Score: float64(at), Member: text})
		pipe.ZRemRangeByScore(ctx, key, "-inf", "("+strconv.FormatInt(at-reportedFor.Milliseconds(), 10))
		pipe.PExpire(ctx, key, reportedFor)
		return nil
	})
	return describe("report the platforms' states", err)
}

// PlatformStates returns how it stands with the platforms of which a deliverer has reported within a minute, by their names. Of what
// several deliverers share the newest report tells. A platform is paused where one of them says so: since the first of them does.
// How old a report is, is measured from the newest, since whoever reads has another clock; where nobody reports any more, Redis
// drops them all.
func (s *Stream) PlatformStates(ctx context.Context) (map[string]PlatformState, error) {
	members, err := s.redis.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{
		Key: s.keys.platformStates(), Start: 0, Stop: maxReports - 1, Rev: true,
	}).Result()
	if err != nil {
		return nil, describe("read the platforms' states", err)
	}
	states, heard := map[string]PlatformState{}, map[string]bool{}
	var newest time.Time
	for _, member := range members {
		at := time.UnixMilli(int64(member.Score)).UTC()
		text, isText := member.Member.(string)
		var report platformReport
		if !isText || len(text) > maxReport || json.Unmarshal([]byte(text), &report) != nil || heard[report.Consumer] {
			continue
		}
		if newest.IsZero() {
			newest = at
		}
		if newest.Sub(at) > reportedFor {
			break
		}
		heard[report.Consumer] = true
		for _, state := range report.Platforms {
			if state.ReportedAt = at; newest.Sub(at) > pausesReportedFor {
				state.Pause = nil
			}
			merge(states, state)
		}
	}
	return states, nil
}

// merge adds what a deliverer reports to what those say whose reports are newer.
func merge(states map[string]PlatformState, state PlatformState) {
	newer, known := states[state.Platform]
	if !known {
		states[state.Platform] = state
		return
	}
	newer.Pause = worse(newer.Pause, state.Pause)
	states[state.Platform] = newer
}

// worse returns the pause that a person has to end, else the one that has lasted longer.
func worse(a, b *Pause) *Pause {
	pauses := slices.DeleteFunc([]*Pause{a, b}, func(p *Pause) bool { return p == nil })
	if len(pauses) == 0 {
		return nil
	}
	return slices.MinFunc(pauses, func(a, b *Pause) int {
		if mendA, mendB := a.Misconfiguration != "", b.Misconfiguration != ""; mendA != mendB {
			if mendA {
				return -1
			}
			return 1
		}
		return a.Since.Compare(b.Since)
	})
}
