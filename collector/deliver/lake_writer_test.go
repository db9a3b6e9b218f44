package deliver

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/fakes"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

func TestEventsBecomeRowsOfFilesThatFollowOneAnother(t *testing.T) {
	s := newLakeSite(t, nil)
	first := s.store(2500, "c.1")
	s.start("one", quick)
	s.eventuallyOnce(first)
	second := s.store(10, "c.1")
	s.eventuallyOnce(slices.Concat(first, second))
	if n := len(s.rows()); n < 4 {
		t.Errorf("%d files, want more than one for what is above the rows of a file, and one for what came later", n)
	}
	if got := s.group("lake"); got.Pending != 0 || got.Waiting != 0 || got.Lag != 0 {
		t.Errorf("the group has something left: %+v", got)
	}
}

func TestAFileIsWrittenWhenEventsHaveWaitedOrAreMany(t *testing.T) {
	s := newLakeSite(t, nil)
	s.start("one", nil)
	few := s.store(10, "c.1")
	s.await("that nothing is written yet", func() string { return "" })
	many := s.store(1000, "c.1")
	s.awaitFor(10*time.Second, "a file of as many as a file has", func() string {
		if len(s.rows()) == 0 {
			return "no file"
		}
		return ""
	})
	s.advance(6 * time.Minute)
	s.eventuallyOnce(slices.Concat(few, many))
}

func TestTwoWritersAtOnceWriteEachEventOnce(t *testing.T) {
	s := newLakeSite(t, func(p *platforms.Platform) { p.S3.RowsPerFile = 100 })
	var writes, together atomic.Int64
	another := make(chan struct{})
	s.onRequest(&s.before, func(r *http.Request) bool {
		if !isWrite(r) {
			return false
		}
		select {
		case another <- struct{}{}: // whoever took over from one whose write is held writes too
		default:
		}
		if n := writes.Add(1); n == 3 || n == 8 || n == 13 {
			select {
			case <-another:
				together.Add(1)
			case <-time.After(30 * time.Second): // nobody did
			}
		}
		return false
	})
	all := s.store(1000, "c.1")
	for _, name := range []string{"one", "two", "three"} {
		s.start(name, func(e *Engine) {
			quick(e)
			e.timing.erasePatience = time.Second // as short as a busy machine lets a writer be that says nothing
		})
	}
	for range 5 {
		all = append(all, s.store(100, "c.1")...)
	}
	s.eventuallyOnce(all)
	if n := together.Load(); n != 3 {
		t.Errorf("two wrote at once %d times, want 3", n)
	}
}

func TestALostAnswerIsFoundOut(t *testing.T) {
	s := newLakeSite(t, nil)
	var writes atomic.Int64
	s.onRequest(&s.after, func(r *http.Request) bool { return isWrite(r) && writes.Add(1) <= 3 })
	all := s.store(3000, "c.1")
	s.start("one", quick)
	s.eventuallyOnce(all)
	if n := writes.Load(); n < 3 {
		t.Errorf("%d answers were lost, want 3", n)
	}
}

func TestADelivererThatIsKilledAtAnyRequestLosesAndRepeatsNothing(t *testing.T) {
	for name, hooked := range map[string]bool{"before the bucket has it": true, "before the answer comes": false} {
		t.Run(name, func(t *testing.T) {
			s := newLakeSite(t, nil)
			all := s.store(1500, "c.1")
			for nth := int64(1); nth <= 12; nth++ {
				requests, reached := new(atomic.Int64), make(chan struct{})
				hook := func(*http.Request) bool {
					n := requests.Add(1)
					if n == nth {
						close(reached)
					}
					return n >= nth
				}
				if hooked {
					s.onRequest(&s.before, hook)
				} else {
					s.onRequest(&s.after, hook)
				}
				v := s.startVictim("one", quick)
				select {
				case <-reached:
				case <-time.After(2 * time.Second): // it had less to do
				}
				v.kill()
				s.onRequest(&s.before, nil)
				s.onRequest(&s.after, nil)
				all = append(all, s.store(300, "c.1")...)
			}
			s.start("two", quick)
			s.eventuallyOnce(all)
		})
	}
}

func TestEventsOfBothSidesOfMidnightAreInTheirDays(t *testing.T) {
	s := newLakeSite(t, nil)
	var all []stream.Position
	s.start("one", quick)
	for range 32 { // no more at once than clocks may differ by, or the step would not be believed
		all = append(all, s.store(5, "c.1")...)
		s.eventuallyOnce(all)
		s.advance(50 * time.Minute)
	}
	days := map[string]bool{}
	for key := range s.rows() {
		days[strings.Split(key, "/")[2]] = true
	}
	if len(days) < 2 {
		t.Errorf("the files are of %v", days)
	}
}

func TestWhatFiltersAndConsentWithholdIsSkippedAndInNoFile(t *testing.T) {
	s := newLakeSite(t, func(p *platforms.Platform) {
		p.Events = []string{"purchase"}
	})
	s.property.Consent.Platforms = []config.PlatformConsent{{Name: "lake", Requires: []platforms.Purpose{platforms.AnalyticsStorage}}}
	s.start("one", quick)
	purchase := s.accept(`{"event":"purchase","client_id":"c.1","data":{"value":1,"currency":"EUR"}}`)
	view := s.accept(`{"event":"pageview","client_id":"c.1"}`)
	denied := s.accept(`{"event":"purchase","client_id":"c.2","consent":{"analytics_storage":"denied"},
		"data":{"value":1,"currency":"EUR"}}`)
	s.eventually("lake", map[stream.Position]record{
		purchase: {"delivered", 1, ""}, view: {"skipped", 0, "event_excluded"}, denied: {"skipped", 0, "consent_analytics_storage"},
	})
	if problem := s.missing([]stream.Position{purchase}); problem != "" {
		t.Error(problem)
	}
}

func TestABucketThatRefusesPausesThePlatformUntilItIsMended(t *testing.T) {
	for name, tt := range map[string]struct {
		failure fakes.Failure
		reason  string
		mend    Misconfiguration
	}{
		"access is denied":       {fakes.Failure{Status: 403}, "http_403", ConfigurationRejected},
		"there is no bucket":     {fakes.Failure{Status: 404}, "no_such_bucket", ConfigurationRejected},
		"the key is none":        {fakes.Failure{Status: 401}, "unauthorized", CredentialsRejected},
		"the server is slow":     {fakes.Failure{Status: 503}, "throttled", ""},
		"the server fails":       {fakes.Failure{Status: 500}, "http_500", ""},
		"the connection breaks":  {fakes.Failure{Reset: true}, "connection_reset", ""},
		"a proxy shows its page": {fakes.Failure{Status: 502, Page: true}, "http_502", ""},
		"it is elsewhere":        {fakes.Failure{Status: 301, Location: "https://elsewhere.example/"}, "redirected", ConfigurationRejected},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLakeSite(t, nil)
			s.fake.FailAlways(tt.failure)
			all := s.store(10, "c.1")
			s.start("one", quick)
			s.await("the pause", func() string {
				if s.metric("weir_platform_error", map[string]string{"platform": "lake", "reason": tt.reason}) != 1 {
					return s.log.String()
				}
				if got := s.metrics.Misconfigured()["lake"]; got != tt.mend {
					return string(got)
				}
				return ""
			})
			if len(s.records("lake")) > 0 {
				t.Error("events have records though they wait")
			}
			s.fake.Heal()
			s.eventuallyOnce(all)
			if s.metric("weir_platform_paused", map[string]string{"platform": "lake"}) != 0 {
				t.Error("the platform is still paused")
			}
		})
	}
}

func TestABucketThatNobodyAnswersForIsTriedAgain(t *testing.T) {
	for name, tt := range map[string]struct{ endpoint, reason string }{
		"the connection is refused": {"http://127.0.0.1:1", "connection_refused"},
		"the name is not resolved":  {"http://nobody.invalid", "name_not_resolved"},
		"the connection breaks off": {"", "connection_reset"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLakeSite(t, func(p *platforms.Platform) { p.Endpoint = either(tt.endpoint, p.Endpoint) })
			s.onRequest(&s.before, func(*http.Request) bool { return true })
			s.store(1, "c.1")
			s.start("one", quick)
			s.await("the reason", func() string {
				if s.metric("weir_platform_error", map[string]string{"platform": "lake", "reason": tt.reason}) != 1 {
					return s.log.String()
				}
				return string(s.metrics.Misconfigured()["lake"])
			})
		})
	}
}

func TestAForeignFileIsNamedAndItsReturnIsNoticed(t *testing.T) {
	for name, harm := range map[string]func([]byte) []byte{
		"it is cut off": func(data []byte) []byte { return data[:len(data)/2] },
		"it is another": func([]byte) []byte { return []byte("event_id,event\n") },
		"it is empty":   func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newLakeSite(t, nil)
			r := s.start("one", quick)
			all := s.store(10, "c.1")
			s.eventuallyOnce(all)
			r.stop()
			var path string
			for key := range s.rows() {
				path = key
			}
			whole := s.fake.Objects()[path]
			s.fake.Put(path, harm(whole))
			all = append(all, s.store(10, "c.1")...)
			s.start("one", quick)
			s.await("the reason", func() string {
				if s.metric("weir_platform_error", map[string]string{"platform": "lake", "reason": "not_parquet"}) != 1 {
					return s.log.String()
				}
				return cmp.Diff(ConfigurationRejected, s.metrics.Misconfigured()["lake"])
			})
			if _, key, _ := strings.Cut(path, "/"); !strings.Contains(s.log.String(), key) {
				t.Errorf("the log does not name %s:\n%s", key, s.log)
			}
			s.fake.Put(path, whole)
			s.eventuallyOnce(all)
		})
	}
}

func TestWrongCredentialsAreSaidToBeSo(t *testing.T) {
	for name, wrong := range map[string]string{"accessKeyID": "AKIAOTHER", "secretAccessKey": "another"} {
		t.Run(name, func(t *testing.T) {
			s := newLakeSite(t, nil)
			credentials := maps.Clone(bucketCredentials)
			credentials[name] = wrong
			s.credentials["lake"] = credentials
			s.store(1, "c.1")
			s.start("one", quick)
			s.await("the reason", func() string { return cmp.Diff(CredentialsRejected, s.metrics.Misconfigured()["lake"]) })
			if strings.Contains(s.log.String(), wrong) {
				t.Error("the log shows the credential")
			}
		})
	}
}

func TestAServerWithoutConditionsIsNotWrittenTo(t *testing.T) {
	s := newLakeSite(t, nil)
	s.onRequest(&s.before, func(r *http.Request) bool {
		for _, o := range s.keys() { // what it is told not to write over it writes over
			s.fake.Delete(o)
		}
		return false
	})
	s.store(10, "c.1")
	s.start("one", quick)
	s.await("the reason", func() string {
		if s.metric("weir_platform_error", map[string]string{"platform": "lake", "reason": "no_conditional_writes"}) != 1 {
			return "it is not said"
		}
		return ""
	})
	if len(s.rows()) > 0 {
		t.Error("a file was written")
	}
}

func TestAGroupThatIsLostRepeatsNothing(t *testing.T) {
	s := newLakeSite(t, nil)
	s.start("one", quick)
	all := s.store(1200, "c.1")
	s.eventuallyOnce(all)
	if err := s.stream.DestroyGroup(t.Context(), "lake"); err != nil {
		t.Fatal(err)
	}
	all = append(all, s.store(300, "c.1")...)
	s.eventuallyOnce(all)
}

func TestRecordsThatAreLostAreWrittenAnewAndRowsAreNot(t *testing.T) {
	s := newLakeSite(t, nil)
	r := s.start("one", quick)
	all := s.store(1200, "c.1")
	s.eventuallyOnce(all)
	r.stop()
	// A Redis that has lost all but the events: the bucket knows what it has.
	if err := s.stream.DestroyGroup(t.Context(), "lake"); err != nil {
		t.Fatal(err)
	}
	if err := s.redis().Del(t.Context(), "weir:{default/shop}:deliveries").Err(); err != nil {
		t.Fatal(err)
	}
	all = append(all, s.store(10, "c.1")...)
	s.start("two", quick)
	s.eventuallyOnce(all)
}

func TestAnEventThatAFileLacksIsAddedToIt(t *testing.T) {
	s := newLakeSite(t, func(p *platforms.Platform) { p.Events = []string{"purchase"} })
	r := s.start("one", quick)
	all := slices.Concat(s.store(5, "c.1"), []stream.Position{s.accept(`{"event":"pageview","client_id":"c.1"}`)}, s.store(5, "c.1"))
	s.eventually("lake", func() map[stream.Position]record {
		want := map[stream.Position]record{}
		for i, p := range all {
			want[p] = record{"delivered", 1, ""}
			if i == 5 {
				want[p] = record{"skipped", 0, "event_excluded"}
			}
		}
		return want
	}())
	r.stop()
	s.property.Platforms[0].Events = nil
	for _, key := range []string{"deliveries"} {
		if err := s.redis().Del(t.Context(), "weir:{default/shop}:"+key).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.stream.DestroyGroup(t.Context(), "lake"); err != nil {
		t.Fatal(err)
	}
	s.start("two", quick)
	s.eventuallyOnce(all)
}

func TestADayWhoseFilesAreDeletedIsWrittenAnewFromThereOn(t *testing.T) {
	s := newLakeSite(t, nil)
	s.start("one", quick)
	s.eventuallyOnce(s.store(10, "c.1"))
	for key := range s.rows() {
		s.fake.Delete(key)
	}
	later := s.store(10, "c.1")
	s.eventuallyOnce(later)
}

func TestASuspendedPlatformsEventsWait(t *testing.T) {
	s := newLakeSite(t, nil)
	s.property.Platforms[0].Suspend = true
	r := s.start("one", quick)
	all := s.store(10, "c.1")
	r.stop()
	if len(s.rows()) > 0 {
		t.Error("files were written")
	}
	s.property.Platforms[0].Suspend = false
	s.start("one", quick)
	s.eventuallyOnce(all)
}

func TestOneOfSeveralDeliverersWritesAndAnotherTakesOver(t *testing.T) {
	s := newLakeSite(t, nil)
	var puts atomic.Int64
	s.onRequest(&s.before, func(r *http.Request) bool {
		if isWrite(r) {
			puts.Add(1)
		}
		return false
	})
	first := s.startVictim("one", func(e *Engine) { quick(e); e.timing.erasePatience = 2 * time.Second })
	all := s.store(10, "c.1")
	s.eventuallyOnce(all)
	s.start("two", func(e *Engine) { quick(e); e.timing.erasePatience = 2 * time.Second })
	for range 5 {
		all = append(all, s.store(3, "c.1")...)
		s.eventuallyOnce(all)
	}
	if n, files := puts.Load(), len(s.rows()); int(n) != files {
		t.Errorf("%d writes for %d files: two have written", n, files)
	}
	first.kill()
	all = append(all, s.store(3, "c.1")...)
	s.eventuallyOnce(all)
}
