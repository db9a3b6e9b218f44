package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestReadSpec walks the contract of the read API against the whole program.
func TestReadSpec(t *testing.T) {
	weir := startWeirDev(t, filepath.Join(t.TempDir(), "state"), "-f", shopFile(t, "http://127.0.0.1:9/"))
	bearer := "Bearer " + weir.AccessTokens[0].Token
	await(t, "the view has replayed", func() bool { return weir.read("/events").status == http.StatusOK })

	const (
		unauthenticated = `401 {"message":"Unauthenticated."}`
		notFound        = `404 {"message":"Property not found."}`
	)
	for _, test := range []struct {
		name, path, authorization string
		want                      string
	}{
		{"no token", "/properties/shop/events", "", unauthenticated},
		{"an unknown token", "/properties/shop/events", "Bearer nope", unauthenticated},
		{"an expired token", "/properties/shop/events", "Bearer " + weir.AccessTokens[1].Token, unauthenticated},
		{"an API key is no token", "/properties/shop/events", "Bearer " + weir.APIKeys[0].Key, unauthenticated},
		{"an unknown property with no token", "/properties/other/events", "", unauthenticated},
		{"an unknown property", "/properties/other/events", bearer, notFound},
		{"an empty listing", "/properties/shop/events", bearer, `200 {"data":[],"next_cursor":null}`},
		{"an unknown period", "/properties/shop/events?period=1y", bearer, "422 " + fieldError("period", "The selected period is invalid.")},
		{"a funnel of one step", "/properties/shop/analytics/funnel?steps[]=a", bearer, "422 " + fieldError("steps", "The steps field must have at least 2 items.")},
		{"a funnel without steps", "/properties/shop/analytics/funnel", bearer, "422 " + fieldError("steps", "The steps field is required.")},
		{"steps may be percent-encoded", "/properties/shop/analytics/funnel?steps%5B%5D=a&steps%5B%5D=b", bearer, "200"},
		{"an unknown model", "/properties/shop/analytics/attribution?model=best", bearer, "422 " + fieldError("model", "The selected model is invalid.")},
		{"from after to", "/properties/shop/analytics/summary?from=2026-11-02&to=2026-11-01", bearer, "422"},
		{"more than 366 days", "/properties/shop/analytics/daily?from=2024-01-01&to=2026-01-01", bearer, "422"},
		{"nothing happened: zeros for every day", "/properties/shop/analytics/daily?from=2026-03-28&to=2026-03-29", bearer,
			`200 {"data":[{"date":"2026-03-28","purchases":0,"add_to_carts":0,"pageviews":0,"revenue":0,"unique_visitors":0,"events":0,"refunds":0,"revenue_by_currency":{}},` +
				`{"date":"2026-03-29","purchases":0,"add_to_carts":0,"pageviews":0,"revenue":0,"unique_visitors":0,"events":0,"refunds":0,"revenue_by_currency":{}}]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			header := map[string]string{}
			if test.authorization != "" {
				header["Authorization"] = test.authorization
			}
			reply := do(t, http.MethodGet, weir.BaseURL+test.path, "", header)
			got := fmt.Sprintf("%d %s", reply.status, reply.body)
			if len(test.want) == 3 {
				got = got[:3]
			}
			if got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
			if challenge := reply.header.Get("WWW-Authenticate"); (reply.status == http.StatusUnauthorized) != (challenge == "Bearer") {
				t.Errorf("WWW-Authenticate is %q with status %d", challenge, reply.status)
			}
		})
	}
}

// TestReadSpecShapes checks that every answer has the members of the contract, in any order.
func TestReadSpecShapes(t *testing.T) {
	receiver := newWebhookReceiver(t)
	weir := startWeirDev(t, filepath.Join(t.TempDir(), "state"), "-f", shopFile(t, receiver.URL), "--egress-allow-cidr", "127.0.0.0/8")
	sent := time.Now()
	for _, body := range []string{
		`{"event": "pageview", "client_id": "v1", "context": {"utm_source": "google", "utm_medium": "cpc"}}`,
		`{"event": "purchase", "client_id": "v1", "data": {"value": 10, "currency": "EUR", "order_id": "o1"}}`,
	} {
		if got := weir.collect(body); got.status != http.StatusAccepted {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	await(t, "an event is listed", func() bool { return len(weir.listing()) == 2 })
	if took := time.Since(sent); took > 5*time.Second {
		t.Errorf("listed after %s", took)
	}
	await(t, "all is delivered", func() bool {
		return !slices.ContainsFunc(weir.listing(), func(r eventRecord) bool { return r.statuses()["crm"] != "delivered" })
	})

	for path, want := range map[string][]string{
		"/events": {
			"data.0.event_id", "data.0.event", "data.0.received_at", "data.0.value", "data.0.currency", "data.0.order_id", "data.0.client_id",
			"data.0.visitor", "data.0.source", "data.0.medium", "data.0.campaign", "data.0.channel", "data.0.delivery.0.platform",
			"data.0.delivery.0.status", "data.0.delivery.0.latency_ms", "data.0.delivery.0.attempts", "data.0.delivery.0.updated_at",
			"data.0.delivery.0.reason", "next_cursor",
		},
		"/analytics/summary": {
			"data.period.from", "data.period.to", "data.kpis.purchases", "data.kpis.add_to_carts", "data.kpis.pageviews", "data.kpis.revenue",
			"data.kpis.unique_visitors", "data.kpis.gross_revenue", "data.kpis.refunds", "data.kpis.refunded", "data.kpis.average_order_value",
			"data.kpis.conversion_rate", "data.kpis.revenue_by_currency", "data.currency", "data.time_zone",
		},
		"/analytics/daily": {
			"data.29.date", "data.29.purchases", "data.29.add_to_carts", "data.29.pageviews", "data.29.revenue", "data.29.unique_visitors",
			"data.29.events", "data.29.refunds", "data.29.revenue_by_currency",
		},
		"/events/stats": {
			"data.0.event", "data.0.count", "data.0.unique_visitors", "data.0.value", "data.0.value_by_currency", "data.0.share", "data.0.first_received_at",
			"data.0.last_received_at", "data.0.delivery.0.platform", "data.0.delivery.0.pending", "data.0.delivery.0.retrying",
			"data.0.delivery.0.delivered", "data.0.delivery.0.failed", "data.0.delivery.0.skipped", "data.0.delivery.0.expired",
			"data.0.delivery.0.latency_ms.p50", "data.0.delivery.0.latency_ms.p95",
		},
		"/analytics/funnel?steps[]=pageview&steps[]=purchase": {
			"data.period.from", "data.window", "data.steps.0.step", "data.steps.0.event", "data.steps.0.visitors", "data.steps.0.conversion_rate",
			"data.steps.0.step_conversion_rate", "data.steps.0.drop_off", "data.steps.0.median_seconds", "data.conversion_rate",
		},
		"/analytics/attribution": {
			"data.period.from", "data.model", "data.conversion_event", "data.lookback", "data.conversions", "data.revenue", "data.revenue_by_currency",
			"data.results.0.channel", "data.results.0.conversions", "data.results.0.revenue", "data.results.0.share",
		},
	} {
		t.Run(path, func(t *testing.T) {
			reply := weir.read(path)
			if reply.status != http.StatusOK {
				t.Fatalf("%d %s", reply.status, reply.body)
			}
			for _, member := range want {
				if !hasMember(reply.object(t), strings.Split(member, ".")) {
					t.Errorf("%s lacks %s: %s", path, member, reply.body)
				}
			}
		})
	}
}

// hasMember says whether a path of member names and indexes leads to something, null included.
func hasMember(value any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		member, found := value[path[0]]
		return found && hasMember(member, path[1:])
	case []any:
		var i int
		if err := json.Unmarshal([]byte(path[0]), &i); err != nil || i >= len(value) {
			return false
		}
		return hasMember(value[i], path[1:])
	default:
		return false
	}
}
