package stream

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHowItStandsWithThePlatforms(t *testing.T) {
	now := time.UnixMilli(1700000000000).UTC()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	down := func(since time.Duration) *Pause { return &Pause{Reason: "http_503", Since: ago(since)} }
	refused := &Pause{Misconfiguration: "CredentialsRejected", Reason: "unauthorized", Since: ago(time.Minute)}
	type report struct {
		consumer string
		before   time.Duration
		states   []PlatformState
	}
	for sentence, test := range map[string]struct {
		reports []report
		want    map[string]PlatformState
	}{
		"nobody has said anything": {nil, map[string]PlatformState{}},
		"what a deliverer said last": {
			[]report{
				{"a", 10 * time.Second, []PlatformState{{Platform: "crm", LagEvents: 9, LagSeconds: 3, Waiting: 1, Pause: down(time.Hour)}}},
				{"a", 5 * time.Second, []PlatformState{{Platform: "crm", LagEvents: 1, LagSeconds: 0.5}, {Platform: "meta", LagEvents: -1}}},
			},
			map[string]PlatformState{
				"crm":  {Platform: "crm", LagEvents: 1, LagSeconds: 0.5, ReportedAt: ago(5 * time.Second)},
				"meta": {Platform: "meta", LagEvents: -1, ReportedAt: ago(5 * time.Second)},
			},
		},
		"nothing that is older than a minute": {
			[]report{
				{"a", 0, []PlatformState{{Platform: "crm"}}},
				{"b", 61 * time.Second, []PlatformState{{Platform: "meta"}}},
			},
			map[string]PlatformState{"crm": {Platform: "crm", ReportedAt: now}},
		},
		"by a clock that whoever reads does not have": {
			[]report{{"a", -time.Hour, []PlatformState{{Platform: "crm", Pause: down(time.Minute)}}}},
			map[string]PlatformState{"crm": {Platform: "crm", Pause: down(time.Minute), ReportedAt: now.Add(time.Hour)}},
		},
		"of several deliverers the newest lag, and a pause that one has": {
			[]report{
				{"a", 3 * time.Second, []PlatformState{{Platform: "crm", LagEvents: 7}}},
				{"b", 4 * time.Second, []PlatformState{{Platform: "crm", LagEvents: 8, Pause: down(time.Hour)}}},
			},
			map[string]PlatformState{"crm": {Platform: "crm", LagEvents: 7, Pause: down(time.Hour), ReportedAt: ago(3 * time.Second)}},
		},
		"of pauses what somebody has to mend": {
			[]report{
				{"a", 3 * time.Second, []PlatformState{{Platform: "crm", Pause: down(time.Hour)}}},
				{"b", 4 * time.Second, []PlatformState{{Platform: "crm", Pause: refused}}},
			},
			map[string]PlatformState{"crm": {Platform: "crm", Pause: refused, ReportedAt: ago(3 * time.Second)}},
		},
		"of others the longest": {
			[]report{
				{"a", 3 * time.Second, []PlatformState{{Platform: "crm", Pause: down(time.Minute)}}},
				{"b", 4 * time.Second, []PlatformState{{Platform: "crm", Pause: down(time.Hour)}}},
			},
			map[string]PlatformState{"crm": {Platform: "crm", Pause: down(time.Hour), ReportedAt: ago(3 * time.Second)}},
		},
		"no pause of a deliverer that has been silent for a while": {
			[]report{
				{"a", 3 * time.Second, []PlatformState{{Platform: "crm"}}},
				{"b", 30 * time.Second, []PlatformState{{Platform: "crm", Pause: down(time.Hour)}}},
			},
			map[string]PlatformState{"crm": {Platform: "crm", ReportedAt: ago(3 * time.Second)}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newStream(t)
			for _, r := range test.reports {
				if err := s.ReportPlatforms(t.Context(), r.consumer, r.states, ago(r.before)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := s.PlatformStates(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportsGoAfterAMinute(t *testing.T) {
	s, now := newStream(t), time.UnixMilli(1700000000000)
	for _, at := range []time.Time{now, now.Add(30 * time.Second), now.Add(61 * time.Second)} {
		if err := s.ReportPlatforms(t.Context(), "a", []PlatformState{{Platform: "crm"}}, at); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := s.redis.ZCard(t.Context(), s.keys.platformStates()).Result()
	if err != nil || kept != 1 {
		t.Errorf("%d reports are kept, error %v; the same member at its last time is wanted", kept, err)
	}
	if lives, err := s.redis.PTTL(t.Context(), s.keys.platformStates()).Result(); err != nil || lives <= 0 || lives > time.Minute {
		t.Errorf("they live for %v, error %v; want a minute at most", lives, err)
	}
}

// What another than a deliverer has written is passed over.
func TestWhatIsNoReportIsPassedOver(t *testing.T) {
	s, now := newStream(t), time.Now()
	for _, member := range []string{"junk", `{"platforms":"none"}`, string(make([]byte, maxReport+1))} {
		if err := s.redis.Do(t.Context(), "ZADD", s.keys.platformStates(), now.UnixMilli(), member).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ReportPlatforms(t.Context(), "a", []PlatformState{{Platform: "crm"}}, now.Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if states, err := s.PlatformStates(t.Context()); err != nil || len(states) != 1 {
		t.Errorf("got %v, error %v; want the deliverer's report", states, err)
	}
}
