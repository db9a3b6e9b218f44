package deliver

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/collector/deliver/fakes"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// reported waits until a deliverer has reported what is wanted of the platform p.
func (s *site) reported(what string, want stream.PlatformState, ignored ...string) {
	s.t.Helper()
	want.Platform = "p"
	s.await(what, func() string {
		states, err := s.stream.PlatformStates(s.t.Context())
		if err != nil {
			return err.Error()
		}
		got := states["p"]
		if !got.ReportedAt.IsZero() && got.Pause != nil && got.Pause.Since.After(got.ReportedAt) {
			return "it is paused since a time to come"
		}
		ignored = append(ignored, "ReportedAt", "LagSeconds")
		return cmp.Diff(want, got, cmpopts.IgnoreFields(stream.PlatformState{}, ignored...), cmpopts.IgnoreFields(stream.Pause{}, "Since"))
	})
}

func TestADelivererReportsHowItStandsWithAPlatform(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypePinterest)
	s.start("pod-1", nil)
	s.reported("a platform that works", stream.PlatformState{})

	s.fake.FailAlways(fakes.Failure{Status: 503})
	// Five that come at once may go as one request: what opens the circuit is that different ones fail in a row.
	for n := range 6 {
		s.purchase("")
		s.await("another request", func() string {
			if got := s.metric("weir_delivery_requests_total", map[string]string{"platform": "p"}); got <= float64(n) {
				return fmt.Sprintf("%v requests", got)
			}
			return ""
		})
	}
	s.reported("one that does not", stream.PlatformState{Pause: &stream.Pause{Reason: "http_503"}}, "Waiting", "LagEvents")
	s.fake.FailAlways(fakes.Failure{Status: 401})
	s.reported("one that refuses the credential", stream.PlatformState{
		Pause: &stream.Pause{Misconfiguration: string(CredentialsRejected), Reason: "unauthorized"},
	}, "Waiting", "LagEvents")
	s.fake.Heal()
	s.reported("one that works again", stream.PlatformState{})
}

func TestASuspendedPlatformsLagIsReported(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypePinterest)
	s.property.Platforms[0].Suspend = true
	s.start("pod-1", nil)
	s.reported("a platform without events", stream.PlatformState{})
	s.purchase("")
	s.purchase("")
	s.reported("its events wait", stream.PlatformState{LagEvents: 2})
}

func TestAPlatformWithoutItsSecretIsReportedAsPaused(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypePinterest)
	s.credentials["p"] = nil
	s.start("pod-1", nil)
	s.reported("what is missing", stream.PlatformState{Pause: &stream.Pause{Misconfiguration: string(SecretInvalid), Reason: reasonUnusable}})
}

// Somebody has been told of the pause before; while deliveries are suspended it is none of the platform's.
func TestASuspendedPlatformIsNotPausedAnyMore(t *testing.T) {
	t.Parallel()
	s := newSite(t, platforms.TypePinterest)
	s.credentials["p"] = nil
	first := s.start("pod-1", nil)
	s.reported("what is missing", stream.PlatformState{Pause: &stream.Pause{Misconfiguration: string(SecretInvalid), Reason: reasonUnusable}})
	first.stop()
	s.property.Platforms[0].Suspend = true
	s.start("pod-1", nil)
	s.reported("a platform that waits", stream.PlatformState{})
	if got := s.metrics.Misconfigured(); len(got) > 0 {
		t.Errorf("a person has to mend %v", got)
	}
}

// A pause that goes on for another reason began when the first one did.
func TestAPauseBeganWithItsFirstReason(t *testing.T) {
	h := newHarness(t)
	began := time.Date(2026, time.November, 24, 12, 0, 0, 0, time.UTC)
	now := began
	pauses := h.metrics.pauses("p", func() time.Time { return now })
	pauses.pausedFor("http_503", "")
	now = now.Add(time.Minute)
	pauses.pausedFor("unauthorized", CredentialsRejected)
	want := map[string]stream.Pause{"p": {Misconfiguration: string(CredentialsRejected), Reason: "unauthorized", Since: began}}
	if diff := cmp.Diff(want, h.metrics.pausedPlatforms()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	pauses.resumed()
	if got := h.metrics.pausedPlatforms(); len(got) > 0 {
		t.Errorf("got %v, want no pause", got)
	}
	now = now.Add(time.Minute)
	pauses.pausedFor("throttled", "")
	want["p"] = stream.Pause{Reason: "throttled", Since: now}
	if diff := cmp.Diff(want, h.metrics.pausedPlatforms()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
