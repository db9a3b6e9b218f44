package deliver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// notebook is a webhook's receiver that writes down what it is told of a visitor, and takes events once it is open.
type notebook struct {
	mu   sync.Mutex
	open bool
	told []visitorTold
}

// visitorTold is what a webhook tells of a visitor.
type visitorTold struct{ IP, UserAgent, ClientID, Email bool }

func (n *notebook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var sent struct {
		ClientID *string `json:"client_id"`
		User     struct {
			Email *string `json:"email"`
		} `json:"user"`
		Context struct {
			IP        *string `json:"ip"`
			UserAgent *string `json:"user_agent"`
		} `json:"context"`
	}
	var message struct {
		Data any `json:"data"`
	}
	message.Data = &sent
	if err == nil {
		err = json.Unmarshal(body, &message)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		n.told = append(n.told, visitorTold{sent.Context.IP != nil, sent.Context.UserAgent != nil, sent.ClientID != nil, sent.User.Email != nil})
	}
	if !n.open {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (n *notebook) last() (told visitorTold, any bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.told) == 0 {
		return visitorTold{}, false
	}
	return n.told[len(n.told)-1], true
}

func (n *notebook) answer(open bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open, n.told = open, nil
}

// An attempt tells of the device as long as deviceHours, and of the person as long as identifiersDays; one that is made later
// goes without.
func TestAnAttemptTellsWhatIsStillKept(t *testing.T) {
	const device, person = 24 * time.Hour, 4 * 24 * time.Hour
	for name, test := range map[string]struct {
		later time.Duration
		want  visitorTold
	}{
		"at once":                            {0, visitorTold{true, true, true, true}},
		"before the device's time is up":     {device - time.Minute, visitorTold{true, true, true, true}},
		"after the device's time is up":      {device + time.Hour, visitorTold{false, false, true, true}},
		"before the identifiers' time is up": {person - time.Minute, visitorTold{false, false, true, true}},
		"after the time of both":             {person + 25*time.Hour, visitorTold{}},
	} {
		t.Run(name, func(t *testing.T) {
			book := new(notebook)
			server := httptest.NewServer(book)
			t.Cleanup(server.Close)
			h := newHarness(t, platforms.Platform{
				Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: server.URL}},
			})
			h.property.Retention.DeviceHours, h.property.Retention.IdentifiersDays = int(device.Hours()), int(person.Hours())/24
			at := h.accept(`{"event":"lead","client_id":"1.2","user":{"email":"ada@example.com"},"context":{"ip":"203.0.113.9","user_agent":"Agent"}}`)
			first := h.start("one", nil)
			h.await("an attempt", func() string {
				if got, any := book.last(); !any || got != (visitorTold{true, true, true, true}) {
					return cmp.Diff(visitorTold{true, true, true, true}, got)
				}
				return ""
			})
			first.stop()
			// As the engine does once a minute; the next one is another process, that holds no key.
			clock := stream.NewClock(h.stream, h.wall, func() time.Duration { return time.Duration(h.now().UnixNano()) })
			for _, passes := range []time.Duration{0, test.later} {
				h.advance(passes)
				if _, err := clock.Look(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			retention := h.property.Retention
			if _, err := h.stream.DropKeys(t.Context(), retention.DeviceAge(), retention.IdentityAge()); err != nil {
				t.Fatal(err)
			}
			book.answer(true)
			h.start("two", nil)
			h.eventuallyLike("crm", one(at, record{Status: "delivered"}))
			if got, _ := book.last(); got != test.want {
				t.Errorf("the webhook tells %+v, want %+v", got, test.want)
			}
		})
	}
}

// The engine drops keys without being asked.
func TestTheEngineDropsKeys(t *testing.T) {
	h := newHarness(t)
	h.property.Retention.DeviceHours, h.property.Retention.IdentifiersDays = 24, 10
	h.accept(`{"event":"lead","client_id":"1.2","context":{"ip":"203.0.113.9"}}`)
	h.start("one", nil)
	for _, step := range []struct {
		passes              time.Duration
		devices, identities bool
	}{{0, false, false}, {26 * time.Hour, true, false}, {11 * 24 * time.Hour, true, true}} {
		h.advance(step.passes)
		h.await("what is dropped", func() string {
			dropped, err := h.stream.Dropped(t.Context())
			if err != nil {
				return err.Error()
			}
			want := []bool{step.devices, step.identities}
			noon := h.now().Add(-step.passes) // before which the event was accepted
			return cmp.Diff(want, []bool{dropped.Devices.After(noon), dropped.Identities.After(noon.Add(-24 * time.Hour))})
		})
	}
}
