package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/weir-dev/weir/api/validation"
	"github.com/weir-dev/weir/collector/auth"
)

// document makes a Property with the given members of its spec, and the currency that every one needs.
func document(t *testing.T, spec string) map[string]any {
	t.Helper()
	return parse(t, "apiVersion: weir.dev/v1alpha1\nkind: Property\nmetadata: {name: shop, namespace: default}\nspec:\n  currency: EUR\n"+indent(spec))
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := utilyaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return object
}

// describe returns "field: message" for every error.
func describe(errs field.ErrorList) []string {
	var lines []string
	for _, fieldErr := range validation.Describe(errs) {
		if fieldErr.Field == "" {
			lines = append(lines, fieldErr.Detail)
		} else {
			lines = append(lines, fieldErr.Field+": "+fieldErr.Detail)
		}
	}
	return lines
}

// rule is what a new Property's spec is answered; no want means that it is accepted.
type rule struct {
	spec string
	want []string
}

func testRules(t *testing.T, rules map[string]rule) {
	t.Helper()
	validator := sharedValidator(t)
	for sentence, test := range rules {
		t.Run(sentence, func(t *testing.T) {
			_, errs := validator.Create(t.Context(), document(t, test.spec))
			if diff := cmp.Diff(test.want, describe(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// identifiersTooLong is what identifiers are answered that would outlast the events.
const identifiersTooLong = "spec.retention.identifiersDays: must be at most retention.days, or where history.type is ClickHouse at most history.clickHouse.retentionDays"

func TestNamesAndMetadata(t *testing.T) {
	const badName = "metadata.name must be at most 40 lower-case letters, digits and '-', with a letter first and no '-' at the end, such as shop"
	for sentence, test := range map[string]struct {
		metadata string
		want     []string
	}{
		"a name of one letter is accepted":         {metadata: "name: s"},
		"a name of 40 characters is accepted":      {metadata: "name: a" + strings.Repeat("b", 39)},
		"a name of 41 characters is refused":       {metadata: "name: a" + strings.Repeat("b", 40), want: []string{badName}},
		"a name with a digit first is refused":     {metadata: "name: 2shop", want: []string{badName}},
		"an upper-case name is refused":            {metadata: "name: Shop", want: []string{badName}},
		"a name with a dot is refused":             {metadata: "name: shop.de", want: []string{badName}},
		"a missing name is refused":                {metadata: "labels: {a: b}", want: []string{"metadata.name: name or generateName is required"}},
		"a name that is a number is refused":       {metadata: "name: 7", want: []string{"metadata: must be object metadata: name, namespace, labels and annotations, all of them text"}},
		"an unknown member of metadata is refused": {metadata: "name: shop\n  lables: {a: b}", want: []string{"metadata.lables: is no field of object metadata"}},
		"a label that is none is refused": {metadata: "name: shop\n  labels: {a: '-'}", want: []string{
			"metadata.labels: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			object := parse(t, "apiVersion: weir.dev/v1alpha1\nkind: Property\nmetadata:\n  namespace: default\n  "+test.metadata+"\nspec: {currency: EUR}")
			_, errs := sharedValidator(t).Create(t.Context(), object)
			if diff := cmp.Diff(test.want, describe(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShapeIsChecked(t *testing.T) {
	validator := sharedValidator(t)
	const head = "apiVersion: weir.dev/v1alpha1\nkind: Property\nmetadata: {name: shop, namespace: default}\n"
	for sentence, test := range map[string]struct {
		text string
		want []string
	}{
		"a Property without a spec is refused":       {text: head, want: []string{"spec: is required"}},
		"a Property without a currency is refused":   {text: head + "spec: {}", want: []string{"spec.currency: is required"}},
		"a spec that is a list is refused":           {text: head + "spec: []", want: []string{"spec: must be of type object"}},
		"a status is left out, as on creation":       {text: head + "spec: {currency: EUR}\nstatus: {colour: green}"},
		"an unknown member beside the spec is named": {text: head + "spec: {currency: EUR}\nspecs: {}", want: []string{"specs: is no field here; the fields are apiVersion, kind, metadata, spec, status"}},
		"an unknown member of a list's item is named with those that there are": {
			text: head + "spec: {currency: EUR, apiKeys: [{name: a, ref: b}]}",
			want: []string{"spec.apiKeys[0].ref: is no field here; the fields are allowedOrigins, limits, name, secretKeyRef, type"},
		},
		"every error is named, not the first alone": {
			text: head + "spec: {currency: EUR, deletionPolicy: Keep, retention: {days: 0}, collector: {image: evil}}",
			want: []string{
				"spec.collector.image: is no field here; the fields are affinity, autoscaling, imagePullSecrets, nodeSelector, podAnnotations, replicas, resources, tolerations, topologySpreadConstraints",
				`spec.deletionPolicy: must be one of "Retain", "Delete"`,
				"spec.retention.days: should be greater than or equal to 1",
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, errs := validator.Create(t.Context(), parse(t, test.text))
			if diff := cmp.Diff(test.want, describe(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCurrencyAndTimeZone(t *testing.T) {
	const badZone = "spec.timeZone: must be an IANA time zone, such as Europe/Berlin or UTC"
	testRules(t, map[string]rule{
		"Europe/Berlin is a time zone":           {spec: "timeZone: Europe/Berlin"},
		"a zone of three parts is one":           {spec: "timeZone: America/Argentina/Buenos_Aires"},
		"Etc/GMT+5 is one":                       {spec: "timeZone: Etc/GMT+5"},
		"a misspelt zone is refused":             {spec: "timeZone: Europe/Berln", want: []string{badZone}},
		"an offset is none: it knows no summer":  {spec: "timeZone: '+02:00'", want: []string{badZone}},
		"the machine's own zone is refused":      {spec: "timeZone: Local", want: []string{badZone}},
		"a zone that climbs out of the database": {spec: "timeZone: A/../../etc/passwd", want: []string{badZone}},
		"an empty zone is refused":               {spec: "timeZone: ''", want: []string{badZone}},
	})
	for currency, want := range map[string][]string{
		"EUR": nil,
		"eur": {"spec.currency: must be an ISO 4217 currency code in capitals, such as EUR"},
		"EU":  {"spec.currency: must be an ISO 4217 currency code in capitals, such as EUR"},
		"7":   {"spec.currency: must be of type string"},
	} {
		object := parse(t, "apiVersion: weir.dev/v1alpha1\nkind: Property\nmetadata: {name: shop, namespace: default}\nspec: {currency: "+currency+"}")
		_, errs := sharedValidator(t).Create(t.Context(), object)
		if diff := cmp.Diff(want, describe(errs)); diff != "" {
			t.Errorf("currency %s: errors (-want +got):\n%s", currency, diff)
		}
	}
}

func TestKeysTokensAndAliases(t *testing.T) {
	const (
		noOrigins    = "spec.apiKeys[0].allowedOrigins: must be set where type is Publishable, and only there, such as [https://www.example.com]"
		badKeyName   = "spec.apiKeys[0].name: must be lower-case letters, digits and '-', with no '-' at either end, such as server"
		badTokenName = "spec.accessTokens[0].name: must be lower-case letters, digits and '-', with no '-' at either end, such as bi"
		badAlias     = "spec.eventAliases: must map from event names of 1 to 100 characters without control characters or space around them"
		badTarget    = "spec.eventAliases: must map to event names of 1 to 100 characters without control characters or space around them"
	)
	testRules(t, map[string]rule{
		"two keys make a rotation":                     {spec: "apiKeys: [{name: a}, {name: b}]"},
		"no key at all revokes every one":              {spec: "apiKeys: []"},
		"a key may be brought":                         {spec: "apiKeys: [{name: a, secretKeyRef: {name: s, key: k}}]"},
		"a brought key needs the Secret's key":         {spec: "apiKeys: [{name: a, secretKeyRef: {name: s}}]", want: []string{"spec.apiKeys[0].secretKeyRef.key: is required"}},
		"a Secret's name is not empty":                 {spec: "apiKeys: [{name: a, secretKeyRef: {name: '', key: k}}]", want: []string{"spec.apiKeys[0].secretKeyRef.name: should be at least 1 chars long", "spec.apiKeys[0].secretKeyRef.name: must be the name of a Secret: lower-case letters, digits, '-' and '.', with a letter or digit at either end, such as shop-keys"}},
		"a key needs a name":                           {spec: "apiKeys: [{}]", want: []string{"spec.apiKeys[0].name: is required"}},
		"two keys of one name are refused":             {spec: "apiKeys: [{name: a}, {name: a}]", want: []string{"spec.apiKeys[1]: repeats an earlier item; must be unique"}},
		"a key's value in place of its name":           {spec: "apiKeys: [{name: wk_0000}]", want: []string{badKeyName}},
		"a key in place of an item is not repeated":    {spec: "apiKeys: [wk_0000]", want: []string{"spec.apiKeys[0]: must be of type object"}},
		"a name of 41 characters is refused":           {spec: "apiKeys: [{name: " + strings.Repeat("a", 41) + "}]", want: []string{"spec.apiKeys[0].name: may not be more than 40 bytes"}},
		"a secret key may say so":                      {spec: "apiKeys: [{name: a, type: Secret}]"},
		"a publishable key has origins":                {spec: "apiKeys: [{name: a, type: Publishable, allowedOrigins: ['https://www.example.com', 'https://*.example.com', 'http://localhost:3000']}]"},
		"a publishable key may have limits":            {spec: "apiKeys: [{name: a, type: Publishable, allowedOrigins: ['https://a.example'], limits: {eventsPerSecond: 500, eventsPerSecondPerAddress: 50}}]"},
		"a publishable key without origins is refused": {spec: "apiKeys: [{name: a, type: Publishable}]", want: []string{noOrigins}},
		"a publishable key of no origins is refused":   {spec: "apiKeys: [{name: a, type: Publishable, allowedOrigins: []}]", want: []string{"spec.apiKeys[0].allowedOrigins: should have at least 1 items"}},
		"a secret key is for no origin":                {spec: "apiKeys: [{name: a, allowedOrigins: ['https://a.example']}]", want: []string{noOrigins}},
		"a secret key has no limits of its own":        {spec: "apiKeys: [{name: a, type: Secret, limits: {eventsPerSecond: 5}}]", want: []string{"spec.apiKeys[0].limits: must be absent unless type is Publishable; spec.limits is for secret keys"}},
		"a key of another type is refused":             {spec: "apiKeys: [{name: a, type: Public}]", want: []string{`spec.apiKeys[0].type: must be one of "Secret", "Publishable"`}},
		"an origin that stands twice is refused":       {spec: "apiKeys: [{name: a, type: Publishable, allowedOrigins: ['https://a.example', 'https://a.example']}]", want: []string{"spec.apiKeys[0].allowedOrigins[1]: repeats an earlier item; must be unique"}},
		"17 keys are too many":                         {spec: "apiKeys: [" + repeated(17, "{name: n%d}") + "]", want: []string{"spec.apiKeys: must have at most 16 items"}},

		"a token with scope and expiry is accepted": {spec: `accessTokens: [{name: ops, scope: admin, expirationTime: "2027-01-01T00:00:00Z"}]`},
		"a token that has expired is accepted":      {spec: `accessTokens: [{name: ops, expirationTime: "2001-01-01T00:00:00Z"}]`},
		"an expiry without a time is refused":       {spec: `accessTokens: [{name: ops, expirationTime: "2027-01-01"}]`, want: []string{"spec.accessTokens[0].expirationTime: must be of type date-time"}},
		"an unknown scope is refused":               {spec: "accessTokens: [{name: ops, scope: root}]", want: []string{`spec.accessTokens[0].scope: must be one of "read", "write", "admin"`}},
		"a token's name is a label":                 {spec: "accessTokens: [{name: -bi}]", want: []string{badTokenName}},
		"two tokens of one name are refused":        {spec: "accessTokens: [{name: a}, {name: a, scope: write}]", want: []string{"spec.accessTokens[1]: repeats an earlier item; must be unique"}},

		"aliases may have spaces within":             {spec: "eventAliases: {Page View: pageview}"},
		"an alias of 100 characters is accepted":     {spec: "eventAliases: {" + strings.Repeat("ü", 100) + ": pageview}"},
		"an alias of 101 characters is refused":      {spec: "eventAliases: {" + strings.Repeat("a", 101) + ": pageview}", want: []string{badAlias}},
		"an empty alias is refused":                  {spec: `eventAliases: {"": pageview}`, want: []string{badAlias}},
		"a control character in an alias is refused": {spec: `eventAliases: {"a\tb": pageview}`, want: []string{badAlias}},
		"space around an alias's target is refused":  {spec: `eventAliases: {a: " pageview"}`, want: []string{badTarget}},
		"an alias's target of 101 characters":        {spec: "eventAliases: {a: " + strings.Repeat("a", 101) + "}", want: []string{"spec.eventAliases.a: may not be more than 100 bytes"}},
		"an empty target is refused":                 {spec: `eventAliases: {a: ""}`, want: []string{badTarget, "spec.eventAliases.a: should be at least 1 chars long"}},
		"101 aliases are too many":                   {spec: "eventAliases: {" + repeated(101, "a%d: b") + "}", want: []string{"spec.eventAliases: must have at most 100 items"}},
	})
}

func TestRetentionAndLimits(t *testing.T) {
	testRules(t, map[string]rule{
		"the widest values are accepted":                {spec: "retention: {days: 731, maxEvents: 1000000000}\ndeduplication: {windowHours: 17544}\nlimits: {eventsPerSecond: 1000000, maxBodyBytes: 1048576}"},
		"a window as long as the retention is accepted": {spec: "retention: {days: 7}\ndeduplication: {windowHours: 168}"},
		"a window beyond the retention is refused": {
			spec: "retention: {days: 7}\ndeduplication: {windowHours: 169}",
			want: []string{"spec.deduplication.windowHours: must be at most 24 times retention.days; lower it along with the retention"},
		},
		"the default window beyond the retention is refused": {
			spec: "retention: {days: 3}",
			want: []string{"spec.deduplication.windowHours: must be at most 24 times retention.days; lower it along with the retention"},
		},
		"identifiers kept as long as the events are accepted": {spec: "retention: {days: 30, identifiersDays: 30}"},
		"identifiers kept longer than the events are refused": {
			spec: "retention: {days: 30, identifiersDays: 31}", want: []string{identifiersTooLong},
		},
		"identifiers kept longer than the default of days are refused": {
			spec: "retention: {identifiersDays: 63}", want: []string{identifiersTooLong},
		},
		"a window of no hours is refused":      {spec: "deduplication: {windowHours: 0}", want: []string{"spec.deduplication.windowHours: should be greater than or equal to 1"}},
		"a retention above two years":          {spec: "retention: {days: 732}", want: []string{"spec.retention.days: should be less than or equal to 731"}},
		"half a day is refused":                {spec: "retention: {days: 0.5}", want: []string{"spec.retention.days: must be of type int32"}},
		"fewer than 1000 events are refused":   {spec: "retention: {maxEvents: 999}", want: []string{"spec.retention.maxEvents: should be greater than or equal to 1000"}},
		"a rate of 0 is refused":               {spec: "limits: {eventsPerSecond: 0}", want: []string{"spec.limits.eventsPerSecond: should be greater than or equal to 1"}},
		"a body under 1 KiB is refused":        {spec: "limits: {maxBodyBytes: 1023}", want: []string{"spec.limits.maxBodyBytes: should be greater than or equal to 1024"}},
		"a body over 1 MiB is refused":         {spec: "limits: {maxBodyBytes: 1048577}", want: []string{"spec.limits.maxBodyBytes: should be less than or equal to 1048576"}},
		"events of the erased may be refused":  {spec: "suppression: Refuse"},
		"an unknown suppression is refused":    {spec: "suppression: Drop", want: []string{`spec.suppression: must be one of "Anonymize", "Refuse"`}},
		"an unknown deletionPolicy is refused": {spec: "deletionPolicy: Orphan", want: []string{`spec.deletionPolicy: must be one of "Retain", "Delete"`}},
		"a Redis of the Property's own":        {spec: "redis: {urlSecretKeyRef: {name: r, key: url}}"},
		"a Redis without a Secret is refused":  {spec: "redis: {}", want: []string{"spec.redis.dedicated: must be set where urlSecretKeyRef is not, and only there, such as {storage: 8Gi, memory: 640Mi}"}},
		"a Redis that the operator makes":      {spec: "redis: {dedicated: {storage: 8Gi, memory: 640Mi, storageClassName: fast}}"},
		"a Redis that is brought and made is refused": {spec: "redis: {urlSecretKeyRef: {name: r, key: url}, dedicated: {storage: 8Gi, memory: 640Mi}}",
			want: []string{"spec.redis.dedicated: must be set where urlSecretKeyRef is not, and only there, such as {storage: 8Gi, memory: 640Mi}"}},
		"a Redis without memory is refused":  {spec: "redis: {dedicated: {storage: 8Gi}}", want: []string{"spec.redis.dedicated.memory: is required"}},
		"a Redis URL in the open is refused": {spec: "redis: {url: 'redis://:secret@r'}", want: []string{"spec.redis.dedicated: must be set where urlSecretKeyRef is not, and only there, such as {storage: 8Gi, memory: 640Mi}", "spec.redis.url: is no field here; the fields are caSecretRef, clientCertificateSecretRef, dedicated, urlSecretKeyRef"}},
	})
}

// TestOriginsAreJudgedAsThePodsJudgeThem compares the definition's rule with the collector's.
func TestOriginsAreJudgedAsThePodsJudgeThem(t *testing.T) {
	validator := sharedValidator(t)
	for _, origin := range []string{
		"https://www.example.com", "https://example.com", "http://localhost", "http://localhost:3000", "http://127.0.0.1:8080", "https://*.example.com",
		"https://*.example.com:8443", "https://xn--bcher-kva.example", "https://example.com:80", "http://example.com:443",
		"", "*", "null", "example.com", "https://", "https://www.example.com/", "https://www.example.com:443", "http://www.example.com:80",
		"https://www.example.com:0", "https://www.example.com:", "https://WWW.example.com", "ftp://example.com", "https://*", "https://*.com",
		"https://w*.example.com", "https://*.*.example.com", "https://user@example.com", "https://example..com", "https://bücher.example",
		"https://www.example.com ", "https://-a.example.com", "https://example.com:123456", "https://example.com\n",
	} {
		_, errs := validator.Create(t.Context(), document(t, fmt.Sprintf("apiKeys: [{name: a, type: Publishable, allowedOrigins: [%q]}]", origin)))
		var want []string
		if !auth.ValidOrigin(origin) {
			want = []string{"spec.apiKeys[0].allowedOrigins[0]: " + auth.OriginRule}
		}
		if diff := cmp.Diff(want, describe(errs)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", origin, diff)
		}
	}
}
