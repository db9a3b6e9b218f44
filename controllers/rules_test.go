package controllers_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// celRule is a row of [celRules].
type celRule struct{ at, says, spec, after, field string }

// celRules has a row for each CEL rule of the CustomResourceDefinition: where the rule stands in the schema, words of
// its message that no other rule there has, a spec that only it refuses, and the field that the answer must name. A
// rule about changes refuses the step from the spec to after.
func celRules() []celRule {
	return []celRule{
		{at: "", says: "at most 40 lower-case letters", spec: "{currency: EUR}", field: "metadata.name"},
		{at: "spec", says: "at most 24 times", spec: "{currency: EUR, retention: {days: 2}}", field: "spec.deduplication.windowHours"},
		{at: "spec", says: "name platforms of spec.platforms", spec: "{currency: EUR, consent: {platforms: [{name: meta}]}}", field: "spec.consent.platforms"},
		{at: "spec.consent.categories", says: "map from", spec: "{currency: EUR, consent: {categories: {'': [sale]}}}", field: "spec.consent.categories"},
		{at: "spec", says: "immutable but for its certificates", spec: "{currency: EUR}", after: "{currency: EUR, redis: {urlSecretKeyRef: {name: a, key: b}}}", field: "spec.redis"},
		{at: "spec.history", says: "absent unless type is ClickHouse", spec: "{currency: EUR, history: {clickHouse: {cluster: a}}}", field: "spec.history.clickHouse"},
		{at: "spec.history.clickHouse", says: "server of the Property's own", spec: "{currency: EUR, history: {type: ClickHouse, clickHouse: {caSecretRef: {name: a}}}}", field: "spec.history.clickHouse.urlSecretKeyRef"},
		{at: "spec.history.clickHouse.cluster", says: "name of a cluster", spec: "{currency: EUR, history: {type: ClickHouse, clickHouse: {cluster: 'a b'}}}", field: "spec.history.clickHouse.cluster"},
		{at: "spec.history.clickHouse.urlSecretKeyRef.name", says: "name of a Secret", spec: "{currency: EUR, history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: a/b, key: url}}}}", field: "spec.history.clickHouse.urlSecretKeyRef.name"},
		{at: "spec.history.clickHouse.urlSecretKeyRef.key", says: "key of a Secret", spec: "{currency: EUR, history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: s, key: a/b}}}}", field: "spec.history.clickHouse.urlSecretKeyRef.key"},
		{at: "spec.history.clickHouse.caSecretRef.name", says: "name of a Secret", spec: "{currency: EUR, history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: r, key: url}, caSecretRef: {name: CA}}}}", field: "spec.history.clickHouse.caSecretRef.name"},
		{at: "spec.history.clickHouse.caSecretRef.key", says: "key of a Secret", spec: "{currency: EUR, history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: r, key: url}, caSecretRef: {name: ca, key: ../x}}}}", field: "spec.history.clickHouse.caSecretRef.key"},
		{at: "spec.history.clickHouse.clientCertificateSecretRef.name", says: "name of a Secret", spec: "{currency: EUR, history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: r, key: url}, clientCertificateSecretRef: {name: ../x}}}}", field: "spec.history.clickHouse.clientCertificateSecretRef.name"},
		{at: "spec.archive.imagePullSecrets[].name", says: "name of a Secret", spec: "{currency: EUR, archive: {imagePullSecrets: [{name: ../x}]}}", field: "spec.archive.imagePullSecrets[0].name"},
		{at: "spec.archive.resources.requests", says: "must be quantities", spec: "{currency: EUR, archive: {resources: {requests: {cpu: 1e1.5}}}}", field: "spec.archive.resources.requests"},
		{at: "spec.archive.resources.limits", says: "must be quantities", spec: "{currency: EUR, archive: {resources: {limits: {cpu: 1e1.5}}}}", field: "spec.archive.resources.limits"},
		{at: "spec.collector.resources.requests", says: "must be quantities", spec: "{currency: EUR, collector: {resources: {requests: {cpu: 1e1.5}}}}", field: "spec.collector.resources.requests"},
		{at: "spec.collector.resources.limits", says: "must be quantities", spec: "{currency: EUR, collector: {resources: {limits: {cpu: 1e1.5}}}}", field: "spec.collector.resources.limits"},
		{at: "spec.deliverer.resources.requests", says: "must be quantities", spec: "{currency: EUR, deliverer: {resources: {requests: {cpu: 1e1.5}}}}", field: "spec.deliverer.resources.requests"},
		{at: "spec.deliverer.resources.limits", says: "must be quantities", spec: "{currency: EUR, deliverer: {resources: {limits: {cpu: 1e1.5}}}}", field: "spec.deliverer.resources.limits"},
		{at: "spec.query.resources.requests", says: "must be quantities", spec: "{currency: EUR, query: {resources: {requests: {cpu: 1e1.5}}}}", field: "spec.query.resources.requests"},
		{at: "spec.query.resources.limits", says: "must be quantities", spec: "{currency: EUR, query: {resources: {limits: {cpu: 1e1.5}}}}", field: "spec.query.resources.limits"},
		{at: "spec", says: "Redis keeps the newest part", spec: "{currency: EUR, history: {type: ClickHouse, clickHouse: {retentionDays: 61}}}", field: "spec.history.clickHouse.retentionDays"},
		{at: "spec", says: "past would stay behind in the other server", spec: "{currency: EUR, history: {type: ClickHouse}}", after: "{currency: EUR, history: {type: ClickHouse, clickHouse: {urlSecretKeyRef: {name: s, key: url}}}}", field: "spec.history.clickHouse.urlSecretKeyRef"},
		{at: "spec", says: "tables cannot be made of another kind", spec: "{currency: EUR, history: {type: ClickHouse}}", after: "{currency: EUR, history: {type: ClickHouse, clickHouse: {cluster: a}}}", field: "spec.history.clickHouse.cluster"},
		{at: "spec", says: "at most retention.days, or where", spec: "{currency: EUR, retention: {days: 30, identifiersDays: 31}}", field: "spec.retention.identifiersDays"},
		{at: "spec.currency", says: "ISO 4217", spec: "{currency: eur}", field: "spec.currency"},
		{at: "spec.timeZone", says: "IANA", spec: "{currency: EUR, timeZone: Mars/Olympus}", field: "spec.timeZone"},
		{at: "spec.accessTokens[].name", says: "lower-case", spec: "{currency: EUR, accessTokens: [{name: Bi}]}", field: "spec.accessTokens[0].name"},
		{at: "spec.apiKeys[].name", says: "lower-case", spec: "{currency: EUR, apiKeys: [{name: server-}]}", field: "spec.apiKeys[0].name"},
		{at: "spec.apiKeys[]", says: "where type is Publishable, and only there", spec: "{currency: EUR, apiKeys: [{name: a, type: Publishable}]}", field: "spec.apiKeys[0].allowedOrigins"},
		{at: "spec.apiKeys[]", says: "limits is for secret keys", spec: "{currency: EUR, apiKeys: [{name: a, limits: {eventsPerSecond: 1}}]}", field: "spec.apiKeys[0].limits"},
		{at: "spec.apiKeys[].allowedOrigins[]", says: "as browsers send it", spec: "{currency: EUR, apiKeys: [{name: a, type: Publishable, allowedOrigins: ['https://a.example.com/']}]}", field: "spec.apiKeys[0].allowedOrigins[0]"},
		{at: "spec.query.allowedOrigins[]", says: "as browsers send it", spec: "{currency: EUR, query: {allowedOrigins: ['https://a.example.com/']}}", field: "spec.query.allowedOrigins[0]"},
		{at: "spec.exclude.cidrs[]", says: "range such as", spec: "{currency: EUR, exclude: {cidrs: [203.0.113.7]}}", field: "spec.exclude.cidrs[0]"},
		{at: "spec.exclude.hosts[]", says: "without scheme", spec: "{currency: EUR, exclude: {hosts: ['https://a.example.com']}}", field: "spec.exclude.hosts[0]"},
		{at: "spec.exclude.clientIDs[]", says: "1 to 255 characters", spec: "{currency: EUR, exclude: {clientIDs: ['a ']}}", field: "spec.exclude.clientIDs[0]"},
		{at: "spec.eventAliases", says: "map from", spec: "{currency: EUR, eventAliases: {' view': pageview}}", field: "spec.eventAliases"},
		{at: "spec.eventAliases", says: "map to", spec: "{currency: EUR, eventAliases: {view: 'pageview '}}", field: "spec.eventAliases"},
		{at: "spec.collector", says: "absent where autoscaling", spec: "{currency: EUR, collector: {replicas: 2, autoscaling: {maxReplicas: 4}}}", field: "spec.collector.replicas"},
		{at: "spec.collector.autoscaling", says: "at least minReplicas", spec: "{currency: EUR, collector: {autoscaling: {minReplicas: 3, maxReplicas: 2}}}", field: "spec.collector.autoscaling.maxReplicas"},
		{at: "spec.collector.autoscaling", says: "must be set unless", spec: "{currency: EUR, collector: {autoscaling: {}}}", field: "spec.collector.autoscaling.maxReplicas"},
		{at: "spec.collector.autoscaling", says: "must have neither", spec: "{currency: EUR, collector: {autoscaling: {type: External, maxReplicas: 2}}}", field: "spec.collector.autoscaling"},
		{at: "spec.deliverer", says: "absent where autoscaling", spec: "{currency: EUR, deliverer: {replicas: 1, autoscaling: {type: External}}}", field: "spec.deliverer.replicas"},
		{at: "spec.query", says: "absent where autoscaling", spec: "{currency: EUR, query: {replicas: 1, autoscaling: {type: External}}}", field: "spec.query.replicas"},

		{at: "spec.exposure", says: "to expose the collector", spec: "{currency: EUR, exposure: {collectHost: a.example.com}}", field: "spec.exposure.collectHost"},
		{at: "spec.exposure", says: "to expose the read API", spec: "{currency: EUR, exposure: {apiHost: a.example.com}}", field: "spec.exposure.apiHost"},
		{at: "spec.exposure", says: "absent unless type is Ingress", spec: "{currency: EUR, exposure: {ingress: {className: nginx}}}", field: "spec.exposure.ingress"},
		{at: "spec.exposure", says: "set where type is Gateway", spec: "{currency: EUR, exposure: {type: Gateway, collectHost: a.example.com}}", field: "spec.exposure.gateway"},
		{at: "spec.exposure.apiHost", says: "host name", spec: "{currency: EUR, exposure: {type: Ingress, collectHost: a.example.com, apiHost: '*.example.com'}}", field: "spec.exposure.apiHost"},
		{at: "spec.exposure.collectHost", says: "host name", spec: "{currency: EUR, exposure: {type: Ingress, collectHost: 'a.example.com:80'}}", field: "spec.exposure.collectHost"},
		{at: "spec.apiKeys[].secretKeyRef.name", says: "name of a Secret", spec: "{currency: EUR, apiKeys: [{name: a, secretKeyRef: {name: ../x, key: k}}]}", field: "spec.apiKeys[0].secretKeyRef.name"},
		{at: "spec.apiKeys[].secretKeyRef.key", says: "key of a Secret", spec: "{currency: EUR, apiKeys: [{name: a, secretKeyRef: {name: s, key: ..}}]}", field: "spec.apiKeys[0].secretKeyRef.key"},
		{at: "spec", says: "two operators", spec: "{currency: EUR, operatorClass: blue}", after: "{currency: EUR}", field: "spec.operatorClass"},
		{at: "spec.operatorClass", says: "such as blue", spec: "{currency: EUR, operatorClass: Blue}", field: "spec.operatorClass"},
		{at: "spec.accessTokens[].secretKeyRef.name", says: "name of a Secret", spec: "{currency: EUR, accessTokens: [{name: a, secretKeyRef: {name: ../x, key: k}}]}", field: "spec.accessTokens[0].secretKeyRef.name"},
		{at: "spec.accessTokens[].secretKeyRef.key", says: "key of a Secret", spec: "{currency: EUR, accessTokens: [{name: a, secretKeyRef: {name: s, key: ..}}]}", field: "spec.accessTokens[0].secretKeyRef.key"},
		{at: "spec.redis", says: "only there, such as {storage", spec: "{currency: EUR, redis: {}}", field: "spec.redis.dedicated"},
		{at: "spec.redis", says: "makes the certificates of that", spec: "{currency: EUR, redis: {dedicated: {storage: 8Gi, memory: 1Gi}, caSecretRef: {name: ca}}}", field: "spec.redis.caSecretRef"},
		{at: "spec.redis", says: "asks for no certificate", spec: "{currency: EUR, redis: {dedicated: {storage: 8Gi, memory: 1Gi}, clientCertificateSecretRef: {name: mine}}}", field: "spec.redis.clientCertificateSecretRef"},
		{at: "spec.redis.dedicated.storage", says: "above 0", spec: "{currency: EUR, redis: {dedicated: {storage: 0, memory: 1Gi}}}", field: "spec.redis.dedicated.storage"},
		{at: "spec.redis.dedicated.memory", says: "at least 64Mi", spec: "{currency: EUR, redis: {dedicated: {storage: 8Gi, memory: 63Mi}}}", field: "spec.redis.dedicated.memory"},
		{at: "spec.redis.dedicated.storageClassName", says: "name of a StorageClass", spec: "{currency: EUR, redis: {dedicated: {storage: 8Gi, memory: 1Gi, storageClassName: A}}}", field: "spec.redis.dedicated.storageClassName"},
		{at: "spec.redis.dedicated", says: "grow the PersistentVolumeClaim", spec: "{currency: EUR, redis: {dedicated: {storage: 8Gi, memory: 1Gi}}}", after: "{currency: EUR, redis: {dedicated: {storage: 9Gi, memory: 1Gi}}}", field: "spec.redis.dedicated.storage"},
		{at: "spec.redis.dedicated", says: "stays in its class", spec: "{currency: EUR, redis: {dedicated: {storage: 8Gi, memory: 1Gi}}}", after: "{currency: EUR, redis: {dedicated: {storage: 8Gi, memory: 1Gi, storageClassName: fast}}}", field: "spec.redis.dedicated.storageClassName"},
		{at: "spec.redis.urlSecretKeyRef.name", says: "name of a Secret", spec: "{currency: EUR, redis: {urlSecretKeyRef: {name: a/b, key: url}}}", field: "spec.redis.urlSecretKeyRef.name"},
		{at: "spec.redis.urlSecretKeyRef.key", says: "key of a Secret", spec: "{currency: EUR, redis: {urlSecretKeyRef: {name: s, key: a/b}}}", field: "spec.redis.urlSecretKeyRef.key"},
		{at: "spec.redis.caSecretRef.name", says: "name of a Secret", spec: "{currency: EUR, redis: {urlSecretKeyRef: {name: r, key: url}, caSecretRef: {name: CA}}}", field: "spec.redis.caSecretRef.name"},
		{at: "spec.redis.caSecretRef.key", says: "key of a Secret", spec: "{currency: EUR, redis: {urlSecretKeyRef: {name: r, key: url}, caSecretRef: {name: ca, key: ../x}}}", field: "spec.redis.caSecretRef.key"},
		{at: "spec.redis.clientCertificateSecretRef.name", says: "name of a Secret", spec: "{currency: EUR, redis: {urlSecretKeyRef: {name: r, key: url}, clientCertificateSecretRef: {name: ../x}}}", field: "spec.redis.clientCertificateSecretRef.name"},
		{at: "spec.platforms[].credentialsSecretRef.name", says: "name of a Secret", spec: "{currency: EUR, platforms: [{name: a, type: Meta, meta: {pixelID: '1'}, credentialsSecretRef: {name: Meta}}]}", field: "spec.platforms[0].credentialsSecretRef.name"},
		{at: "spec.collector.imagePullSecrets[].name", says: "name of a Secret", spec: "{currency: EUR, collector: {imagePullSecrets: [{name: -a}]}}", field: "spec.collector.imagePullSecrets[0].name"},
		{at: "spec.deliverer.imagePullSecrets[].name", says: "name of a Secret", spec: "{currency: EUR, deliverer: {imagePullSecrets: [{name: a.}]}}", field: "spec.deliverer.imagePullSecrets[0].name"},
		{at: "spec.query.imagePullSecrets[].name", says: "name of a Secret", spec: "{currency: EUR, query: {imagePullSecrets: [{name: a_b}]}}", field: "spec.query.imagePullSecrets[0].name"},
		{at: "spec.exposure.ingress.className", says: "name of an IngressClass", spec: "{currency: EUR, exposure: {type: Ingress, ingress: {className: a b}}}", field: "spec.exposure.ingress.className"},
		{at: "spec.exposure.ingress.tlsSecretName", says: "name of a Secret", spec: "{currency: EUR, exposure: {type: Ingress, ingress: {tlsSecretName: a/b}}}", field: "spec.exposure.ingress.tlsSecretName"},
		{at: "spec.exposure.gateway.parentRefs[].name", says: "name of a Gateway", spec: "{currency: EUR, exposure: {type: Gateway, gateway: {parentRefs: [{name: a/b}]}}}", field: "spec.exposure.gateway.parentRefs[0].name"},
		{at: "spec.exposure.gateway.parentRefs[].namespace", says: "name of a namespace", spec: "{currency: EUR, exposure: {type: Gateway, gateway: {parentRefs: [{name: a, namespace: b.c}]}}}", field: "spec.exposure.gateway.parentRefs[0].namespace"},
		{at: "spec.exposure.gateway.parentRefs[].sectionName", says: "name of a listener", spec: "{currency: EUR, exposure: {type: Gateway, gateway: {parentRefs: [{name: a, sectionName: A}]}}}", field: "spec.exposure.gateway.parentRefs[0].sectionName"},

		{at: "spec.sources[]", says: "beside apiSecretRef", spec: "{currency: EUR, sources: [{name: a, type: Shopify, secretRef: {name: s}, apiSecretRef: {name: s}}]}", field: "spec.sources[0].url"},
		{at: "spec.sources[]", says: "for a source of type Stripe", spec: "{currency: EUR, sources: [{name: a, type: Stripe, secretRef: {name: s}, url: 'https://a.example.com'}]}", field: "spec.sources[0].url"},
		{at: "spec.sources[]", says: "unless type is Stripe", spec: "{currency: EUR, sources: [{name: a, type: Shopify, secretRef: {name: s}, stripe: {}}]}", field: "spec.sources[0].stripe"},
		{at: "spec.sources[].name", says: "lower-case", spec: "{currency: EUR, sources: [{name: -a, type: Shopify, secretRef: {name: s}}]}", field: "spec.sources[0].name"},
		{at: "spec.sources[].secretRef.name", says: "name of a Secret", spec: "{currency: EUR, sources: [{name: a, type: Shopify, secretRef: {name: S}}]}", field: "spec.sources[0].secretRef.name"},
		{at: "spec.sources[].apiSecretRef.name", says: "name of a Secret", spec: "{currency: EUR, sources: [{name: a, type: Stripe, secretRef: {name: s}, apiSecretRef: {name: S}}]}", field: "spec.sources[0].apiSecretRef.name"},
		{at: "spec.sources[].url", says: "https URL", spec: "{currency: EUR, sources: [{name: a, type: Shopify, secretRef: {name: s}, url: 'http://a.example.com'}]}", field: "spec.sources[0].url"},
		{at: "spec.sources[].url", says: "no user name", spec: "{currency: EUR, sources: [{name: a, type: Shopify, secretRef: {name: s}, url: 'https://u:p@a.example.com'}]}", field: "spec.sources[0].url"},

		{at: "spec.platforms[]", says: "type Meta,", spec: "{currency: EUR, platforms: [{name: a, type: Log, meta: {pixelID: '1'}}]}", field: "spec.platforms[0].meta"},
		{at: "spec.platforms[]", says: "type GA4,", spec: "{currency: EUR, platforms: [{name: a, type: GA4, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].ga4"},
		{at: "spec.platforms[]", says: "type TikTok,", spec: "{currency: EUR, platforms: [{name: a, type: TikTok, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].tiktok"},
		{at: "spec.platforms[]", says: "type Pinterest,", spec: "{currency: EUR, platforms: [{name: a, type: Pinterest, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].pinterest"},
		{at: "spec.platforms[]", says: "type Klaviyo,", spec: "{currency: EUR, platforms: [{name: a, type: Klaviyo, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].klaviyo"},
		{at: "spec.platforms[]", says: "type Amplitude,", spec: "{currency: EUR, platforms: [{name: a, type: Amplitude, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].amplitude"},
		{at: "spec.platforms[]", says: "type Google,", spec: "{currency: EUR, platforms: [{name: a, type: Google, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].google"},
		{at: "spec.platforms[]", says: "type Mixpanel,", spec: "{currency: EUR, platforms: [{name: a, type: Mixpanel, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].mixpanel"},
		{at: "spec.platforms[]", says: "type Webhook,", spec: "{currency: EUR, platforms: [{name: a, type: Webhook, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].webhook"},
		{at: "spec.platforms[]", says: "type Microsoft,", spec: "{currency: EUR, platforms: [{name: a, type: Microsoft, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].microsoft"},
		{at: "spec.platforms[]", says: "id of its conversion rule", spec: "{currency: EUR, platforms: [{name: a, type: LinkedIn, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].eventNames"},
		{at: "spec.platforms[]", says: "UET tag's Conversions API", spec: "{currency: EUR, platforms: [{name: a, type: Microsoft, microsoft: {tagID: '1'}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "LinkedIn's Conversions API", spec: "{currency: EUR, platforms: [{name: a, type: LinkedIn, eventNames: {lead: '1'}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "Meta's Conversions API", spec: "{currency: EUR, platforms: [{name: a, type: Meta, meta: {pixelID: '1'}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "Measurement Protocol", spec: "{currency: EUR, platforms: [{name: a, type: GA4, ga4: {measurementID: G-1}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "TikTok's Events API", spec: "{currency: EUR, platforms: [{name: a, type: TikTok, tiktok: {eventSourceID: C1}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "conversion access token", spec: "{currency: EUR, platforms: [{name: a, type: Pinterest, pinterest: {adAccountID: '1'}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "private API key of the account", spec: "{currency: EUR, platforms: [{name: a, type: Klaviyo, klaviyo: {}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "API key of the project", spec: "{currency: EUR, platforms: [{name: a, type: Amplitude, amplitude: {}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "are a service account", spec: "{currency: EUR, platforms: [{name: a, type: Mixpanel, mixpanel: {projectID: '1'}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "key serviceAccountKey", spec: "{currency: EUR, platforms: [{name: a, type: Google, google: {accountID: '1'}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "key signingSecret", spec: "{currency: EUR, platforms: [{name: a, type: Webhook, webhook: {url: 'https://a.example.com'}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "type PostHog,", spec: "{currency: EUR, platforms: [{name: a, type: PostHog, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].posthog"},
		{at: "spec.platforms[]", says: "token of the project", spec: "{currency: EUR, platforms: [{name: a, type: PostHog, posthog: {}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "type Segment,", spec: "{currency: EUR, platforms: [{name: a, type: Segment, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].segment"},
		{at: "spec.platforms[]", says: "write key of the source", spec: "{currency: EUR, platforms: [{name: a, type: Segment, segment: {}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "type OpenAI,", spec: "{currency: EUR, platforms: [{name: a, type: OpenAI, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].openai"},
		{at: "spec.platforms[]", says: "pixel's Conversions API", spec: "{currency: EUR, platforms: [{name: a, type: OpenAI, openai: {pixelID: a}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "type S3,", spec: "{currency: EUR, platforms: [{name: a, type: S3, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].s3"},
		{at: "spec.platforms[]", says: "may write to the bucket", spec: "{currency: EUR, platforms: [{name: a, type: S3, s3: {bucket: abc, region: r}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[]", says: "interface for erasures", spec: "{currency: EUR, platforms: [{name: a, type: Log, forwardErasure: true}]}", field: "spec.platforms[0].forwardErasure"},
		{at: "spec.platforms[]", says: "let one choose a version", spec: "{currency: EUR, platforms: [{name: a, type: Log, apiVersion: v1}]}", field: "spec.platforms[0].apiVersion"},
		{at: "spec.platforms[]", says: "as Meta writes it", spec: "{currency: EUR, platforms: [{name: a, type: Meta, apiVersion: '1', meta: {pixelID: '1'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].apiVersion"},
		{at: "spec.platforms[].eventNames", says: "1 to 100 characters", spec: "{currency: EUR, platforms: [{name: a, type: Meta, eventNames: {lead: ''}, meta: {pixelID: '1'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].eventNames"},
		{at: "spec.platforms[]", says: "what would be in its files", spec: "{currency: EUR, platforms: [{name: a, type: S3, mode: Shadow, s3: {bucket: abc, region: r}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].mode"},
		{at: "spec.platforms[]", says: "as Klaviyo writes it", spec: "{currency: EUR, platforms: [{name: a, type: Klaviyo, apiVersion: '1', klaviyo: {}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].apiVersion"},
		{at: "spec.platforms[]", says: "as LinkedIn writes it", spec: "{currency: EUR, platforms: [{name: a, type: LinkedIn, apiVersion: '1', eventNames: {lead: '1'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].apiVersion"},
		{at: "spec.platforms[]", says: "Log needs no credentials", spec: "{currency: EUR, platforms: [{name: a, type: Log, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].credentialsSecretRef"},

		{at: "spec.platforms[].name", says: "lower-case", spec: "{currency: EUR, platforms: [{name: -a, type: Log}]}", field: "spec.platforms[0].name"},
		{at: "spec.platforms[].events", says: "must be event names", spec: "{currency: EUR, platforms: [{name: a, type: Log, events: ['view ']}]}", field: "spec.platforms[0].events"},
		{at: "spec.platforms[].type", says: "immutable", spec: "{currency: EUR, platforms: [{name: a, type: Log}]}",
			after: "{currency: EUR, platforms: [{name: a, type: Meta, meta: {pixelID: '1'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].type"},
		{at: "spec.platforms[].ga4.measurementID", says: "web data stream", spec: "{currency: EUR, platforms: [{name: a, type: GA4, ga4: {measurementID: UA-1}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].ga4.measurementID"},
		{at: "spec.platforms[].google", says: "must be set for the product Analytics", spec: "{currency: EUR, platforms: [{name: a, type: Google, google: {product: Analytics, accountID: '1'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].google.measurementID"},
		{at: "spec.platforms[].google", says: "must be absent for the product Analytics", spec: "{currency: EUR, platforms: [{name: a, type: Google, google: {product: Analytics, accountID: '1', measurementID: G-1, loginAccountID: '2'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].google.loginAccountID"},
		{at: "spec.platforms[].google.accountID", says: "digits", spec: "{currency: EUR, platforms: [{name: a, type: Google, google: {accountID: 1-2}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].google.accountID"},
		{at: "spec.platforms[].google.loginAccountID", says: "digits", spec: "{currency: EUR, platforms: [{name: a, type: Google, google: {accountID: '1', loginAccountID: x}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].google.loginAccountID"},
		{at: "spec.platforms[].google.measurementID", says: "web data stream", spec: "{currency: EUR, platforms: [{name: a, type: Google, google: {product: Analytics, accountID: '1', measurementID: UA-1}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].google.measurementID"},
		{at: "spec.platforms[].meta.pixelID", says: "digits", spec: "{currency: EUR, platforms: [{name: a, type: Meta, meta: {pixelID: x}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].meta.pixelID"},
		{at: "spec.platforms[].meta.testEventCode", says: "Events Manager", spec: "{currency: EUR, platforms: [{name: a, type: Meta, meta: {pixelID: '1', testEventCode: 'a b'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].meta.testEventCode"},
		{at: "spec.platforms[].microsoft.tagID", says: "digits", spec: "{currency: EUR, platforms: [{name: a, type: Microsoft, microsoft: {tagID: x}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].microsoft.tagID"},
		{at: "spec.platforms[].mixpanel.projectID", says: "digits", spec: "{currency: EUR, platforms: [{name: a, type: Mixpanel, mixpanel: {projectID: x}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].mixpanel.projectID"},
		{at: "spec.platforms[].posthog", says: "absent where region is set", spec: "{currency: EUR, platforms: [{name: a, type: PostHog, posthog: {region: EU, host: 'https://a.example.com'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].posthog.host"},
		{at: "spec.platforms[].posthog.host", says: "http or https", spec: "{currency: EUR, platforms: [{name: a, type: PostHog, posthog: {host: 'ftp://a.example.com'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].posthog.host"},
		{at: "spec.platforms[].posthog.host", says: "no user name", spec: "{currency: EUR, platforms: [{name: a, type: PostHog, posthog: {host: 'https://u:p@a.example.com'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].posthog.host"},
		{at: "spec.platforms[].segment", says: "absent where region is set", spec: "{currency: EUR, platforms: [{name: a, type: Segment, segment: {region: EU, host: 'https://a.example.com'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].segment.host"},
		{at: "spec.platforms[].segment.host", says: "http or https", spec: "{currency: EUR, platforms: [{name: a, type: Segment, segment: {host: 'ftp://a.example.com'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].segment.host"},
		{at: "spec.platforms[].segment.host", says: "no user name", spec: "{currency: EUR, platforms: [{name: a, type: Segment, segment: {host: 'https://u:p@a.example.com'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].segment.host"},
		{at: "spec.platforms[].openai.pixelID", says: "id of a pixel", spec: "{currency: EUR, platforms: [{name: a, type: OpenAI, openai: {pixelID: 'a b'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].openai.pixelID"},
		{at: "spec.platforms[].pinterest.adAccountID", says: "digits", spec: "{currency: EUR, platforms: [{name: a, type: Pinterest, pinterest: {adAccountID: x}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].pinterest.adAccountID"},
		{at: "spec.platforms[]", says: "type Snapchat,", spec: "{currency: EUR, platforms: [{name: a, type: Snapchat, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].snapchat"},
		{at: "spec.platforms[]", says: "token of Snapchat's", spec: "{currency: EUR, platforms: [{name: a, type: Snapchat, snapchat: {pixelID: 1ec32188-754e-4be2-8e55-c949a984a39f}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[].snapchat.pixelID", says: "Snap Pixel", spec: "{currency: EUR, platforms: [{name: a, type: Snapchat, snapchat: {pixelID: x}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].snapchat.pixelID"},
		{at: "spec.platforms[]", says: "type Reddit,", spec: "{currency: EUR, platforms: [{name: a, type: Reddit, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].reddit"},
		{at: "spec.platforms[]", says: "token of Reddit's", spec: "{currency: EUR, platforms: [{name: a, type: Reddit, reddit: {pixelID: a2_1}}]}", field: "spec.platforms[0].credentialsSecretRef"},
		{at: "spec.platforms[].reddit.pixelID", says: "Reddit pixel", spec: "{currency: EUR, platforms: [{name: a, type: Reddit, reddit: {pixelID: a/2}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].reddit.pixelID"},
		{at: "spec.platforms[].reddit.testID", says: "Events Manager", spec: "{currency: EUR, platforms: [{name: a, type: Reddit, reddit: {pixelID: a2_1, testID: 'a b'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].reddit.testID"},
		{at: "spec.platforms[].s3.bucket", says: "name of a bucket", spec: "{currency: EUR, platforms: [{name: a, type: S3, s3: {bucket: 192.168.5.4, region: r}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].s3.bucket"},
		{at: "spec.platforms[].s3.region", says: "name of a region", spec: "{currency: EUR, platforms: [{name: a, type: S3, s3: {bucket: abc, region: R}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].s3.region"},
		{at: "spec.platforms[].s3.endpoint", says: "https URL without a path", spec: "{currency: EUR, platforms: [{name: a, type: S3, s3: {bucket: abc, region: r, endpoint: 'http://s3.example.com'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].s3.endpoint"},
		{at: "spec.platforms[].s3.prefix", says: "slashes between", spec: "{currency: EUR, platforms: [{name: a, type: S3, s3: {bucket: abc, region: r, prefix: a/../b}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].s3.prefix"},
		{at: "spec.platforms[].tiktok.eventSourceID", says: "pixel's code", spec: "{currency: EUR, platforms: [{name: a, type: TikTok, tiktok: {eventSourceID: C-1}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].tiktok.eventSourceID"},
		{at: "spec.platforms[].tiktok.testEventCode", says: "Events Manager", spec: "{currency: EUR, platforms: [{name: a, type: TikTok, tiktok: {eventSourceID: C1, testEventCode: 'a b'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].tiktok.testEventCode"},
		{at: "spec.platforms[].webhook.url", says: "http or https", spec: "{currency: EUR, platforms: [{name: a, type: Webhook, webhook: {url: 'ftp://a.example.com'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].webhook.url"},
		{at: "spec.platforms[].webhook.url", says: "no user name", spec: "{currency: EUR, platforms: [{name: a, type: Webhook, webhook: {url: 'https://u:p@a.example.com'}, credentialsSecretRef: {name: s}}]}", field: "spec.platforms[0].webhook.url"},
	}
}

// TestTheServerRefusesWhatEachRuleForbidsAndNamesTheField has each CEL rule refuse something, and fails where a rule has
// no row.
func TestTheServerRefusesWhatEachRuleForbidsAndNamesTheField(t *testing.T) {
	for resource, table := range map[string][]celRule{"properties": celRules(), "accesstokens": credentialRules("token"), "apikeys": credentialRules("key")} {
		t.Run(resource, func(t *testing.T) { eachRuleRefuses(t, resource, table) })
	}
}

func eachRuleRefuses(t *testing.T, resource string, table []celRule) {
	text, err := os.ReadFile("../config/crd/bases/weir.dev_" + resource + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	definition := apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, &definition); err != nil {
		t.Fatal(err)
	}
	namespace, kind := newNamespace(t), definition.Spec.Names.Kind
	rows := map[int]bool{}
	eachRule(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, "", func(at string, rule apiextensionsv1.ValidationRule) {
		if strings.HasPrefix(at, "status.") {
			return // nobody but the operator writes it
		}
		var found []int
		for i, row := range table {
			if row.at == at && strings.Contains(rule.Message, row.says) {
				found = append(found, i)
			}
		}
		if len(found) != 1 || rows[found[0]] {
			t.Errorf("%s: the rule %q has the rows %v, want one of its own", at, rule.Message, found)
			return
		}
		rows[found[0]] = true
		t.Run(at+" "+rule.Message, func(t *testing.T) {
			row := table[found[0]]
			field, message := row.field, rule.Message
			if row.at == "" {
				field = "<nil>" // a rule about metadata has no field of its own, but its message names it
			}
			err := refusal(t, namespace, kind, row.at == "", row.spec, row.after)
			status := apierrors.APIStatus(nil)
			if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
				t.Fatalf("got %v, want a refusal", err)
			}
			for _, cause := range status.Status().Details.Causes {
				if cause.Field != field || !strings.Contains(cause.Message, message) {
					t.Errorf("it is refused for %s: %s", cause.Field, cause.Message)
				}
			}
		})
	})
	if len(rows) != len(table) {
		t.Errorf("%d of %d rows are of a rule that there is", len(rows), len(table))
	}
}

// credentialRules has a row for each CEL rule of the definition of AccessToken, or of APIKey.
func credentialRules(what string) []celRule {
	hash := strings.Repeat("0a", 32)
	return []celRule{
		{at: "", says: "at most 63 lower-case letters", spec: "{propertyRef: {name: shop}, sha256: " + hash + "}", field: "metadata.name"},
		{at: "spec", says: "is immutable", spec: "{propertyRef: {name: shop}, sha256: " + hash + "}", after: "{propertyRef: {name: blog}, sha256: " + hash + "}", field: "spec"},
		{at: "spec.propertyRef.name", says: "name of a Property", spec: "{propertyRef: {name: 1shop}, sha256: " + hash + "}", field: "spec.propertyRef.name"},
		{at: "spec.sha256", says: "and never the " + what + " itself", spec: "{propertyRef: {name: shop}, sha256: '" + strings.ToUpper(hash) + "'}", field: "spec.sha256"},
	}
}

// refusal returns the server's answer to an object, or to the change of one.
func refusal(t *testing.T, namespace, kind string, misnamed bool, spec, after string) error {
	t.Helper()
	object := func(text string) map[string]any {
		var parsed map[string]any
		if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	p := &unstructured.Unstructured{Object: map[string]any{"spec": object(spec)}}
	p.SetAPIVersion("weir.dev/v1alpha1")
	p.SetKind(kind)
	p.SetNamespace(namespace)
	p.SetName("rules")
	if misnamed {
		p.SetName("no.name")
	}
	ctx := context.Background()
	if after == "" {
		return server.client.Create(ctx, p, client.DryRunAll)
	}
	create(t, p)
	defer func() {
		if err := server.client.Delete(ctx, p); err != nil {
			t.Error(err)
		}
	}()
	changed := p.DeepCopy()
	changed.Object["spec"] = object(after)
	return server.client.Update(ctx, changed, client.DryRunAll)
}

// eachRule calls visit for each CEL rule of a schema.
func eachRule(schema *apiextensionsv1.JSONSchemaProps, at string, visit func(at string, rule apiextensionsv1.ValidationRule)) {
	for _, rule := range schema.XValidations {
		visit(at, rule)
	}
	for name, property := range schema.Properties {
		eachRule(&property, strings.TrimPrefix(at+"."+name, "."), visit)
	}
	if schema.Items != nil {
		eachRule(schema.Items.Schema, at+"[]", visit)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		eachRule(schema.AdditionalProperties.Schema, at+"{}", visit)
	}
}
