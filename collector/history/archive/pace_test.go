package archive

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// slowTable is a table that takes its time, by a clock of its own.
type slowTable struct {
	Table[int]
	now   time.Time
	takes time.Duration
	err   error
}

func (t *slowTable) Insert(context.Context, []int, string) error {
	t.now = t.now.Add(t.takes)
	return t.err
}

func TestTheDelayGoesWithHowLongBlocksTake(t *testing.T) {
	repeat := func(n int, d time.Duration) (list []time.Duration) {
		for range n {
			list = append(list, d)
		}
		return list
	}
	for name, test := range map[string]struct {
		takes []time.Duration
		err   error
		want  time.Duration
	}{
		"it stays while blocks are quick":                            {repeat(9, 20*time.Millisecond), nil, time.Second},
		"and while they take up to half of it":                       {repeat(9, 500*time.Millisecond), nil, time.Second},
		"a block that takes more than half of it doubles it":         {repeat(1, 600*time.Millisecond), nil, 2 * time.Second},
		"until blocks take half of it":                               {repeat(9, 1900*time.Millisecond), nil, 4 * time.Second},
		"thirty seconds are the most":                                {repeat(9, time.Minute), nil, 30 * time.Second},
		"a block that takes neither much nor little of it leaves it": {[]time.Duration{600 * time.Millisecond, 300 * time.Millisecond}, nil, 2 * time.Second},
		"a quick one halves it":                                      {[]time.Duration{time.Minute, time.Minute, 100 * time.Millisecond}, nil, 2 * time.Second},
		"down to what is usual":                                      {append(repeat(9, time.Minute), repeat(9, 20*time.Millisecond)...), nil, time.Second},
		"one that failed after long is one that took long":           {repeat(1, time.Minute), errors.New("no answer"), 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPace(usual(), prometheus.NewGauge(prometheus.GaugeOpts{Name: "delay"}))
			slow := &slowTable{err: test.err}
			table := &paced[int]{slow, p, func() time.Time { return slow.now }}
			for _, slow.takes = range test.takes {
				if err := table.Insert(t.Context(), nil, ""); !errors.Is(err, test.err) {
					t.Fatal(err)
				}
			}
			if got := p.now(); got != test.want {
				t.Errorf("the delay is %s, want %s", got, test.want)
			}
			if p.pressed() {
				t.Error("full blocks wait though there are few parts")
			}
		})
	}
}

func TestPartsAndTimeEachLengthenTheDelay(t *testing.T) {
	p := newPace(usual(), prometheus.NewGauge(prometheus.GaugeOpts{Name: "delay"}))
	want := func(what string, delay time.Duration, pressed bool) {
		t.Helper()
		if p.now() != delay || p.pressed() != pressed {
			t.Errorf("%s: the delay is %s, and full blocks wait: %v; want %s, %v", what, p.now(), p.pressed(), delay, pressed)
		}
	}
	p.took(time.Minute)
	want("a block took long", 2*time.Second, false)
	p.see(manyParts + 1)
	p.see(manyParts + 1)
	want("there are many parts", 4*time.Second, true)
	p.took(0)
	want("blocks are quick, parts are many", 4*time.Second, true)
	p.see(fewParts - 1)
	p.see(fewParts - 1)
	want("there are few parts", time.Second, false)
}

func TestABlockThatWasGivenUpSaysNothingOfTheServer(t *testing.T) {
	p := newPace(usual(), prometheus.NewGauge(prometheus.GaugeOpts{Name: "delay"}))
	slow := &slowTable{takes: time.Minute, err: context.Canceled}
	table := &paced[int]{slow, p, func() time.Time { return slow.now }}
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := table.Insert(ctx, nil, ""); !errors.Is(err, context.Canceled) || p.now() != time.Second {
		t.Errorf("the delay is %s after %v, want the usual second", p.now(), err)
	}
}
