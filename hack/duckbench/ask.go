package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"
)

// timing is how long one question took each engine.
type timing struct{ api, duck []time.Duration }

// ask asks all questions in turns and prints how long they took.
func (p *past) ask(ctx context.Context) error {
	questions := p.questions()
	timings := make([]timing, len(questions))
	for round := range p.rounds {
		for i, q := range questions {
			if err := p.askBoth(ctx, q, &timings[i], round == 0); err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
		}
	}
	fmt.Printf("with %d events/s arriving\n%-24s %9s %9s %12s %9s\n", p.ingest, "", "p50 ms", "p99 ms", "DuckDB p50", "ratio")
	for i, q := range questions {
		t := timings[i]
		fmt.Printf("%-24s %9.2f %9.2f", q.name, milliseconds(quantile(t.api, 50)), milliseconds(quantile(t.api, 99)))
		if p.duck {
			fmt.Printf(" %12.2f %9.1f", milliseconds(quantile(t.duck, 50)), float64(quantile(t.duck, 50))/float64(quantile(t.api, 50)))
		}
		fmt.Println()
	}
	return nil
}

// askBoth asks the read API for about half a second, at least 3 and at most 20 times, then DuckDB once.
func (p *past) askBoth(ctx context.Context, q question, t *timing, compare bool) error {
	var figures map[string]float64
	for n, spent := 0, time.Duration(0); n < 20 && (n < 3 || spent < 500*time.Millisecond); n++ {
		began := time.Now()
		body, err := p.get(ctx, q.path)
		took := time.Since(began)
		if err != nil {
			return err
		}
		t.api = append(t.api, took)
		spent += took
		if n == 0 && compare {
			var answer struct{ Data any }
			if err := json.Unmarshal(body, &answer); err != nil {
				return err
			}
			figures = q.figures(answer.Data)
		}
	}
	if !p.duck {
		return nil
	}
	began := time.Now()
	asked, err := p.query(ctx, q.sql)
	t.duck = append(t.duck, time.Since(began))
	if err != nil || !compare {
		return err
	}
	return differences(figures, asked)
}

func (p *past) get(ctx context.Context, path string) ([]byte, error) {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/properties/shop/"+path, http.NoBody)
	request.Header.Set("Authorization", "Bearer "+token)
	answer := httptest.NewRecorder()
	p.api.ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		return nil, fmt.Errorf("the API answered %d: %s", answer.Code, answer.Body)
	}
	return answer.Body.Bytes(), nil
}

// query reads all rows and returns their first two columns, label and number.
func (p *past) query(ctx context.Context, statement string) (map[string]float64, error) {
	rows, err := p.db.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var label string
	var figure float64
	into := make([]any, len(columns))
	into[0], into[1] = &label, &figure
	for i := 2; i < len(columns); i++ {
		into[i] = new(any)
	}
	figures := map[string]float64{}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		figures[label] += figure
	}
	return figures, rows.Err()
}

// quantile returns the smallest duration that at least percent of them do not exceed.
func quantile(durations []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
