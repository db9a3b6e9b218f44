package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// loadScript is wrk's program.
//
//go:embed load.lua
var loadScript string

// answers are what wrk counted.
type answers struct {
	Requests int64 `json:"requests"`
	Micros   int64 `json:"micros"`
	// Refused had a status above 399, Broken no answer.
	Refused int64 `json:"refused"`
	Broken  int64 `json:"broken"`
	// P50 and P99 are latencies in microseconds.
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
}

// result is one measurement.
type result struct {
	perSecond float64
	p50, p99  time.Duration
	// cpu is the server's processor time for a request, redis that of Redis for an event.
	cpu, redis float64
	// batch is how many events went into a call of Redis.
	batch float64
}

// pair is a collector's measurement and those of the bare handler right before and right after it.
type pair struct {
	result
	before, after result
}

// against returns a figure of the collector's by the mean of the bare handler's.
func (p pair) against(figure func(result) float64) float64 {
	return 2 * figure(p.result) / (figure(p.before) + figure(p.after))
}

// load lets wrk send to a server for a while and counts the processor time meanwhile.
func (b *bench) load(ctx context.Context, p *process, c cell, duration time.Duration) (result, answers, error) {
	b.runs++
	path, prefix := "/collect/"+apiKey, fmt.Sprintf("%08x", b.runs<<16|int(time.Now().Unix()&0xffff))
	if c.batch > 0 {
		path += "/batch"
	}
	before, err := p.cpu()
	if err != nil {
		return result{}, answers{}, err
	}
	output, err := exec.CommandContext(ctx, b.wrk, "-t1", "-c"+strconv.Itoa(c.connections), "-d"+strconv.Itoa(int(duration.Seconds())),
		"--timeout", "10s", "--latency", "-s", b.script, "http://"+p.address, "--", path, prefix, strconv.Itoa(c.batch)).CombinedOutput()
	if err != nil {
		return result{}, answers{}, fmt.Errorf("%s: %w: %s", b.wrk, err, output)
	}
	after, err := p.cpu()
	if err != nil {
		return result{}, answers{}, err
	}
	_, text, found := strings.Cut(string(output), "\nresult ")
	text, _, _ = strings.Cut(text, "\n")
	var a answers
	if err := json.Unmarshal([]byte(text), &a); !found || err != nil || a.Requests == 0 {
		return result{}, a, fmt.Errorf("%s printed no result: %s", b.wrk, output)
	}
	if a.Refused > 0 || a.Broken > 0 {
		return result{}, a, fmt.Errorf("%d requests were refused and %d broken: %s", a.Refused, a.Broken, c)
	}
	return result{
		perSecond: float64(a.Requests) * 1e6 / float64(a.Micros), cpu: float64((after - before).Microseconds()) / float64(a.Requests),
		p50: time.Duration(a.P50) * time.Microsecond, p99: time.Duration(a.P99) * time.Microsecond,
	}, a, nil
}

// loadSite loads a collector, counts Redis's time too and compares the stream with the answers.
func (b *bench) loadSite(ctx context.Context, s *site, c cell, duration time.Duration) (result, error) {
	length, err := s.redis.number("XLEN", eventsKey)
	if err != nil {
		return result{}, err
	}
	calls, err := s.redis.calls()
	if err != nil {
		return result{}, err
	}
	before, err := s.redis.cpu()
	if err != nil {
		return result{}, err
	}
	r, a, err := b.load(ctx, s.process, c, duration)
	if err != nil {
		return result{}, err
	}
	after, err := s.redis.cpu()
	if err != nil {
		return result{}, err
	}
	// Of each connection a last request may have been stored whose answer wrk did not wait for.
	grown, err := s.redis.number("XLEN", eventsKey)
	if err != nil {
		return result{}, err
	}
	grown -= length
	answered, unanswered := a.Requests*int64(c.events()), int64(c.connections*c.events())
	if grown < answered || grown > answered+unanswered {
		return result{}, fmt.Errorf("%s: %d events were answered 202, but the stream grew by %d", c, answered, grown)
	}
	r.redis = float64((after - before).Microseconds()) / float64(grown)
	callsAfter, err := s.redis.calls()
	r.batch = float64(grown) / float64(callsAfter-calls)
	return r, err
}

// measure goes round the cells: the bare handler, the collector, the bare handler …
func (b *bench) measure(ctx context.Context, cells []cell) error {
	entry := strings.Repeat("x", 360) // about what the generator's purchase is encoded to
	for round := range b.rounds + 1 {
		duration := b.duration
		if round == 0 {
			duration = time.Second // warms up, and is forgotten
		}
		var last result
		for i, c := range cells {
			single := cell{connections: c.connections}
			before := last
			if i == 0 || c.connections != cells[i-1].connections || c.batch != cells[i-1].batch {
				var err error
				if before, _, err = b.load(ctx, b.bare, single, duration); err != nil {
					return fmt.Errorf("bare handler: %w", err)
				}
			}
			r, err := b.loadSite(ctx, b.sites[c.fsync], c, duration)
			if err != nil {
				return err
			}
			after, _, err := b.load(ctx, b.bare, single, duration)
			if err != nil {
				return fmt.Errorf("bare handler: %w", err)
			}
			last = after
			if round > 0 {
				b.results[c] = append(b.results[c], pair{r, before, after})
				b.bareRuns[single] = append(b.bareRuns[single], before, after)
			}
		}
		for fsync, s := range b.sites {
			x, err := s.redis.pipelineXADD(entry, time.Second)
			if err != nil {
				return errors.Join(errors.New("raw XADD"), err)
			}
			if round > 0 {
				b.xadds[fsync] = append(b.xadds[fsync], x)
			}
		}
	}
	return nil
}
