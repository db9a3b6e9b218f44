package query

import (
	"math"
	"net/http"

	"github.com/weir-dev/weir/collector/quality"
	"github.com/weir-dev/weir/collector/server"
)

// QualityReader returns which of a property's numbers have gone wrong, as was found last; found is false where nobody has looked
// lately.
type QualityReader interface {
	Quality() (report quality.Report, found bool)
}

type qualityAnswer struct {
	Data qualityData `json:"data"`
}

type qualityData struct {
	State    string          `json:"state"`
	JudgedAt *string         `json:"judged_at"`
	Weeks    int             `json:"weeks"`
	Findings []findingRecord `json:"findings"`
	Events   []watchedRecord `json:"events"`
}

// findingRecord is a number that has gone wrong. Event is null for what is no event's alone.
type findingRecord struct {
	Event    *string        `json:"event"`
	Signal   quality.Signal `json:"signal"`
	Currency *string        `json:"currency"`
	From     string         `json:"from"`
	To       string         `json:"to"`
	Actual   float64        `json:"actual"`
	Expected float64        `json:"expected"`
	Events   int64          `json:"events"`
}

// watchedRecord says how soon it would be found that an event has stopped.
type watchedRecord struct {
	Event             *string `json:"event"`
	SeenWithinMinutes *int    `json:"seen_within_minutes"`
}

// notJudged is the state of a property that nobody has looked at lately.
const notJudged = "unknown"

// quality answers GET /properties/{property}/quality, from what was found last.
func (h *Handler) quality(w http.ResponseWriter, r *http.Request, t *Tenant) {
	if negotiate(w, r, object) == "" || !withoutParameters(w, r) {
		return
	}
	data := qualityData{State: notJudged, Findings: []findingRecord{}, Events: []watchedRecord{}}
	if report, found := t.Quality.Quality(); found {
		renderQuality(&data, &report)
	}
	server.JSON(w, http.StatusOK, qualityAnswer{data})
}

func renderQuality(data *qualityData, report *quality.Report) {
	at := instant(report.At)
	data.State, data.JudgedAt, data.Weeks = string(report.State), &at, report.Weeks
	for i := range report.Findings {
		f := &report.Findings[i]
		record := findingRecord{
			Event: eventOf(f.Event), Signal: f.Signal, From: instant(f.From), To: instant(f.To),
			Actual: decimals(f.Actual), Expected: decimals(f.Expected), Events: f.Events,
		}
		if f.Signal == quality.Currency {
			record.Currency = optional(f.Currency)
		}
		data.Findings = append(data.Findings, record)
	}
	for _, event := range report.Events {
		record := watchedRecord{Event: eventOf(event.Event)}
		if minutes := int(event.SeenWithin.Minutes()); minutes > 0 {
			record.SeenWithinMinutes = &minutes
		}
		data.Events = append(data.Events, record)
	}
}

// eventOf is an event's name, nil for events that have none of their own.
func eventOf(name string) *string {
	if name == quality.OtherEvents {
		return nil
	}
	return optional(name)
}

// decimals rounds to four of them, as rates are.
func decimals(x float64) float64 {
	const tenThousand = 1e4
	return math.Round(x*tenThousand) / tenThousand
}
