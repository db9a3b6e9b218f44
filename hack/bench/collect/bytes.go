package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// measured is how many events a size is taken from. A hash table has as many places as the next power of two, so that
// between two powers an id has its usual share of one.
const measured = 49_200

// forgetAll removes what the Property has stored, so that each size begins with nothing.
const forgetAll = `for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end`

// The events whose sizes are stated. The verbs take a prefix and a number; both ids are as long as the generator's.
const (
	plainPurchase = `{"event":"purchase","event_id":"%08x-0000-7000-8000-%012x","client_id":"1234567890.1700000000",` +
		`"user":{"email":"jane.roe@example.com","phone":"+14155550123","first_name":"Jane"},` +
		`"data":{"value":49.9,"currency":"EUR","order_id":"ORD-%012[2]x","contents":[` +
		`{"id":"SKU-1","quantity":1,"price":29.9},{"id":"SKU-2","quantity":2,"price":10}]}}`
	purchaseContext = `,"context":{"page_url":"https://shop.example.com/thanks?utm_source=google&utm_medium=cpc&utm_campaign=spring-sale-26",` +
		`"user_agent":"Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101","ip":"203.0.113.7"}}`
	lead = `{"event":"lead","event_id":"%08x-0000-7000-8000-%012x"}`
)

// measureBytes prints what events take in the stream and an id beside it.
func (b *bench) measureBytes(ctx context.Context) error {
	s := b.sites[slices.Sorted(maps.Keys(b.sites))[0]]
	for i, kind := range []struct{ name, event, bound string }{
		{"the purchase without context", plainPurchase, "floor 260, goal 215"},
		{"the purchase with context", strings.TrimSuffix(plainPurchase, "}") + purchaseContext, "floor 460, goal 400"},
	} {
		stream, _, err := s.grow(ctx, uint32(0xf0000000+i), kind.event)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.out, "%s takes %.0f bytes in the stream (%s)\n", kind.name, stream, kind.bound)
	}
	_, beside, err := s.grow(ctx, 0xf0000002, lead)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "a UUID as event_id takes %.0f bytes beside the stream, its place in a hash table included (floor 50, goal 25)\n", beside)
	return nil
}

// grow sends events to the collector and returns how many bytes each takes in the stream and beside it. What the stream
// takes is what Redis has more once it is gone: MEMORY USAGE adds a fixed guess for each of its nodes.
func (s *site) grow(ctx context.Context, prefix uint32, event string) (stream, beside float64, err error) {
	if _, err := s.redis.do("EVAL", forgetAll, "0", strings.TrimSuffix(eventsKey, "events")+"*"); err != nil {
		return 0, 0, err
	}
	empty, err := s.redis.info("memory", "used_memory")
	if err != nil {
		return 0, 0, err
	}
	const size = 100
	for n := 0; n < measured; n += size {
		var body bytes.Buffer
		for i := range size {
			fmt.Fprintf(&body, ","+event, prefix, uint64(prefix)<<16+uint64(n+i))
		}
		if err := s.post(ctx, `{"events":[`+body.String()[1:]+"]}"); err != nil {
			return 0, 0, err
		}
	}
	full, err := s.redis.info("memory", "used_memory")
	if err != nil {
		return 0, 0, err
	}
	if _, err := s.redis.do("DEL", eventsKey); err != nil {
		return 0, 0, err
	}
	without, err := s.redis.info("memory", "used_memory")
	return (full - without) / measured, (without - empty) / measured, err
}

// post sends a batch of which every event is new.
func (s *site) post(ctx context.Context, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.address+"/collect/"+apiKey+"/batch", strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if want := `{"ok":true,"accepted":100,"duplicates":0,"rejected":0,`; !strings.HasPrefix(string(text), want) {
		return fmt.Errorf("the collector answered %d %.200s", answer.StatusCode, text)
	}
	return nil
}
