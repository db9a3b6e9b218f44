package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/platforms"
)

// repeated makes a YAML flow sequence's inside: format with 0 to n-1.
func repeated(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ", ")
}

func TestPlatforms(t *testing.T) {
	const (
		badURL    = "spec.platforms[0].webhook.url: must be an http or https URL with a host, such as https://crm.example.com/hook"
		userInURL = "spec.platforms[0].webhook.url: must hold no user name or password: requests are signed with signingSecret instead"
	)
	webhook := func(url string) string {
		return "platforms: [{name: crm, type: Webhook, webhook: {url: '" + url + "'}, credentialsSecretRef: {name: s}}]"
	}
	testRules(t, map[string]rule{
		"erasures are forwarded to types that have an interface for them": {
			spec: `platforms: [{name: console, type: Log, forwardErasure: false}, {name: log, type: Log, forwardErasure: true}]`,
			want: []string{"spec.platforms[1].forwardErasure: must be absent or false: the types that have an interface for erasures are Mixpanel and Webhook"},
		},
		"a version of Meta's is accepted": {
			spec: `platforms: [{name: meta, type: Meta, apiVersion: v25.0, meta: {pixelID: "1"}, credentialsSecretRef: {name: s}}]`,
		},
		"a version is in the form that its platform writes": {
			spec: `platforms: [{name: meta, type: Meta, apiVersion: "25.0", meta: {pixelID: "1"}, credentialsSecretRef: {name: s}}]`,
			want: []string{"spec.platforms[0].apiVersion: must be a version as Meta writes it, such as v26.0"},
		},
		"a version is no way to another address": {
			spec: `platforms: [{name: meta, type: Meta, apiVersion: v25.0/me, meta: {pixelID: "1"}, credentialsSecretRef: {name: s}}]`,
			want: []string{"spec.platforms[0].apiVersion: must be a version as Meta writes it, such as v26.0"},
		},
		"a version has 20 characters at most": {
			spec: `platforms: [{name: meta, type: Meta, apiVersion: v111111111111111111.0, meta: {pixelID: "1"}, credentialsSecretRef: {name: s}}]`,
			want: []string{"spec.platforms[0].apiVersion: may not be more than 20 bytes"},
		},
		"no version is to be chosen where the platform lets nobody choose": {
			spec: `platforms: [{name: console, type: Log, apiVersion: v1}]`,
			want: []string{"spec.platforms[0].apiVersion: " + platforms.TypeLog.VersionRule()},
		},
		"one of each type is accepted": {spec: `
platforms:
- {name: meta, type: Meta, meta: {pixelID: "1234567890", testEventCode: TEST1}, credentialsSecretRef: {name: s}, events: [purchase, add_to_cart], suspend: false}
- {name: analytics, type: GA4, ga4: {measurementID: G-ABC123DEF4, region: EU}, credentialsSecretRef: {name: s}}
- {name: tiktok, type: TikTok, tiktok: {eventSourceID: C4A1B2C3D4, testEventCode: TEST1}, credentialsSecretRef: {name: s}}
- {name: pinterest, type: Pinterest, pinterest: {adAccountID: "549755885175", test: true}, credentialsSecretRef: {name: s}}
- {name: snapchat, type: Snapchat, snapchat: {pixelID: 1ec32188-754e-4be2-8e55-c949a984a39f, test: true}, credentialsSecretRef: {name: s}}
- {name: reddit, type: Reddit, reddit: {pixelID: a2_abc123def456, testID: t2_abc123}, credentialsSecretRef: {name: s}}
- {name: marketing, type: Klaviyo, klaviyo: {}, credentialsSecretRef: {name: s}, apiVersion: "2026-07-15"}
- {name: usage, type: Amplitude, amplitude: {region: EU}, credentialsSecretRef: {name: s}}
- {name: ads, type: Google, google: {product: Ads, accountID: "1234567890", loginAccountID: "9876543210", test: true}, eventNames: {purchase: "7001"}, credentialsSecretRef: {name: s}}
- {name: stream, type: Google, google: {product: Analytics, accountID: "123456789", measurementID: G-ABC123DEF4}, credentialsSecretRef: {name: s}}
- {name: product, type: Mixpanel, mixpanel: {projectID: "2195193", region: US}, credentialsSecretRef: {name: s}, forwardErasure: true}
- {name: crm, type: Webhook, webhook: {url: "https://crm.example.com/hook"}, credentialsSecretRef: {name: s}}
- {name: microsoft, type: Microsoft, microsoft: {tagID: "187012345", pageLoads: true}, credentialsSecretRef: {name: s}}
- {name: linkedin, type: LinkedIn, eventNames: {lead: "104012"}, apiVersion: "202609", credentialsSecretRef: {name: s}}
- {name: events, type: PostHog, posthog: {region: EU, personProfiles: Never}, credentialsSecretRef: {name: s}}
- {name: own-events, type: PostHog, posthog: {host: "https://posthog.example.com"}, credentialsSecretRef: {name: s}}
- {name: cdp, type: Segment, segment: {host: "http://rudder.data:8080"}, credentialsSecretRef: {name: s}}
- {name: chatgpt, type: OpenAI, openai: {pixelID: px_AbC-123, validateOnly: true}, credentialsSecretRef: {name: s}}
- {name: lake, type: S3, s3: {bucket: shop-events, region: us-east-1, endpoint: "http://minio.storage.svc:9000", prefix: weir/shop, pathStyle: true, flushMinutes: 1, rowsPerFile: 1000, keepIdentifiers: true}, credentialsSecretRef: {name: s}}
- {name: console, type: Log}`},
		"two of one type are accepted": {spec: "platforms: [{name: a, type: Log}, {name: b, type: Log}]"},

		"an unknown type is refused": {spec: "platforms: [{name: a, type: meta}]", want: []string{fmt.Sprintf("spec.platforms[0].type: must be one of %s", strings.ReplaceAll(strings.Trim(fmt.Sprintf("%q", platforms.Types()), "[]"), " ", ", "))}},
		"a platform needs a type":    {spec: "platforms: [{name: a}]", want: []string{"spec.platforms[0].type: is required"}},
		"a platform needs a name":    {spec: "platforms: [{type: Log}]", want: []string{"spec.platforms[0].name: is required"}},
		"a name is a label": {
			spec: "platforms: [{name: My CRM, type: Log}]",
			want: []string{"spec.platforms[0].name: must be lower-case letters, digits and '-', with no '-' at either end, such as meta"},
		},
		"a name is no way up the directories": {
			spec: "platforms: [{name: .., type: Log}]",
			want: []string{"spec.platforms[0].name: must be lower-case letters, digits and '-', with no '-' at either end, such as meta"},
		},
		"two platforms of one name are refused": {spec: "platforms: [{name: a, type: Log}, {name: a, type: Log}]", want: []string{"spec.platforms[1]: repeats an earlier item; must be unique"}},
		"21 platforms are too many":             {spec: "platforms: [" + repeated(21, "{name: p%d, type: Log}") + "]", want: []string{"spec.platforms: must have at most 20 items"}},

		"Meta needs its member": {
			spec: "platforms: [{name: a, type: Meta, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].meta: must be set for a platform of type Meta, and for no other"},
		},
		"Meta needs a Secret, and is told which key": {
			spec: "platforms: [{name: a, type: Meta, meta: {pixelID: '1'}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose key accessToken is the token of Meta's Conversions API"},
		},
		"Meta's pixelID is text": {
			spec: "platforms: [{name: a, type: Meta, meta: {pixelID: 1}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].meta.pixelID: must be of type string"},
		},
		"Meta's pixelID is digits": {
			spec: "platforms: [{name: a, type: Meta, meta: {pixelID: ../me}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].meta.pixelID: must be the digits of a pixel's or dataset's id, in quotes"},
		},
		"Meta's testEventCode has no spaces": {
			spec: "platforms: [{name: a, type: Meta, meta: {pixelID: '1', testEventCode: 'a b'}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].meta.testEventCode: must be a code of Meta's Events Manager, such as TEST12345"},
		},
		"GA4 needs its member": {
			spec: "platforms: [{name: a, type: GA4, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].ga4: must be set for a platform of type GA4, and for no other"},
		},
		"GA4 needs a Secret, and is told which key": {
			spec: "platforms: [{name: a, type: GA4, ga4: {measurementID: G-A1}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose key apiSecret is a Measurement Protocol API secret of the data stream"},
		},
		"GA4's measurementID is that of a web data stream": {
			spec: "platforms: [{name: a, type: GA4, ga4: {measurementID: UA-1234-1}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].ga4.measurementID: must be the id of a web data stream, such as G-ABC123DEF4"},
		},
		"GA4's region is the EU or none": {
			spec: "platforms: [{name: a, type: GA4, ga4: {measurementID: G-A1, region: IN}, credentialsSecretRef: {name: s}}]",
			want: []string{`spec.platforms[0].ga4.region: must be one of "EU"`},
		},
		"TikTok needs its member": {
			spec: "platforms: [{name: a, type: TikTok, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].tiktok: must be set for a platform of type TikTok, and for no other"},
		},
		"TikTok needs a Secret, and is told which key": {
			spec: "platforms: [{name: a, type: TikTok, tiktok: {eventSourceID: C1}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose key accessToken is the token of TikTok's Events API"},
		},
		"TikTok's eventSourceID is a pixel's code": {
			spec: "platforms: [{name: a, type: TikTok, tiktok: {eventSourceID: 'C1 '}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].tiktok.eventSourceID: must be a pixel's code: letters and digits, such as C4A1B2C3D4E5F6G7H8I9"},
		},
		"TikTok's testEventCode has no spaces": {
			spec: "platforms: [{name: a, type: TikTok, tiktok: {eventSourceID: C1, testEventCode: 'a b'}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].tiktok.testEventCode: must be a code of TikTok's Events Manager, such as TEST12345"},
		},
		"Snapchat needs its member": {
			spec: "platforms: [{name: a, type: Snapchat, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].snapchat: must be set for a platform of type Snapchat, and for no other"},
		},
		"Snapchat needs a Secret, and is told which key": {
			spec: "platforms: [{name: a, type: Snapchat, snapchat: {pixelID: 1ec32188-754e-4be2-8e55-c949a984a39f}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose key accessToken is the token of Snapchat's Conversions API"},
		},
		"Snapchat's pixelID is that of a Snap Pixel": {
			spec: "platforms: [{name: a, type: Snapchat, snapchat: {pixelID: 1EC32188-754E-4BE2-8E55-C949A984A39F}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].snapchat.pixelID: must be the id of a Snap Pixel, such as 1ec32188-754e-4be2-8e55-c949a984a39f"},
		},
		"Reddit needs its member": {
			spec: "platforms: [{name: a, type: Reddit, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].reddit: must be set for a platform of type Reddit, and for no other"},
		},
		"Reddit needs a Secret, and is told which key": {
			spec: "platforms: [{name: a, type: Reddit, reddit: {pixelID: a2_1}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose key accessToken is the token of Reddit's Conversions API"},
		},
		"Reddit's pixelID has no slash": {
			spec: "platforms: [{name: a, type: Reddit, reddit: {pixelID: a2/1}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].reddit.pixelID: must be the id of a Reddit pixel, such as a2_abc123def456"},
		},
		"Reddit's testID has no spaces": {
			spec: "platforms: [{name: a, type: Reddit, reddit: {pixelID: a2_1, testID: 'a b'}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].reddit.testID: must be a test id of Reddit's Events Manager, such as t2_abc123"},
		},
		"Google needs its member": {
			spec: "platforms: [{name: a, type: Google, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].google: must be set for a platform of type Google, and for no other"},
		},
		"Google's accountID is digits": {
			spec: "platforms: [{name: a, type: Google, google: {accountID: 123-456}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].google.accountID: must be the digits of an account's id, in quotes"},
		},
		"Google Analytics needs a data stream": {
			spec: "platforms: [{name: a, type: Google, google: {product: Analytics, accountID: '1'}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].google.measurementID: must be set for the product Analytics, and for no other"},
		},
		"Google Ads has no data stream": {
			spec: "platforms: [{name: a, type: Google, google: {accountID: '1', measurementID: G-1}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].google.measurementID: must be set for the product Analytics, and for no other"},
		},
		"Pinterest needs its member": {
			spec: "platforms: [{name: a, type: Pinterest, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].pinterest: must be set for a platform of type Pinterest, and for no other"},
		},
		"Pinterest needs a Secret, and is told which key": {
			spec: "platforms: [{name: a, type: Pinterest, pinterest: {adAccountID: '1'}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose key conversionToken is a conversion access token of the ad account"},
		},
		"Pinterest's adAccountID is digits": {
			spec: "platforms: [{name: a, type: Pinterest, pinterest: {adAccountID: 1/x}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].pinterest.adAccountID: must be the digits of an ad account's id, in quotes"},
		},
		"Microsoft needs its member": {
			spec: "platforms: [{name: a, type: Microsoft, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].microsoft: must be set for a platform of type Microsoft, and for no other"},
		},
		"Microsoft needs a Secret, and is told which key": {
			spec: "platforms: [{name: a, type: Microsoft, microsoft: {tagID: '1'}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose key accessToken is the token of the UET tag's Conversions API"},
		},
		"Microsoft's tagID is digits": {
			spec: "platforms: [{name: a, type: Microsoft, microsoft: {tagID: 1/x}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].microsoft.tagID: must be the digits of a UET tag's id, in quotes"},
		},
		"LinkedIn needs the ids of its rules": {
			spec: "platforms: [{name: a, type: LinkedIn, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].eventNames: must give each event that LinkedIn is to get the id of its conversion rule"},
		},
		"LinkedIn needs a Secret, and is told which key": {
			spec: "platforms: [{name: a, type: LinkedIn, eventNames: {lead: '1'}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose key accessToken is a token of LinkedIn's Conversions API"},
		},
		"Klaviyo needs its member": {
			spec: "platforms: [{name: a, type: Klaviyo, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].klaviyo: must be set for a platform of type Klaviyo, and for no other"},
		},
		"Klaviyo needs a Secret, and is told which key": {
			spec: "platforms: [{name: a, type: Klaviyo, klaviyo: {}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose key apiKey is a private API key of the account"},
		},
		"Amplitude needs its member": {
			spec: "platforms: [{name: a, type: Amplitude, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].amplitude: must be set for a platform of type Amplitude, and for no other"},
		},
		"Amplitude needs a Secret, and is told which key": {
			spec: "platforms: [{name: a, type: Amplitude, amplitude: {}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose key apiKey is the API key of the project"},
		},
		"Amplitude's region is one that Amplitude has": {
			spec: "platforms: [{name: a, type: Amplitude, amplitude: {region: IN}, credentialsSecretRef: {name: s}}]",
			want: []string{`spec.platforms[0].amplitude.region: must be one of "US", "EU"`},
		},
		"Mixpanel needs its member": {
			spec: "platforms: [{name: a, type: Mixpanel, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].mixpanel: must be set for a platform of type Mixpanel, and for no other"},
		},
		"Mixpanel needs a Secret, and is told which keys": {
			spec: "platforms: [{name: a, type: Mixpanel, mixpanel: {projectID: '1'}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose keys serviceAccountUsername and serviceAccountSecret are a service account of the project"},
		},
		"Mixpanel's projectID is digits": {
			spec: "platforms: [{name: a, type: Mixpanel, mixpanel: {projectID: shop}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].mixpanel.projectID: must be the digits of a project's id, in quotes"},
		},
		"Mixpanel's region is one that Mixpanel has": {
			spec: "platforms: [{name: a, type: Mixpanel, mixpanel: {projectID: '1', region: eu}, credentialsSecretRef: {name: s}}]",
			want: []string{`spec.platforms[0].mixpanel.region: must be one of "US", "EU", "IN"`},
		},
		"PostHog needs its member": {
			spec: "platforms: [{name: a, type: PostHog, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].posthog: must be set for a platform of type PostHog, and for no other"},
		},
		"PostHog needs a Secret, and is told which key": {
			spec: "platforms: [{name: a, type: PostHog, posthog: {}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose key projectToken is the token of the project"},
		},
		"PostHog's region is one that PostHog has": {
			spec: "platforms: [{name: a, type: PostHog, posthog: {region: IN}, credentialsSecretRef: {name: s}}]",
			want: []string{`spec.platforms[0].posthog.region: must be one of "US", "EU"`},
		},
		"PostHog's host is a web URL": {
			spec: "platforms: [{name: a, type: PostHog, posthog: {host: posthog.example.com}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].posthog.host: must be an http or https URL with a host, such as https://posthog.example.com"},
		},
		"PostHog's host holds no password": {
			spec: "platforms: [{name: a, type: PostHog, posthog: {host: 'https://u:p@posthog.example.com'}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].posthog.host: must hold no user name or password: requests are let in by projectToken instead"},
		},
		"PostHog is in a region or on a host of one's own": {
			spec: "platforms: [{name: a, type: PostHog, posthog: {region: EU, host: 'https://posthog.example.com'}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].posthog.host: must be absent where region is set: a host of your own is in no region of PostHog's"},
		},
		"PostHog keeps profiles of those that there is a word for": {
			spec: "platforms: [{name: a, type: PostHog, posthog: {personProfiles: always}, credentialsSecretRef: {name: s}}]",
			want: []string{`spec.platforms[0].posthog.personProfiles: must be one of "Identified", "Always", "Never"`},
		},
		"Segment needs its member": {
			spec: "platforms: [{name: a, type: Segment, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].segment: must be set for a platform of type Segment, and for no other"},
		},
		"Segment needs a Secret, and is told which key": {
			spec: "platforms: [{name: a, type: Segment, segment: {}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose key writeKey is the write key of the source"},
		},
		"Segment's host is a web URL": {
			spec: "platforms: [{name: a, type: Segment, segment: {host: rudder}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].segment.host: must be an http or https URL with a host, such as https://rudder.example.com"},
		},
		"Segment is in a region or another server": {
			spec: "platforms: [{name: a, type: Segment, segment: {region: US, host: 'https://rudder.example.com'}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].segment.host: must be absent where region is set: another host is in no region of Segment's"},
		},
		"OpenAI needs its member": {
			spec: "platforms: [{name: a, type: OpenAI, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].openai: must be set for a platform of type OpenAI, and for no other"},
		},
		"OpenAI needs a Secret, and is told which key": {
			spec: "platforms: [{name: a, type: OpenAI, openai: {pixelID: a}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose key apiKey is the key of the pixel's Conversions API"},
		},
		"OpenAI's pixelID is one": {
			spec: "platforms: [{name: a, type: OpenAI, openai: {pixelID: 'a/b'}, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].openai.pixelID: must be the id of a pixel"},
		},
		"Webhook needs its member": {
			spec: "platforms: [{name: a, type: Webhook, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].webhook: must be set for a platform of type Webhook, and for no other"},
		},
		"Webhook needs a Secret, and is told which key": {
			spec: "platforms: [{name: a, type: Webhook, webhook: {url: 'https://crm.example.com'}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must name the Secret whose key signingSecret signs the webhook's requests"},
		},
		"S3 needs its member": {
			spec: "platforms: [{name: a, type: S3, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].s3: must be set for a platform of type S3, and for no other"},
		},
		"S3's bucket, region, endpoint and prefix are what they are called": {
			spec: "platforms: [{name: a, type: S3, s3: {bucket: Shop, region: EU, endpoint: 'http://s3.example.com', prefix: /a/}, credentialsSecretRef: {name: s}}]",
			want: []string{
				"spec.platforms[0].s3.bucket: must be the name of a bucket",
				"spec.platforms[0].s3.endpoint: must be an https URL without a path, or an http URL of a Service such as http://minio.storage.svc:9000",
				"spec.platforms[0].s3.prefix: must be names with slashes between them, such as events/shop",
				"spec.platforms[0].s3.region: must be the name of a region, such as eu-central-1",
			},
		},
		"S3's bucket is no IP address, and its prefix leads nowhere else": {
			spec: "platforms: [{name: a, type: S3, s3: {bucket: 192.168.5.4, region: r, prefix: a/../b}, credentialsSecretRef: {name: s}}]",
			want: []string{
				"spec.platforms[0].s3.bucket: must be the name of a bucket",
				"spec.platforms[0].s3.prefix: must be names with slashes between them, such as events/shop",
			},
		},
		"Log takes no other type's member": {
			spec: "platforms: [{name: a, type: Log, meta: {pixelID: '1'}}]",
			want: []string{"spec.platforms[0].meta: must be set for a platform of type Meta, and for no other"},
		},
		"Log takes no Secret": {
			spec: "platforms: [{name: a, type: Log, credentialsSecretRef: {name: s}}]",
			want: []string{"spec.platforms[0].credentialsSecretRef: must be absent: a platform of type Log needs no credentials"},
		},

		"a plain http URL with port is accepted":  {spec: webhook("http://127.0.0.1:9099/hook")},
		"a URL with an @ in its path is accepted": {spec: webhook("https://crm.example.com/@weir?to=a@b")},
		"a URL of another scheme is refused":      {spec: webhook("ftp://crm.example.com"), want: []string{badURL}},
		"a URL without a scheme is refused":       {spec: webhook("crm.example.com/hook"), want: []string{badURL}},
		"a path alone is refused":                 {spec: webhook("/hook"), want: []string{badURL}},
		"a URL without a host is refused":         {spec: webhook("https:///hook"), want: []string{badURL}},
		"a password in the URL is refused":        {spec: webhook("https://weir:hunter2@crm.example.com"), want: []string{userInURL}},
		"a URL of 2049 characters is refused":     {spec: webhook("https://a/" + strings.Repeat("b", 2039)), want: []string{"spec.platforms[0].webhook.url: may not be more than 2048 bytes"}},

		"no events at all is refused: leave the member out instead": {
			spec: "platforms: [{name: a, type: Log, events: []}]",
			want: []string{"spec.platforms[0].events: should have at least 1 items"},
		},
		"an event twice is refused":      {spec: "platforms: [{name: a, type: Log, events: [b, b]}]", want: []string{"spec.platforms[0].events[1]: repeats an earlier item; must be unique"}},
		"an empty event name is refused": {spec: "platforms: [{name: a, type: Log, events: ['']}]", want: []string{"spec.platforms[0].events[0]: should be at least 1 chars long"}},
		"an event name with a line feed behind it is refused": {spec: `platforms: [{name: a, type: Log, events: ["a\n"]}]`, want: []string{
			"spec.platforms[0].events: must be event names of 1 to 100 characters without control characters or space around them",
		}},
		"101 events are too many": {spec: "platforms: [{name: a, type: Log, events: [" + repeated(101, "e%d") + "]}]", want: []string{"spec.platforms[0].events: must have at most 100 items"}},
	})
}

func TestExposure(t *testing.T) {
	const (
		badHost    = "spec.exposure.collectHost: must be a host name in lower case and no address, such as collect.shop.example.com"
		badAPIHost = "spec.exposure.apiHost: must be a host name in lower case and no address, such as api.example.com"
		noGateway  = "spec.exposure.gateway: must be set where type is Gateway, and only there"
	)
	testRules(t, map[string]rule{
		"an Ingress with every member is accepted":  {spec: "exposure: {type: Ingress, collectHost: c.example.com, apiHost: api.example.com, ingress: {className: nginx, tlsSecretName: tls, annotations: {a: b}}}"},
		"an Ingress with a host alone is accepted":  {spec: "exposure: {type: Ingress, collectHost: c.example.com}"},
		"a Gateway with every member is accepted":   {spec: "exposure: {type: Gateway, collectHost: c.example.com, gateway: {parentRefs: [{name: g, namespace: edge, sectionName: s, port: 443}]}}"},
		"the operator may give an Ingress its host": {spec: "exposure: {type: Ingress, apiHost: api.example.com}"},
		"hosts without a type are refused": {
			spec: "exposure: {collectHost: c.example.com, apiHost: api.example.com}",
			want: []string{
				"spec.exposure.apiHost: must be absent where type is None; set type to Ingress or Gateway to expose the read API",
				"spec.exposure.collectHost: must be absent where type is None; set type to Ingress or Gateway to expose the collector",
			},
		},
		"an upper-case host is refused":       {spec: "exposure: {type: Ingress, collectHost: C.example.com}", want: []string{badHost}},
		"a URL in place of a host is refused": {spec: "exposure: {type: Ingress, collectHost: 'https://c.example.com'}", want: []string{badHost}},
		"a host with a port is refused":       {spec: "exposure: {type: Ingress, collectHost: 'c.example.com:443'}", want: []string{badHost}},
		"a wildcard is refused":               {spec: "exposure: {type: Ingress, collectHost: c.example.com, apiHost: '*.example.com'}", want: []string{badAPIHost}},
		"a host of one label is refused":      {spec: "exposure: {type: Ingress, collectHost: localhost}", want: []string{badHost}},
		"an unknown type is refused":          {spec: "exposure: {type: LoadBalancer}", want: []string{`spec.exposure.type: must be one of "Ingress", "Gateway", "None"`}},
		"ingress settings on a Gateway":       {spec: "exposure: {type: Gateway, collectHost: c.example.com, gateway: {parentRefs: [{name: g}]}, ingress: {className: nginx}}", want: []string{"spec.exposure.ingress: must be absent unless type is Ingress"}},
		"a Gateway needs its member":          {spec: "exposure: {type: Gateway, collectHost: c.example.com}", want: []string{noGateway}},
		"gateway settings on an Ingress":      {spec: "exposure: {type: Ingress, collectHost: c.example.com, gateway: {parentRefs: [{name: g}]}}", want: []string{noGateway}},
		"a Gateway needs a parent":            {spec: "exposure: {type: Gateway, collectHost: c.example.com, gateway: {parentRefs: []}}", want: []string{"spec.exposure.gateway.parentRefs: should have at least 1 items"}},
		"a parent's port is a port":           {spec: "exposure: {type: Gateway, collectHost: c.example.com, gateway: {parentRefs: [{name: g, port: 65536}]}}", want: []string{"spec.exposure.gateway.parentRefs[0].port: should be less than or equal to 65535"}},
	})
}

func TestWorkloads(t *testing.T) {
	testRules(t, map[string]rule{
		"replicas alone are accepted":            {spec: "collector: {replicas: 3}\ndeliverer: {replicas: 0}\nquery: {replicas: 2}"},
		"autoscaling alone is accepted":          {spec: "collector: {autoscaling: {minReplicas: 1, maxReplicas: 1}}"},
		"autoscaling with the default minimum":   {spec: "collector: {autoscaling: {maxReplicas: 5}}"},
		"replicas and autoscaling are refused":   {spec: "collector: {replicas: 2, autoscaling: {maxReplicas: 5}}", want: []string{"spec.collector.replicas: must be absent where autoscaling is set: the autoscaler decides how many there are"}},
		"a maximum below the minimum is refused": {spec: "collector: {autoscaling: {minReplicas: 3, maxReplicas: 2}}", want: []string{"spec.collector.autoscaling.maxReplicas: must be at least minReplicas"}},
		"a maximum below the default minimum":    {spec: "collector: {autoscaling: {maxReplicas: 1}}", want: []string{"spec.collector.autoscaling.maxReplicas: must be at least minReplicas"}},
		"autoscaling needs a maximum":            {spec: "collector: {autoscaling: {}}", want: []string{"spec.collector.autoscaling.maxReplicas: must be set unless type is External"}},
		"somebody else may scale each role":      {spec: "collector: {autoscaling: {type: External}}\ndeliverer: {autoscaling: {type: External}}\nquery: {autoscaling: {type: External}}"},
		"whoever scales has bounds of their own": {spec: "collector: {autoscaling: {type: External, maxReplicas: 5}}", want: []string{"spec.collector.autoscaling: must have neither minReplicas nor maxReplicas where type is External: whoever scales the Deployment has bounds of their own"}},
		"an autoscaler leaves one at least":      {spec: "collector: {autoscaling: {minReplicas: 0, maxReplicas: 5}}", want: []string{"spec.collector.autoscaling.minReplicas: should be greater than or equal to 1"}},
		"replicas of deliverers, and others'":    {spec: "deliverer: {replicas: 1, autoscaling: {type: External}}", want: []string{"spec.deliverer.replicas: must be absent where autoscaling is set: whoever scales the Deployment decides how many there are"}},
		"replicas of queriers, and others'":      {spec: "query: {replicas: 1, autoscaling: {type: External}}", want: []string{"spec.query.replicas: must be absent where autoscaling is set: whoever scales the Deployment decides how many there are"}},
		"negative replicas are refused":          {spec: "query: {replicas: -1}", want: []string{"spec.query.replicas: should be greater than or equal to 0"}},
		"only the collector is scaled by CPU":    {spec: "query: {autoscaling: {type: CPU}}", want: []string{"spec.query.autoscaling.type: must be one of \"External\""}},
		"every pod option is accepted": {spec: `
deliverer:
  resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi, cpu: 1}}
  nodeSelector: {disk: ssd}
  tolerations: [{key: a, operator: Exists, effect: NoSchedule}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
  podAnnotations: {a: b}
  imagePullSecrets: [{name: registry}]`},
		"a quantity that is none is refused": {
			spec: "query: {resources: {limits: {memory: lots}}}",
			want: []string{"spec.query.resources.limits: must be quantities, such as 100m or 64Mi", `spec.query.resources.limits.memory: should match '^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'`},
		},
		"a quantity that nobody can read is refused": {
			spec: "collector: {resources: {requests: {cpu: 1e1.5}}}", want: []string{"spec.collector.resources.requests: must be quantities, such as 100m or 64Mi"},
		},
		"resource claims are no pod option": {spec: "query: {resources: {claims: []}}", want: []string{"spec.query.resources.claims: is no field here; the fields are limits, requests"}},
		"a pull secret twice is refused":    {spec: "query: {imagePullSecrets: [{name: a}, {name: a}]}", want: []string{"spec.query.imagePullSecrets[1]: repeats an earlier item; must be unique"}},
	})
}
