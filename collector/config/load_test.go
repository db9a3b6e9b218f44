package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/bits"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // as in the programs, so that zones do not depend on the machine

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/collector/stream"
)

const fullProperty = `{
	"namespace": "default", "name": "shop", "currency": "EUR", "timeZone": "Europe/Berlin",
	"eventAliases": {"page_view": "pageview"},
	"deduplicationWindowHours": 168,
	"retention": {"days": 62, "maxEvents": 10000000},
	"limits": {"eventsPerSecond": 500, "maxBodyBytes": 65536},
	"platforms": [
		{"name": "meta", "type": "Meta", "meta": {"pixelID": "1234567890", "testEventCode": "TEST1"}, "events": ["purchase"]},
		{"name": "crm", "type": "Webhook", "webhook": {"url": "https://crm.example.com/hook"}, "suspend": true},
		{"name": "console", "type": "Log"}
	],
	"sources": [
		{"name": "shopify", "type": "Shopify", "readsOrders": true, "url": "https://example.myshopify.com"},
		{"name": "stripe", "type": "Stripe", "stripe": {"purchases": "PaymentIntents"}}
	],
	"suppression": "Refuse",
	"egress": {"allowCIDRs": ["10.0.0.0/8", "fd00::/8"]},
	"proxies": {"trustedCIDRs": ["192.0.2.0/24"]}
}`

// directory writes files below a new directory.
func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, content := range files {
		write(t, filepath.Join(dir, path), content)
	}
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLoadReadsAProperty(t *testing.T) {
	got, err := config.Load(directory(t, map[string]string{config.PropertyFile: fullProperty}))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Property{
		Namespace: "default", Name: "shop", Currency: "EUR", TimeZone: "Europe/Berlin",
		EventAliases:             map[string]string{"page_view": "pageview"},
		DeduplicationWindowHours: 168,
		Retention:                config.Retention{Days: 62, MaxEvents: 10_000_000},
		Limits:                   config.Limits{EventsPerSecond: 500, MaxBodyBytes: 65536},
		Suppression:              config.Refuse,
		Platforms: []platforms.Platform{
			{Name: "meta", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1234567890", TestEventCode: "TEST1"}}, Events: []string{"purchase"}},
			{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://crm.example.com/hook"}}, Suspend: true},
			{Name: "console", Type: platforms.TypeLog},
		},
		Sources: []sources.Source{
			{Name: "shopify", Type: sources.Shopify, ReadsOrders: true, Settings: sources.Settings{URL: "https://example.myshopify.com"}},
			{Name: "stripe", Type: sources.Stripe, Settings: sources.Settings{Stripe: &sources.StripeSettings{Purchases: sources.PaymentIntents}}},
		},
		Egress:  config.Egress{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}},
		Proxies: config.Proxies{TrustedCIDRs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Error(diff)
	}
	if got, want := got.DeduplicationWindow(), 7*24*time.Hour; got != want {
		t.Errorf("deduplication window: got %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"meta", "crm", "console"}, got.PlatformNames()); diff != "" {
		t.Error(diff)
	}
}

func TestLoadNamesTheFieldAndWhatWouldBeRight(t *testing.T) {
	for name, c := range map[string]struct {
		old, replacement string
		want             string
	}{
		"an unknown member":                                {`"retention": {`, `"retention": {"weeks": 9, `, "retention.weeks: is not known to this version"},
		"an unknown member of a platform":                  {`"suspend": true`, `"paused": true`, "platforms[1].paused: is not known to this version"},
		"another case of a known member":                   {`"currency"`, `"Currency"`, "Currency: is not known to this version"},
		"a member twice":                                   {`"name": "shop"`, `"name": "shop", "name": "shop"`, "name: must be JSON"},
		"a text that is no Unicode, which is not repeated": {`"currency": "EUR"`, `"currency": "\ud800hush"`, "currency: must be JSON, but at byte 56 it is not"},
		"no JSON":                     {`"currency": "EUR",`, `"currency": EUR,`, "currency: must be JSON, but at byte"},
		"text where a number belongs": {`168`, `"168"`, "deduplicationWindowHours: must be a whole number"},
		"a fraction where a whole number belongs": {`168`, `1.5`, "deduplicationWindowHours: "},
		"a number where text belongs":             {`"EUR"`, `978`, "currency: must be a string"},
		"a version for a type that has none":      {`"type": "Log"`, `"type": "Log", "apiVersion": "v1"`, "platforms[2].apiVersion: must be absent: the types that let one choose a version are"},
		"a version in another form":               {`"type": "Meta"`, `"type": "Meta", "apiVersion": "v25.0/me"`, "platforms[0].apiVersion: must be a version as Meta writes it, such as"},
		"erasures for a type that takes none":     {`"type": "Log"`, `"type": "Log", "forwardErasure": true`, "platforms[2].forwardErasure: must be absent or false: the types that have an interface for erasures are Mixpanel"},
		"text where a truth value belongs":        {`"suspend": true`, `"suspend": "yes"`, "platforms[1].suspend: must be true or false"},
		"an object where an array belongs":        {`["purchase"]`, `{}`, "platforms[0].events: must be an array"},
		"an array where an object belongs":        {`"limits": {"eventsPerSecond": 500, "maxBodyBytes": 65536}`, `"limits": []`, "limits: must be an object"},
		"no namespace":                            {`"namespace": "default", `, ``, "namespace: must be lower-case letters"},
		"a name that begins with a digit":         {`"shop"`, `"1shop"`, "name: must be at most 40 lower-case letters"},
		"a name of 41 characters":                 {`"shop"`, `"` + strings.Repeat("a", 41) + `"`, "name: must be at most 40"},
		"a currency in small letters":             {`"EUR"`, `"eur"`, "currency: must be an ISO 4217 code in capitals"},
		"an unknown currency":                     {`"EUR"`, `"XXY"`, "currency: must be an ISO 4217 code"},
		"an unknown time zone":                    {`Europe/Berlin`, `Europe/Bonn`, "timeZone: must be an IANA time zone"},
		"the machine's own time zone":             {`Europe/Berlin`, `Local`, "timeZone: must be an IANA time zone"},
		"no time zone":                            {`Europe/Berlin`, ``, "timeZone: must be an IANA time zone"},
		"an alias of nothing":                     {`"page_view": "pageview"`, `"page_view": ""`, `eventAliases["page_view"]: must map one event name to another`},
		"an alias with space around it":           {`"page_view": "pageview"`, `"page_view ": "pageview"`, `eventAliases["page_view "]: must map`},
		"a window longer than the retention":      {`168`, `1489`, "deduplicationWindowHours: must be at most the hours of retention.days"},
		"no window":                               {`168`, `0`, "deduplicationWindowHours: must be at least 1"},
		"no retention":                            {`"days": 62`, `"days": 0`, "retention.days: must be at least 1"},
		"a history shorter than Redis":            {`"retention": {`, `"history": {"retentionDays": 61}, "retention": {`, "history.retentionDays: must be at least retention.days"},
		"identifiers kept longer than a history":  {`"retention": {`, `"history": {"retentionDays": 400}, "retention": {"identifiersDays": 401, `, "retention.identifiersDays: must be at least 1 and at most history.retentionDays, or absent for that"},
		"identifiers kept longer than events":     {`"days": 62`, `"days": 62, "identifiersDays": 63`, "retention.identifiersDays: must be at least 1 and at most retention.days, or absent for that"},
		"devices kept for a negative time":        {`"days": 62`, `"days": 62, "deviceHours": -1`, "retention.deviceHours: must be at least 1, or absent for the default"},
		"no event retained":                       {`"maxEvents": 10000000`, `"maxEvents": 0`, "retention.maxEvents: must be at least 1"},
		"a negative rate":                         {`500`, `-1`, "limits.eventsPerSecond: must be at least 1, or absent"},
		"no body":                                 {`65536`, `0`, "limits.maxBodyBytes: must be at least 1"},
		"an unknown suppression":                  {`"Refuse"`, `"Forget"`, "suppression: must be Anonymize or Refuse, or absent for Anonymize"},
		"no address range":                        {`10.0.0.0/8`, `10.0.0.0`, "egress.allowCIDRs[0]: "},
		"a proxy that is no range":                {`192.0.2.0/24`, `192.0.2.1`, "proxies.trustedCIDRs[0]: "},
		"two platforms of one name":               {`"name": "crm"`, `"name": "meta"`, "platforms[1].name: must be unique"},
		"a platform's name with a path in it":     {`"name": "crm"`, `"name": "../crm"`, "platforms[1].name: must be lower-case letters"},
		"another word for what is absent":         {`"retention": {`, `"consent": {"whenAbsent": "Drop"}, "retention": {`, "consent.whenAbsent: must be Send or Withhold, or absent"},
		"an origin of the read API with a path":   {`"retention": {`, `"query": {"allowedOrigins": ["https://a.example/"]}, "retention": {`, "query.allowedOrigins[0]: must be an origin as browsers send it"},
		"a category of an unknown purpose":        {`"retention": {`, `"consent": {"categories": {"a": ["sale", "ads"]}}, "retention": {`, `consent.categories["a"][1]: must be one of ad_storage, ad_user_data, ad_personalization, analytics_storage, sale`},
		"a category without a name":               {`"retention": {`, `"consent": {"categories": {"": []}}, "retention": {`, `consent.categories[""]: must be 1 to 100 characters`},
		"a rule of a platform that there is not":  {`"retention": {`, `"consent": {"platforms": [{"name": "tiktok"}]}, "retention": {`, "consent.platforms[0].name: must be the name of one of the platforms"},
		"two rules of one platform":               {`"retention": {`, `"consent": {"platforms": [{"name": "meta"}, {"name": "meta"}]}, "retention": {`, "consent.platforms[1].name: must be unique"},
		"a platform that requires the unknown":    {`"retention": {`, `"consent": {"platforms": [{"name": "meta", "requires": ["ads"]}]}, "retention": {`, "consent.platforms[0].requires[0]: must be one of"},
		"an unknown source type":                  {`"type": "Stripe"`, `"type": "Pigeon"`, "sources[1].type: must be one of Shopify, Stripe, WooCommerce"},
		"two sources of one name":                 {`"name": "stripe"`, `"name": "shopify"`, "sources[1].name: must be unique among the sources"},
		"a source's name that is no path":         {`"name": "stripe"`, `"name": "../auth"`, "sources[1].name: must be lower-case"},
		"a source without its shop's URL":         {`, "url": "https://example.myshopify.com"`, ``, "sources[0].url: must be set where orders are read"},
		"a source's URL with a password":          {`https://example.myshopify.com`, `https://a:hush@example.myshopify.com`, "sources[0].url: must be an https URL with a host"},
		"settings of another source type":         {`"type": "Stripe"`, `"type": "WooCommerce"`, "sources[1].stripe: must be absent unless type is Stripe"},
		"an unknown kind of purchases":            {`PaymentIntents`, `Invoices`, "sources[1].stripe.purchases: must be one of CheckoutSessions, PaymentIntents, or absent"},
		"an unknown platform type":                {`"type": "Log"`, `"type": "Pigeon"`, "platforms[2].type: must be one of " + strings.Trim(strings.ReplaceAll(fmt.Sprint(platforms.Types()), " ", ", "), "[]")},
		"a platform without its member":           {`"webhook": {"url": "https://crm.example.com/hook"}, `, ``, "platforms[1].webhook: must be set for a platform of type Webhook"},
		"a platform with another's member":        {`"type": "Log"`, `"type": "Log", "meta": {"pixelID": "1"}`, "platforms[2].meta: must be absent for a platform of type Log"},
		"a pixel that is no number":               {`1234567890`, `12-34`, "platforms[0].meta.pixelID: must be the digits"},
		"a test code with space in it":            {`TEST1`, `TEST 1`, "platforms[0].meta.testEventCode: must be a code of Meta's Events Manager"},
		"a webhook to no web address":             {`https://crm.example.com/hook`, `ftp://crm.example.com/hook`, "platforms[1].webhook.url: must be an http or https URL"},
		"a webhook without a host":                {`https://crm.example.com/hook`, `https:///hook`, "platforms[1].webhook.url: must be an http or https URL"},
		"an endpoint that is none":                {`"type": "Meta"`, `"type": "Meta", "endpoint": "graph.example.com"`, "platforms[0].endpoint: must be an http or https URL"},
		"an empty event name":                     {`["purchase"]`, `["purchase", ""]`, "platforms[0].events[1]: must be an event name"},
		"an event name with a control character":  {`["purchase"]`, `["pur\u0007chase"]`, "platforms[0].events[0]: must be an event name"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(fullProperty, c.old) {
				t.Fatalf("the property does not hold %s", c.old)
			}
			text := strings.Replace(fullProperty, c.old, c.replacement, 1)
			_, err := config.Load(directory(t, map[string]string{config.PropertyFile: text}))
			if err == nil {
				t.Fatalf("got no error, want %q", c.want)
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("the error repeats a value: %q", err)
			}
			if want := config.PropertyFile + ": " + c.want; !strings.Contains(err.Error(), want) {
				t.Errorf("got  %q\nwant %q", err, want)
			}
		})
	}
}

func TestValidateReportsEveryError(t *testing.T) {
	err := new(config.Property).Validate()
	if err == nil {
		t.Fatal("an empty property is valid")
	}
	for _, field := range []string{"namespace", "name", "currency", "timeZone", "deduplicationWindowHours", "retention.days", "retention.maxEvents", "limits.maxBodyBytes"} {
		if !strings.Contains("\n"+err.Error(), "\n"+field+": must ") {
			t.Errorf("%s is not reported in %q", field, err)
		}
	}
}

func TestLoadSaysWhichFileIsMissing(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		load func() error
		want string
	}{
		"the property":      {func() error { _, err := config.Load(dir); return err }, config.PropertyFile},
		"the API keys":      {func() error { _, err := config.LoadAPIKeys(dir); return err }, config.APIKeysFile},
		"the access tokens": {func() error { _, err := config.LoadAccessTokens(dir); return err }, config.AccessTokensFile},
		"the Redis URL":     {func() error { _, err := config.LoadRedis(dir); return err }, config.RedisURLFile},
		"the credentials":   {func() error { _, err := config.PlatformCredentials(dir, "crm"); return err }, "platforms/crm"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.load()
			if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), c.want+": ") {
				t.Errorf("got %v, want %s: and that it does not exist", err, c.want)
			}
		})
	}
}

func TestCredentialsAreReadByTheirHashes(t *testing.T) {
	hash, err := auth.HashOf("server-secret").MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	sum := string(hash)
	expires := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		file string
		text string
		want []auth.Credential
		err  string
	}{
		"an API key": {
			config.APIKeysFile, `[{"name": "server", "sha256": "` + sum + `"}]`,
			[]auth.Credential{{Name: "server", Hash: auth.HashOf("server-secret")}}, "",
		},
		"a publishable API key": {
			config.APIKeysFile, `[{"name": "web", "sha256": "` + sum + `", "publishable": {"allowedOrigins": ["https://*.example.com"], "eventsPerSecond": 100, "eventsPerSecondPerAddress": 10}}]`,
			[]auth.Credential{{Name: "web", Hash: auth.HashOf("server-secret"), Publishable: &auth.Publishable{
				AllowedOrigins: []string{"https://*.example.com"}, EventsPerSecond: 100, EventsPerSecondPerAddress: 10,
			}}}, "",
		},
		"no API keys: all have been revoked": {config.APIKeysFile, `[]`, []auth.Credential{}, ""},
		"an access token": {
			config.AccessTokensFile, `[{"name": "ops", "sha256": "` + sum + `", "scope": "admin", "expirationTime": "2027-01-01T00:00:00Z"}]`,
			[]auth.Credential{{Name: "ops", Hash: auth.HashOf("server-secret"), Scope: auth.ScopeAdmin, ExpirationTime: &expires}}, "",
		},
		"an API key with a scope":          {config.APIKeysFile, `[{"name": "server", "sha256": "` + sum + `", "scope": "read"}]`, nil, "[0].scope: must be absent"},
		"an access token without one":      {config.AccessTokensFile, `[{"name": "bi", "sha256": "` + sum + `"}]`, nil, "[0].scope: must be read, write or admin"},
		"an access token of another scope": {config.AccessTokensFile, `[{"name": "bi", "sha256": "` + sum + `", "scope": "root"}]`, nil, "[0].scope: must be read, write or admin"},
		"a publishable access token":       {config.AccessTokensFile, `[{"name": "bi", "sha256": "` + sum + `", "scope": "read", "publishable": {}}]`, nil, "[0].publishable: must be absent"},
		"a publishable key of any page":    {config.APIKeysFile, `[{"name": "web", "sha256": "` + sum + `", "publishable": {"eventsPerSecond": 1, "eventsPerSecondPerAddress": 1}}]`, nil, "[0].publishable.allowedOrigins: must not be empty"},
		"a publishable key for what is no origin": {config.APIKeysFile, `[{"name": "web", "sha256": "` + sum + `", "publishable": {"allowedOrigins": ["*"], "eventsPerSecond": 1, "eventsPerSecondPerAddress": 1}}]`, nil,
			"[0].publishable.allowedOrigins[0]: must be an origin as browsers send it"},
		"a publishable key without a rate": {config.APIKeysFile, `[{"name": "web", "sha256": "` + sum + `", "publishable": {"allowedOrigins": ["https://a.example"], "eventsPerSecondPerAddress": 1}}]`, nil,
			"[0].publishable.eventsPerSecond: must be at least 1"},
		"a publishable key without a rate of an address": {config.APIKeysFile, `[{"name": "web", "sha256": "` + sum + `", "publishable": {"allowedOrigins": ["https://a.example"], "eventsPerSecond": 1}}]`, nil,
			"[0].publishable.eventsPerSecondPerAddress: must be at least 1"},
		"a publishable key that is a secret one": {config.APIKeysFile, `[{"name": "web", "sha256": "` + sum + `", "publishable": {"allowedOrigins": ["https://a.example"], "eventsPerSecond": 1, "eventsPerSecondPerAddress": 1}}, ` +
			`{"name": "server", "sha256": "` + sum + `"}]`, nil, "[0]: must have another value than [1]"},
		"two of one name":                   {config.APIKeysFile, `[{"name": "a", "sha256": "` + sum + `"}, {"name": "a", "sha256": "` + sum + `"}]`, nil, `[1].name: "a" is used already`},
		"one without a name":                {config.APIKeysFile, `[{"sha256": "` + sum + `"}]`, nil, "[0].name: must not be empty"},
		"one without a hash":                {config.APIKeysFile, `[{"name": "server"}]`, nil, "[0].sha256: must be the SHA-256"},
		"the key itself instead of a hash":  {config.APIKeysFile, `[{"name": "server", "sha256": "server-secret"}]`, nil, "[0].sha256: a SHA-256 hash must be 64 hexadecimal digits"},
		"an expiration that is no time":     {config.AccessTokensFile, `[{"name": "bi", "sha256": "` + sum + `", "scope": "read", "expirationTime": "soon"}]`, nil, "[0].expirationTime: "},
		"an expiration that is a number":    {config.AccessTokensFile, `[{"name": "bi", "sha256": "` + sum + `", "scope": "read", "expirationTime": 1}]`, nil, "[0].expirationTime: "},
		"an unknown member":                 {config.APIKeysFile, `[{"name": "server", "sha256": "` + sum + `", "key": "server-secret"}]`, nil, "[0].key: is not known to this version"},
		"an object instead of the list":     {config.APIKeysFile, `{}`, nil, "the document: must be an array"},
		"a file that has been cut short":    {config.APIKeysFile, `[{"name": "server"`, nil, "must be JSON"},
		"a file larger than any Secret can": {config.APIKeysFile, `[` + strings.Repeat(" ", 1<<20) + `]`, nil, "must not be larger than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			load := config.LoadAPIKeys
			if c.file == config.AccessTokensFile {
				load = config.LoadAccessTokens
			}
			got, err := load(directory(t, map[string]string{c.file: c.text}))
			if c.err == "" {
				if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
					t.Errorf("%v\n%s", err, diff)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.file+": ") || !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %v, want %s: %s", err, c.file, c.err)
			}
			if strings.Contains(err.Error(), "server-secret") {
				t.Errorf("the error repeats a secret: %v", err)
			}
		})
	}
}

func TestRedisIsReachedAsTheFilesSayAndErrorsRepeatNothing(t *testing.T) {
	const address = "rediss://shop:pa55@redis:6379"
	authority := redistest.NewAuthority(t)
	certificate, key := authority.Sign(t, nil)
	for name, c := range map[string]struct {
		url   string
		files map[string]string
		want  config.Redis
		err   string
	}{
		"over TCP":                  {url: "redis://shop:pa55@redis:6379/0", want: config.Redis{URL: "redis://shop:pa55@redis:6379/0"}},
		"over TLS":                  {url: address, want: config.Redis{URL: address}},
		"over a Unix socket":        {url: "unix:///run/redis.sock", want: config.Redis{URL: "unix:///run/redis.sock"}},
		"with a line end behind it": {url: "redis://redis:6379\n", want: config.Redis{URL: "redis://redis:6379"}},
		"with an authority": {
			url: address, files: map[string]string{config.RedisCAFile: authority.PEM, config.RedisCertificateFile: "", config.RedisKeyFile: ""},
			want: config.Redis{URL: address, TLS: stream.TLS{CA: authority.PEM}},
		},
		"with a certificate": {
			url: address, files: map[string]string{config.RedisCertificateFile: certificate, config.RedisKeyFile: key},
			want: config.Redis{URL: address, TLS: stream.TLS{Certificate: certificate, Key: key}},
		},
		"an authority that is none":      {url: address, files: map[string]string{config.RedisCAFile: "pa55"}, err: "redis/ca.crt: the CA certificates cannot be used"},
		"an authority for TCP":           {url: "redis://redis:6379", files: map[string]string{config.RedisCAFile: authority.PEM}, err: "must begin with rediss://"},
		"a certificate without a key":    {url: address, files: map[string]string{config.RedisCertificateFile: certificate}, err: "redis/tls.crt, redis/tls.key: "},
		"an authority that is too large": {url: address, files: map[string]string{config.RedisCAFile: strings.Repeat("pa55", 1<<19)}, err: "redis/ca.crt: must not be larger"},
		"of another kind":                {url: "http://shop:pa55@redis:6379", err: "must begin with redis://, rediss:// or unix://"},
		"nothing":                        {url: "\n", err: "must begin with redis://"},
		"with a bad escape":              {url: "redis://shop:pa55%zz@redis:6379", err: "must be a URL such as"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{config.RedisURLFile: c.url}
			maps.Copy(files, c.files)
			got, err := config.LoadRedis(directory(t, files))
			if got != c.want || (err != nil) != (c.err != "") {
				t.Fatalf("got %q, %v, want %q, %q", got, err, c.want, c.err)
			}
			if err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "pa55")) {
				t.Errorf("got %v, want %s", err, c.err)
			}
		})
	}
}

func TestRedisIsReadAsItWasRendered(t *testing.T) {
	authority := redistest.NewAuthority(t)
	certificate, key := authority.Sign(t, nil)
	want := config.Redis{URL: "rediss://shop:pa55@redis:6379", TLS: stream.TLS{CA: authority.PEM, Certificate: certificate, Key: key}}
	files := map[string]string{}
	for path, content := range want.Files() {
		files[path] = string(content)
	}
	if got, err := config.LoadRedis(directory(t, files)); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestTheLedgerIsReadFromAllItsParts(t *testing.T) {
	at := time.Now().UTC().Truncate(time.Millisecond)
	// part is a ledger with somebody, by a salt.
	part := func(salt, digest byte) string {
		l := erasure.Ledger{Salt: erasure.Salt{salt}}
		l.Add(erasure.Entry{Digest: erasure.Digest{digest}, At: at})
		return string(l.Encode())
	}
	for name, test := range map[string]struct {
		files map[string]string
		// want is how many identifiers there are, -1 for no ledger.
		want int
		err  string
	}{
		"none":                              {nil, -1, ""},
		"one":                               {map[string]string{"ledger": part(1, 1)}, 1, ""},
		"parts":                             {map[string]string{"ledger": part(1, 1), "ledger-1": part(1, 2), "ledger-2": part(1, 1)}, 2, ""},
		"a part that nothing leads to":      {map[string]string{"ledger": part(1, 1), "ledger-2": part(1, 2)}, 1, ""},
		"a part of another ledger":          {map[string]string{"ledger": part(1, 1), "ledger-1": part(2, 2)}, -1, "erasures/ledger-1: must have the salt of erasures/ledger"},
		"what is none":                      {map[string]string{"ledger": "hush"}, -1, "erasures/ledger: a file of 4 bytes is no ledger of erasures"},
		"a part that is cut off":            {map[string]string{"ledger": part(1, 1), "ledger-1": part(1, 2)[:40]}, -1, "erasures/ledger-1: "},
		"a file that is larger than any is": {map[string]string{"ledger": strings.Repeat("x", 1<<20+1)}, -1, "erasures/ledger: must not be larger than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for file, content := range test.files {
				files["erasures/"+file] = content
			}
			got, err := config.LoadLedger(directory(t, files))
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) || strings.Contains(err.Error(), "hush") {
					t.Errorf("error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			count := -1
			if got != nil {
				count = got.Len()
			}
			if count != test.want {
				t.Errorf("%d identifiers, want %d", count, test.want)
			}
		})
	}
}

func TestPlatformCredentialsAreTheKeysOfItsSecret(t *testing.T) {
	dir := t.TempDir()
	mount(t, filepath.Join(dir, "platforms/crm"), "..2026_11_20", map[string]string{"signingSecret": "whsec_abc\n", "note": ""})
	mount(t, filepath.Join(dir, "platforms/meta"), "..2026_11_20", map[string]string{"accessToken": "EAAB"})
	got, err := config.PlatformCredentials(dir, "crm")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"signingSecret": "whsec_abc", "note": ""}, got); diff != "" {
		t.Error(diff)
	}
	for _, outside := range []string{"", ".", "..", "../auth", "crm/..", "/etc"} {
		if got, err := config.PlatformCredentials(dir, outside); err == nil {
			t.Errorf("platform %q: got %v, want an error", outside, got)
		}
	}
}

// mount lays files out as the kubelet does: in a directory of their own, reached through the link ..data.
// Called again with another name for that directory, it swaps all of them at once.
func mount(t *testing.T, volume, version string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		write(t, filepath.Join(volume, version, name), content)
	}
	next := filepath.Join(volume, "..data_tmp")
	if err := os.Symlink(version, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(volume, "..data")); err != nil {
		t.Fatal(err)
	}
	for name := range files {
		err := os.Symlink(filepath.Join("..data", name), filepath.Join(volume, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
}

// FuzzLoad reads any property file: what is accepted is valid, and what is not has an error that names the file.
func FuzzLoad(f *testing.F) {
	f.Add(fullProperty)
	f.Add(`{"platforms": [{"type": "Log"}, {"type": ""}], "egress": {"allowCIDRs": [""]}}`)
	f.Add(`{"eventAliases": {"": ""}, "limits": null, "currency": 1e9999}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := config.Load(directory(t, map[string]string{config.PropertyFile: text}))
		if err != nil {
			if !strings.HasPrefix(err.Error(), config.PropertyFile+": ") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Errorf("accepted, but not valid: %v", err)
		}
		for _, platform := range p.Platforms {
			if _, known := platform.Type.Traits(); !known {
				t.Errorf("platform type %q was accepted", platform.Type)
			}
		}
	})
}

func TestAPlatformsRuleIsItsTypesAsFarAsItHasNoneOfItsOwn(t *testing.T) {
	meta := platforms.Platform{Name: "meta", Type: platforms.TypeMeta}
	traits, _ := meta.Type.Traits()
	ads := traits.Consent.Requires
	sale := []platforms.Purpose{platforms.Sale}
	for sentence, test := range map[string]struct {
		consent    config.Consent
		requires   []platforms.Purpose
		whenAbsent platforms.WhenAbsent
	}{
		"no rules":                        {config.Consent{}, ads, ""},
		"what holds for all":              {config.Consent{WhenAbsent: platforms.Withhold}, ads, platforms.Withhold},
		"the platform's own":              {config.Consent{WhenAbsent: platforms.Withhold, Platforms: []config.PlatformConsent{{Name: "meta", Requires: sale, WhenAbsent: platforms.Send}}}, sale, platforms.Send},
		"the platform's own, in part":     {config.Consent{WhenAbsent: platforms.Withhold, Platforms: []config.PlatformConsent{{Name: "meta"}}}, ads, platforms.Withhold},
		"a platform that demands nothing": {config.Consent{Platforms: []config.PlatformConsent{{Name: "meta", Requires: []platforms.Purpose{}}}}, []platforms.Purpose{}, ""},
		"another platform's":              {config.Consent{Platforms: []config.PlatformConsent{{Name: "tiktok", Requires: sale, WhenAbsent: platforms.Withhold}}}, ads, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := test.consent.Rule(&meta)
			if diff := cmp.Diff(test.requires, got.Requires); diff != "" || got.WhenAbsent != test.whenAbsent {
				t.Errorf("when absent: got %q, want %q; requires (-want +got):\n%s", got.WhenAbsent, test.whenAbsent, diff)
			}
			if diff := cmp.Diff(traits.Consent.Limits, got.Limits); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryHashThatAPlatformTakesIsMade(t *testing.T) {
	for _, platform := range platforms.Types() {
		traits, _ := platform.Traits()
		wanted := map[platforms.Hash]bool{platforms.EmailLower: true, platforms.PhoneDigits: true}
		for _, hash := range slices.Concat(traits.Hashes, traits.AccountHashes) {
			wanted[hash] = true
		}
		property := config.Property{Platforms: []platforms.Platform{{Type: platform}}}
		if got := bits.OnesCount32(uint32(property.Variants().Union(property.AccountVariants()))); got != len(wanted) {
			t.Errorf("for %s %d hashes are made of a person, want %d: %v", platform, got, len(wanted), wanted)
		}
	}
}
