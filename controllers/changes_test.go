package controllers_test

import (
	"strings"
	"testing"
)

// TestWhatMayChange asks the API server, since nothing but it judges changes.
func TestWhatMayChange(t *testing.T) {
	const redisIsImmutable = "is immutable but for its certificates and dedicated.memory, because the events would stay behind in the other Redis; back them up, make a new Property and restore them instead"
	const historyIsImmutable = "because the past would stay behind in the other server; change the URL in the Secret where the same server has moved"
	namespace := newNamespace(t)
	for sentence, test := range map[string]struct {
		before, after string
		want          string // in the refusal; "" where the change is let through
	}{
		"nothing need change":              {before: "timeZone: Europe/Paris", after: "timeZone: Europe/Paris"},
		"the time zone may change":         {before: "timeZone: Europe/Paris", after: "timeZone: UTC"},
		"platforms may come and go":        {before: "platforms: [{name: a, type: Log}]", after: "platforms: [{name: b, type: Log}]"},
		"platforms may be reordered":       {before: "platforms: [{name: a, type: Log}, {name: b, type: Webhook, webhook: {url: 'http://b'}, credentialsSecretRef: {name: s}}]", after: "platforms: [{name: b, type: Webhook, webhook: {url: 'http://b'}, credentialsSecretRef: {name: s}}, {name: a, type: Log}]"},
		"a platform's settings may change": {before: "platforms: [{name: a, type: Log}]", after: "platforms: [{name: a, type: Log, suspend: true}]"},
		"a platform's type is immutable per name": {
			before: "platforms: [{name: a, type: Log}]",
			after:  "platforms: [{name: a, type: Meta, meta: {pixelID: '1'}, credentialsSecretRef: {name: s}}]",
			want:   "is immutable, because delivery records go by the platform's name; add a platform of another name instead",
		},
		"a Redis may not come":                      {before: "", after: "redis: {urlSecretKeyRef: {name: r, key: url}}", want: redisIsImmutable},
		"a Redis may not go":                        {before: "redis: {urlSecretKeyRef: {name: r, key: url}}", after: "", want: redisIsImmutable},
		"a Redis may not change":                    {before: "redis: {urlSecretKeyRef: {name: r, key: url}}", after: "redis: {urlSecretKeyRef: {name: r2, key: url}}", want: redisIsImmutable},
		"its certificates may come":                 {before: "redis: {urlSecretKeyRef: {name: r, key: url}}", after: "redis: {urlSecretKeyRef: {name: r, key: url}, caSecretRef: {name: ca}}"},
		"its certificates may change":               {before: "redis: {urlSecretKeyRef: {name: r, key: url}, caSecretRef: {name: ca}}", after: "redis: {urlSecretKeyRef: {name: r, key: url}, caSecretRef: {name: ca, key: root.pem}, clientCertificateSecretRef: {name: c}}"},
		"its certificates may go":                   {before: "redis: {urlSecretKeyRef: {name: r, key: url}, clientCertificateSecretRef: {name: c}}", after: "redis: {urlSecretKeyRef: {name: r, key: url}}"},
		"a history may come":                        {before: "history: {}", after: "history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: s, key: url}}}"},
		"a history may go":                          {before: "history: {type: ClickHouse}", after: "history: {type: Memory}"},
		"a history may be kept for longer":          {before: "history: {type: ClickHouse}", after: "history: {type: ClickHouse, clickHouse: {retentionDays: 2000}}"},
		"a history may not move to another Secret":  {before: "history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: s, key: url}}}", after: "history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: other, key: url}}}", want: historyIsImmutable},
		"a history may not move to the operator's":  {before: "history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: s, key: url}}}", after: "history: {type: ClickHouse}", want: historyIsImmutable},
		"a history's certificates may come":         {before: "history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: s, key: url}}}", after: "history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: s, key: url}, caSecretRef: {name: ca}}}"},
		"a history may not spread over a cluster":   {before: "history: {type: ClickHouse}", after: "history: {type: ClickHouse, clickHouse: {cluster: b}}", want: "because tables cannot be made of another kind"},
		"a history may not move to another cluster": {before: "history: {type: ClickHouse, clickHouse: {cluster: a}}", after: "history: {type: ClickHouse, clickHouse: {cluster: b}}", want: "because tables cannot be made of another kind"},
		"a Redis may stay":                          {before: "redis: {urlSecretKeyRef: {name: r, key: url}}", after: "redis: {urlSecretKeyRef: {name: r, key: url}}\ntimeZone: Asia/Tokyo"},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := refusal(t, namespace, "Property", false, "currency: EUR\n"+test.before, "currency: EUR\n"+test.after)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want a refusal with %q", err, test.want)
			}
		})
	}
}
