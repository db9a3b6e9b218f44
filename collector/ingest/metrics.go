package ingest

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
)

// metrics count what became of the events that were sent. Requests are counted by the server around us.
type metrics struct {
	events  *prometheus.CounterVec
	classes *prometheus.CounterVec
	errs    *prometheus.CounterVec
	sources *prometheus.CounterVec
}

// counters are one property's and one way's, looked up once.
type counters struct {
	accepted, duplicate, rejected, ignored, limited, unavailable prometheus.Counter
	// classes has a counter for each class of those accepted.
	classes [event.Classes]prometheus.Counter
	// errors has a counter for each of the labels that fieldLabel returns.
	errs *prometheus.CounterVec
	// sources has a counter for each source and outcome.
	sources *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_collect_events_total",
			Help: "Events sent with a valid API key in a well-formed request, by what became of them: accepted, duplicate, " +
				"rejected as invalid, ignored as no event, limited by the rate, or refused because the stream was unavailable.",
		}, []string{"namespace", "property", "endpoint", "outcome"}),
		classes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_collect_accepted_events_total",
			Help: "Events that were stored, by who they count for: human, bot, internal or test. Only a human's are in the numbers and are delivered.",
		}, []string{"namespace", "property", "class"}),
		errs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_collect_field_errors_total",
			Help: "Errors of events that were rejected as invalid, by the field that they are about.",
		}, []string{"namespace", "property", "field"}),
	}
	m.sources = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_source_reports_total",
		Help: "What shops have reported, by webhooks and when their orders were read, by what became of it: stored (an event at least " +
			"was new), duplicate, ignored (it makes no event), rejected as invalid, erasure (a request to erase somebody or to hand out what is known: it is carried out, or the owner has to see to it), " +
			"unverified (the signature is wrong), or unavailable (nothing could be stored, or the source has no Secret).",
	}, []string{"namespace", "property", "source", "outcome"})
	registerer.MustRegister(m.events, m.classes, m.errs, m.sources)
	return m
}

func (m *metrics) of(p config.Property) (all [ways]counters) {
	for i, way := range allWays {
		all[i] = m.via(way, p)
	}
	return all
}

func (m *metrics) via(way *way, p config.Property) counters {
	outcome := func(name string) prometheus.Counter {
		return m.events.WithLabelValues(p.Namespace, p.Name, way.name, name)
	}
	c := counters{
		accepted: outcome("accepted"), duplicate: outcome("duplicate"), rejected: outcome("rejected"), ignored: outcome("ignored"),
		limited: outcome("limited"), unavailable: outcome("unavailable"),
		errs:    m.errs.MustCurryWith(prometheus.Labels{"namespace": p.Namespace, "property": p.Name}),
		sources: m.sources.MustCurryWith(prometheus.Labels{"namespace": p.Namespace, "property": p.Name}),
	}
	for class := range c.classes {
		c.classes[class] = m.classes.WithLabelValues(p.Namespace, p.Name, event.Class(class).String())
	}
	return c
}

// reject counts an event that is invalid.
func (c *counters) reject(errs event.Errors) {
	c.rejected.Inc()
	for _, fieldErr := range errs {
		c.errs.WithLabelValues(fieldLabel(fieldErr.Field)).Inc()
	}
}

// otherField is the label of a field that is not in fieldLabels.
const otherField = "other"

// fieldLabel returns the label that a field is counted under: its path with "*" for each number in it, where that
// is a field that Weir reads. So nothing that a caller makes up ever becomes a label.
func fieldLabel(field string) string {
	label := field
	if strings.ContainsAny(field, "0123456789") {
		parts := strings.Split(field, ".")
		for i, part := range parts {
			if _, err := strconv.Atoi(part); err == nil {
				parts[i] = "*"
			}
		}
		label = strings.Join(parts, ".")
	}
	if !fieldLabels[label] {
		return otherField
	}
	return label
}

// fieldLabels are the fields that errors may be about.
var fieldLabels = makeFieldLabels()

func makeFieldLabels() map[string]bool {
	labels := map[string]bool{}
	add := func(prefix, names string) {
		for name := range strings.FieldsSeq(names) {
			labels[prefix+name] = true
		}
	}
	add("", "event event_id client_id user_id session_id engagement_time_msec user data properties context consent timestamp test events.* type originalTimestamp")
	add("user.", "email email.* phone phone.* first_name last_name street city state zip country date_of_birth gender")
	add("data.", "tax shipping discount coupon search_term list_id list_name")
	for _, prefix := range []string{"", "data."} { // the older flat form has them at the top level
		add(prefix, "value currency order_id content_id content_name contents contents.*")
		add(prefix+"contents.*.", "id content_id sku name category quantity price")
	}
	add("context.", "page_url referrer ip user_agent utm_source utm_medium utm_campaign utm_term utm_content click_ids page_title language action_source")
	add("context.click_ids.", strings.Join(event.ClickIDNames[:], " "))
	add("consent.", "*")
	for _, prefix := range []string{"consent.", "consent.*."} { // of Segment's API there are several
		add(prefix, "ad_user_data ad_personalization ad_storage analytics_storage tcf gpp gpp_sid us_privacy limited_data_use categories")
	}
	return labels
}
