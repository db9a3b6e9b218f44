package deliver

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// forwardTries is how often a platform is asked to erase somebody before that is left to its owner.
	forwardTries = 3
	// parallelForwards is how many such requests a platform gets at a time.
	parallelForwards = 16
	// reasonTimeout is why a platform is not asked any more whose time has run out.
	reasonTimeout = "timeout"
)

// forwarding makes the forwarders of a property's platforms.
type forwarding struct {
	property    config.Property
	credentials func(platform string) (map[string]string, error)
	client      *client
	wall        func() time.Time
	// backoff is between tries, pass how long one way through the events may wait for a platform in all: what an erasure
	// promises holds for platforms that are down, too.
	backoff backoff
	pass    time.Duration
	logger  *slog.Logger
}

// open makes a forwarder for each platform that erasures are handed on to and that anything is sent to. One whose Secret does not suffice fails them.
func (f *forwarding) open() []*forwarder {
	var list []*forwarder
	for _, cfg := range f.property.Platforms {
		if !cfg.ForwardErasure || cfg.Mode == platforms.Shadow {
			continue // nothing is sent to the latter
		}
		one := &forwarder{
			forwarding: f, name: cfg.Name, left: f.pass, persons: map[string]*knownBy{}, told: map[string]*knownBy{},
		}
		if err := one.open(cfg); err != nil {
			one.givenUp = reasonUnusable
			f.logger.Error("erasures cannot be forwarded to a platform", "platform", cfg.Name, "error", err)
		}
		list = append(list, one)
	}
	return list
}

// forwarder hands the erasures of one way through the events on to one platform.
type forwarder struct {
	*forwarding
	name     string
	platform *adapter.Platform
	eraser   adapter.Eraser
	// persons are those of the events that are to go next, by the erasure; told is what the platform has been handed of each.
	persons, told map[string]*knownBy
	// left is for how long it may still be waited for the platform.
	left time.Duration

	mu sync.Mutex
	// givenUp is why the platform is not asked any more; "" where it is.
	givenUp string
}

func (f *forwarder) open(cfg platforms.Platform) (err error) {
	if f.platform, err = openWith(f.credentials, &f.property, cfg); err != nil {
		return err
	}
	f.eraser, err = f.platform.Eraser()
	return err
}

// The kinds of what a platform may know somebody by.
const (
	clientIDs = iota
	userIDs
	emails
	phones
	knownKinds
)

// knownBy is what a platform knows somebody by: a set of each kind.
type knownBy [knownKinds]map[string]struct{}

// add adds a text, of which "" is none.
func (k *knownBy) add(kind int, text string) {
	if text == "" {
		return
	}
	if k[kind] == nil {
		k[kind] = map[string]struct{}{}
	}
	k[kind][text] = struct{}{}
}

// learn adds what another one has, and returns what of it was new.
func (k *knownBy) learn(other *knownBy) *knownBy {
	fresh := &knownBy{}
	for kind, texts := range other {
		for text := range texts {
			if _, has := k[kind][text]; !has {
				k.add(kind, text)
				fresh.add(kind, text)
			}
		}
	}
	return fresh
}

// person returns it as adapters have it.
func (k *knownBy) person(id string) adapter.Person {
	sorted := func(kind int) []string { return slices.Sorted(maps.Keys(k[kind])) }
	return adapter.Person{Erasure: id, ClientIDs: sorted(clientIDs), UserIDs: sorted(userIDs), Emails: sorted(emails), Phones: sorted(phones)}
}

// note remembers what the platform knows the subjects of erasures by, from an event that goes by these. It is the subject's own
// identifiers alone, and what was seen with it where that goes too: whoever else used the same browser is not erased there either.
func (f *forwarder) note(e *event.Event, received time.Time, by []string, erasures *erasures) {
	if !slices.Contains(e.Platforms, f.name) {
		return
	}
	for _, id := range by {
		if f.persons[id] == nil {
			f.persons[id] = &knownBy{}
		}
	}
	if f.eraser == nil {
		return
	}
	known, gets := f.platform.Knows(&adapter.Event{Event: *e, ReceivedAt: received})
	if !gets {
		return
	}
	add := func(kind int, text string, alone event.Event) {
		for _, id := range erasures.of(&alone, received) {
			if person := f.persons[id]; person != nil && slices.Contains(by, id) {
				person.add(kind, text)
			}
		}
	}
	add(clientIDs, known.ClientID, event.Event{ClientID: known.ClientID})
	add(userIDs, known.UserID, event.Event{UserID: known.UserID})
	for _, contact := range append([]event.Hashes{known.User}, known.MoreContacts...) {
		var email, phone event.Event
		email.User[event.EmailLower], phone.User[event.PhoneDigits] = contact.Get(event.EmailLower), contact.Get(event.PhoneDigits)
		add(emails, contact.Get(event.EmailLower).String(), email)
		add(phones, contact.Get(event.PhoneE164).String(), phone)
	}
}

// send hands on what was noted since it was called before, and returns what became of that. It fails where ctx has ended.
func (f *forwarder) send(ctx context.Context) ([]stream.Forwarding, error) {
	noted := f.persons
	f.persons = map[string]*knownBy{}
	var persons []adapter.Person
	for _, id := range slices.Sorted(maps.Keys(noted)) {
		if f.eraser == nil {
			persons = append(persons, adapter.Person{Erasure: id})
			continue
		}
		if f.told[id] == nil {
			f.told[id] = &knownBy{}
		}
		if person := f.told[id].learn(noted[id]).person(id); !person.Empty() {
			persons = append(persons, person)
		}
	}
	if len(persons) == 0 {
		return nil, nil
	}
	if f.eraser == nil {
		return f.outcomes(ctx, []outcome{{ids(persons), f.givenUp}}), nil
	}
	requests, err := f.eraser.Erase(persons, f.wall())
	if err != nil {
		f.logger.Warn("an erasure cannot be forwarded", "platform", f.name, "error", err)
		return f.outcomes(ctx, []outcome{{ids(persons), "unrenderable"}}), nil
	}
	began := time.Now() // the monotonic clock
	list := f.exchange(ctx, requests)
	f.left -= time.Since(began)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return f.outcomes(ctx, list), nil
}

func ids(persons []adapter.Person) []string {
	list := make([]string, len(persons))
	for i, person := range persons {
		list[i] = person.Erasure
	}
	return list
}

// outcome is what became of a request, which may be about several erasures.
type outcome struct {
	erasures []string
	// reason is why it failed; "" where it has not.
	reason string
}

// outcomes returns them as they are noted, and logs those that have failed.
func (f *forwarder) outcomes(ctx context.Context, list []outcome) []stream.Forwarding {
	var all []stream.Forwarding
	failed := map[string]int{}
	for _, one := range list {
		for _, id := range one.erasures {
			all = append(all, stream.Forwarding{ErasureID: id, Platform: f.name, Reason: one.reason})
			if one.reason != "" {
				failed[one.reason]++
			}
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(failed)) {
		f.logger.LogAttrs(ctx, slog.LevelWarn, "erasures are not forwarded; their states say what is left to do at the platform",
			slog.String("platform", f.name), slog.String("reason", reason), slog.Int("erasures", failed[reason]))
	}
	return all
}

// exchange makes requests, some at a time, for as long as there is time for that.
func (f *forwarder) exchange(ctx context.Context, requests []adapter.ErasureRequest) []outcome {
	ctx, cancel := context.WithTimeout(ctx, max(0, f.left))
	defer cancel()
	list := make([]outcome, len(requests))
	inParallel(len(requests), parallelForwards, func(i int) { list[i] = outcome{requests[i].Erasures, f.try(ctx, requests[i].Request)} })
	return list
}

// try makes one request, more than once where that may help, and returns why it has failed; "" where it has not. A platform that
// is down, or that lets nobody in, is not asked any more on this way through the events.
func (f *forwarder) try(ctx context.Context, request adapter.Request) string {
	for tries := 1; ; tries++ {
		if reason := f.stopped(ctx); reason != "" {
			return reason
		}
		response, failure := f.client.exchange(ctx, request)
		if failure == nil {
			verdict := f.eraser.ClassifyErasure(response)
			failure = &verdict
		}
		if failure.Class != adapter.Delivered && ctx.Err() != nil {
			return reasonTimeout
		}
		switch failure.Class {
		case adapter.Delivered:
			return ""
		case adapter.Retry, adapter.Throttle:
			wait := max(failure.After, f.backoff.jittered(tries-1))
			if deadline, ok := ctx.Deadline(); tries < forwardTries && (!ok || time.Until(deadline) > wait) && pause(ctx, wait) {
				continue
			}
			f.giveUp(failure.Reason)
		case adapter.Auth, adapter.Config:
			f.giveUp(failure.Reason)
		}
		return failure.Reason
	}
}

// stopped says why the platform is not asked any more.
func (f *forwarder) stopped(ctx context.Context) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.givenUp == "" && ctx.Err() != nil {
		return reasonTimeout
	}
	return f.givenUp
}

func (f *forwarder) giveUp(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.givenUp = reason
}
