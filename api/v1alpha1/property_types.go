package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Property is a tracked website. Its name is the property id of the read API.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=properties,singular=property,shortName=wprop,categories=weir
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Paused",type=string,description="Whether the operator leaves the Property alone",JSONPath=`.status.conditions[?(@.type=="Paused")].status`
// +kubebuilder:printcolumn:name="Collect URL",type=string,JSONPath=`.status.collectURL`
// +kubebuilder:printcolumn:name="API URL",type=string,priority=1,JSONPath=`.status.apiURL`
// +kubebuilder:printcolumn:name="Platforms",type=string,priority=1,description="Whether deliveries to every platform are accepted",JSONPath=`.status.conditions[?(@.type=="PlatformsReady")].status`
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,description="Which operator serves the Property",JSONPath=`.spec.operatorClass`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')",message="metadata.name must be at most 40 lower-case letters, digits and '-', with a letter first and no '-' at the end, such as shop"
type Property struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata. The name is the property id of the read API: at most 40 lower-case letters,
	// digits and '-', a letter first. Of two Properties that have the same name and the same API host, in two
	// namespaces, the older is exposed.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// What the Property shall be.
	// +required
	Spec PropertySpec `json:"spec"`

	// What the operator found and did last.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status PropertyStatus `json:"status,omitzero"`
}

// PropertyList is a list of Properties.
//
// +kubebuilder:object:root=true
type PropertyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Property `json:"items"`
}

// PropertySpec is what a Property shall be. Only the currency is required.
//
// +kubebuilder:validation:XValidation:rule="self.deduplication.windowHours <= self.retention.days * 24",fieldPath=".deduplication.windowHours",message="must be at most 24 times retention.days; lower it along with the retention"
// +kubebuilder:validation:XValidation:rule="!has(self.consent) || !has(self.consent.platforms) || self.consent.platforms.all(own, has(self.platforms) && self.platforms.exists(platform, platform.name == own.name))",fieldPath=".consent.platforms",message="must name platforms of spec.platforms"
// +kubebuilder:validation:XValidation:rule="!has(self.retention.identifiersDays) || self.retention.identifiersDays <= (self.history.type != 'ClickHouse' ? self.retention.days : has(self.history.clickHouse) ? self.history.clickHouse.retentionDays : 1095)",fieldPath=".retention.identifiersDays",message="must be at most retention.days, or where history.type is ClickHouse at most history.clickHouse.retentionDays"
// +kubebuilder:validation:XValidation:rule="!has(self.history.clickHouse) || self.history.clickHouse.retentionDays >= self.retention.days",fieldPath=".history.clickHouse.retentionDays",message="must be at least retention.days: Redis keeps the newest part of what the history keeps"
// +kubebuilder:validation:XValidation:rule="self.history.type != 'ClickHouse' || oldSelf.history.type != 'ClickHouse' || (has(self.history.clickHouse) && has(self.history.clickHouse.urlSecretKeyRef) ? [self.history.clickHouse.urlSecretKeyRef] : []) == (has(oldSelf.history.clickHouse) && has(oldSelf.history.clickHouse.urlSecretKeyRef) ? [oldSelf.history.clickHouse.urlSecretKeyRef] : [])",fieldPath=".history.clickHouse.urlSecretKeyRef",message="is immutable while history.type is ClickHouse, because the past would stay behind in the other server; change the URL in the Secret where the same server has moved"
// +kubebuilder:validation:XValidation:rule="self.history.type != 'ClickHouse' || oldSelf.history.type != 'ClickHouse' || (has(self.history.clickHouse) && has(self.history.clickHouse.cluster) ? [self.history.clickHouse.cluster] : []) == (has(oldSelf.history.clickHouse) && has(oldSelf.history.clickHouse.cluster) ? [oldSelf.history.clickHouse.cluster] : [])",fieldPath=".history.clickHouse.cluster",message="is immutable while history.type is ClickHouse, because tables cannot be made of another kind"
// +kubebuilder:validation:XValidation:rule="has(self.redis) == has(oldSelf.redis) && (!has(self.redis) || (has(self.redis.dedicated) == has(oldSelf.redis.dedicated) && (has(self.redis.urlSecretKeyRef) ? [self.redis.urlSecretKeyRef] : []) == (has(oldSelf.redis.urlSecretKeyRef) ? [oldSelf.redis.urlSecretKeyRef] : [])))",fieldPath=".redis",message="is immutable but for its certificates and dedicated.memory, because the events would stay behind in the other Redis; back them up, make a new Property and restore them instead"
// +kubebuilder:validation:XValidation:rule="has(self.operatorClass) == has(oldSelf.operatorClass) && (!has(self.operatorClass) || self.operatorClass == oldSelf.operatorClass)",fieldPath=".operatorClass",message="is immutable, because two operators would have a hand in the Property; make a new Property instead"
type PropertySpec struct {
	// Which of several operators serves the Property: the one that was started with this --operator-class. Default: the one
	// without a class. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and '-', with a letter first and no '-' at the end, such as blue"
	OperatorClass string `json:"operatorClass,omitempty"`

	// The reporting currency: an ISO 4217 code in capitals. Revenue in other currencies is reported beside it,
	// never converted.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z]{3}$')",message="must be an ISO 4217 currency code in capitals, such as EUR"
	Currency string `json:"currency"`

	// The IANA time zone at whose midnights the days of the read API begin, such as Europe/Berlin.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9_+/-]+$') && self != 'Local' && timestamp('2026-01-01T00:00:00Z').getFullYear(self) > 0",message="must be an IANA time zone, such as Europe/Berlin or UTC"
	TimeZone string `json:"timeZone,omitempty"`

	// The keys with which servers and web pages send events. Two at a time make a rotation without a gap; removing one
	// revokes it. The operator makes the keys that no secretKeyRef brings.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:default={{name: "default"}}
	// +kubebuilder:validation:MaxItems=16
	APIKeys []PropertyAPIKey `json:"apiKeys,omitempty"`

	// The bearer tokens of the read API. Removing one revokes it. The operator makes the tokens that no secretKeyRef brings.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:default={{name: "default"}}
	// +kubebuilder:validation:MaxItems=64
	AccessTokens []PropertyAccessToken `json:"accessTokens,omitempty"`

	// Event names as sent, mapped to the names they stand for, such as page_view: pageview. Applied once, before
	// validation. Names are 1 to 100 characters without control characters or space around them.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule=`self.all(sent, sent.matches(r'^[^\s\p{Z}\p{Cc}]([^\p{Cc}]{0,98}[^\s\p{Z}\p{Cc}])?$'))`,message="must map from event names of 1 to 100 characters without control characters or space around them"
	// +kubebuilder:validation:XValidation:rule=`self.all(sent, self[sent].matches(r'^[^\s\p{Z}\p{Cc}]([^\p{Cc}]{0,98}[^\s\p{Z}\p{Cc}])?$'))`,message="must map to event names of 1 to 100 characters without control characters or space around them"
	EventAliases map[string]EventName `json:"eventAliases,omitempty"`

	// How repeated events are told.
	// +optional
	// +kubebuilder:default={}
	Deduplication Deduplication `json:"deduplication,omitzero"`

	// What is kept, and so what can be asked.
	// +optional
	// +kubebuilder:default={}
	Retention Retention `json:"retention,omitzero"`

	// What the collector accepts.
	// +optional
	// +kubebuilder:default={}
	Limits Limits `json:"limits,omitzero"`

	// How visitors are told apart.
	// +optional
	// +kubebuilder:default={}
	Identity Identity `json:"identity,omitzero"`

	// What becomes of an event of somebody who was erased with suppress. Anonymize: it loses what identifies the person
	// before it is stored, counts as nobody's and is delivered to no platform. Refuse: its sender is told that it is
	// not accepted.
	// +optional
	// +kubebuilder:default=Anonymize
	Suppression Suppression `json:"suppression,omitempty"`

	// Whose events are stored, but neither counted nor delivered.
	// +optional
	// +kubebuilder:default={}
	Exclude Exclude `json:"exclude,omitzero"`

	// Which platforms get what by what visitors have decided.
	// +optional
	Consent *Consent `json:"consent,omitempty"`

	// Where events are delivered to. A new platform gets the events that arrive after it was added.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Platforms []Platform `json:"platforms,omitempty"`

	// The shop systems that report orders and refunds themselves, by webhooks.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	Sources []Source `json:"sources,omitempty"`

	// A Redis of the Property's own. Default: the operator's. Immutable but for the certificates.
	// +optional
	Redis *Redis `json:"redis,omitempty"`

	// Where events are kept beyond what Redis retains, and so how far back can be asked.
	// +optional
	// +kubebuilder:default={}
	History History `json:"history,omitzero"`

	// How the collector and the read API are reached from outside the cluster. Default: not at all.
	// +optional
	// +kubebuilder:default={type: "None"}
	Exposure Exposure `json:"exposure,omitzero"`

	// The pods that accept events.
	// +optional
	// +kubebuilder:default={}
	Collector Collector `json:"collector,omitzero"`

	// The pods that deliver events to the platforms.
	// +optional
	// +kubebuilder:default={}
	Deliverer Workload `json:"deliverer,omitzero"`

	// The pods that answer the read API. Each holds the retained events in memory, unless there is a history.
	// +optional
	// +kubebuilder:default={}
	Query Query `json:"query,omitzero"`

	// The pod that copies events to the history, where there is one.
	// +optional
	// +kubebuilder:default={}
	Archive Archive `json:"archive,omitzero"`

	// What becomes of the stored events, the history's too, and of the ledger of erasures, when the Property is deleted.
	// Retain: events in Redis expire by retention, the history stays, and a Property of the same name and namespace finds
	// them and the ledger again. Delete: all are removed at once.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// EventName is the name of an event.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=100
type EventName string

// PropertyAPIKey is a key with which events are sent.
//
// +kubebuilder:validation:XValidation:rule="(has(self.type) && self.type == 'Publishable') == has(self.allowedOrigins)",fieldPath=".allowedOrigins",message="must be set where type is Publishable, and only there, such as [https://www.example.com]"
// +kubebuilder:validation:XValidation:rule="!has(self.limits) || (has(self.type) && self.type == 'Publishable')",fieldPath=".limits",message="must be absent unless type is Publishable; spec.limits is for secret keys",reason=FieldValueForbidden
type PropertyAPIKey struct {
	// Tells the keys of a Property apart; it is no secret.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and '-', with no '-' at either end, such as server"
	Name string `json:"name"`

	// A key that the owner brings, in place of one that the operator makes: at least 16 visible ASCII characters
	// without '/'. It must not change its meaning while in use: replacing the value revokes the old one at once.
	// +optional
	SecretKeyRef *SecretKeyReference `json:"secretKeyRef,omitempty"`

	// Where the key is kept. Secret: on servers; it may send every event. Publishable: in web pages, where everybody can
	// read it; it may send every event but purchases and refunds. Default: Secret. It is not filled in: whoever compares
	// a list with what was applied would find another one.
	// +optional
	Type APIKeyType `json:"type,omitempty"`

	// The origins of the pages that may use a publishable key, as browsers send them: scheme and host, and the port where
	// it is not the scheme's own. https://*.example.com stands for every host below example.com.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	AllowedOrigins []Origin `json:"allowedOrigins,omitempty"`

	// What is accepted of a publishable key; it does not count against spec.limits.
	// +optional
	Limits *APIKeyLimits `json:"limits,omitempty"`
}

// Origin is that of a page.
//
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([*][.][a-z0-9]([-a-z0-9]*[a-z0-9])?[.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*(:[1-9][0-9]{0,4})?$') && !self.matches('^https://.*:443$') && !self.matches('^http://.*:80$')",message="must be an origin as browsers send it: scheme and host in lower case, the port only where it is not the scheme's own, and no path, such as https://www.example.com; or all hosts below one, such as https://*.example.com"
type Origin string

// APIKeyType is where an API key is kept.
//
// +kubebuilder:validation:Enum=Secret;Publishable
type APIKeyType string

// The types of API keys. One that names none is secret.
const (
	APIKeySecret      APIKeyType = "Secret"
	APIKeyPublishable APIKeyType = "Publishable"
)

// APIKeyLimits bound what is accepted of a publishable key.
type APIKeyLimits struct {
	// How many events a second the key may send, through all of the Property's collectors. Default: 100. Neither of
	// the two is filled in.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	EventsPerSecond *int32 `json:"eventsPerSecond,omitempty"`

	// How many of them may come from one public address, of IPv6 from a /64 network, through one collector; ten seconds'
	// events may come at once. Default: 20.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	EventsPerSecondPerAddress *int32 `json:"eventsPerSecondPerAddress,omitempty"`
}

// The limits of a publishable key that names none.
const (
	DefaultKeyEventsPerSecond           = 100
	DefaultKeyEventsPerSecondPerAddress = 20
)

// PropertyAccessToken is a bearer token of the read API.
type PropertyAccessToken struct {
	// Tells the tokens of a Property apart; it is no secret.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and '-', with no '-' at either end, such as bi"
	Name string `json:"name"`

	// A token that the owner brings, in place of one that the operator makes: at least 16 visible ASCII characters. Replacing
	// the value revokes the old one at once.
	// +optional
	SecretKeyRef *SecretKeyReference `json:"secretKeyRef,omitempty"`

	// What the token may do; each scope includes the ones before it. read: every query. write: also replay
	// deliveries. admin: everything. Default: read. It is not filled in: whoever compares a list with what was applied
	// would find another one.
	// +optional
	Scope AccessTokenScope `json:"scope,omitempty"`

	// When the token stops working. Default: never.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// AccessTokenScope is what an access token may do.
//
// +kubebuilder:validation:Enum=read;write;admin
type AccessTokenScope string

// AccessTokenScopeRead is the scope of a token that names none.
const AccessTokenScopeRead AccessTokenScope = "read"

// GrantedScope is the token's scope, also where it names none.
func (t *PropertyAccessToken) GrantedScope() AccessTokenScope {
	return cmp.Or(t.Scope, AccessTokenScopeRead)
}

// Deduplication is how repeated events are told.
type Deduplication struct {
	// For how many hours an event_id or a purchase's order_id is remembered; at most the retention.
	// +optional
	// +kubebuilder:default=168
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=17544
	WindowHours int32 `json:"windowHours,omitempty"`
}

// Retention is what is kept. Whichever of days and maxEvents is reached first removes the oldest events; what tells of persons
// and devices goes before.
type Retention struct {
	// For how many days events are kept; in Redis, where there is a history.
	// +optional
	// +kubebuilder:default=62
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=731
	Days int32 `json:"days,omitempty"`

	// For how many hours IP addresses and user agents are kept, to an hour more. Deliveries need them, and nothing else: an attempt
	// that is made later goes without them.
	// +optional
	// +kubebuilder:default=72
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=744
	DeviceHours int32 `json:"deviceHours,omitempty"`

	// For how many days is kept what tells whose an event is, to a day more: client, user and session ids, hashes and click ids.
	// Then the event stays in the numbers as nobody's. Default: as long as the events. It holds for events that are received from
	// then on, and for what is shown of all.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3653
	IdentifiersDays *int32 `json:"identifiersDays,omitempty"`

	// How many events are kept at most, delivered or not: a hard ceiling, so that one Property cannot fill Redis
	// for all.
	// +optional
	// +kubebuilder:default=10000000
	// +kubebuilder:validation:Minimum=1000
	// +kubebuilder:validation:Maximum=1000000000
	MaxEvents int64 `json:"maxEvents,omitempty"`
}

// Limits bound what the collector accepts.
type Limits struct {
	// How many events a second are accepted with secret API keys, shared by the Property's collectors. Default: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	EventsPerSecond *int32 `json:"eventsPerSecond,omitempty"`

	// How large the body of one event may be, in bytes, after decompression.
	// +optional
	// +kubebuilder:default=65536
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=1048576
	MaxBodyBytes int64 `json:"maxBodyBytes,omitempty"`
}

// Identity is how visitors are told apart.
type Identity struct {
	// Whether identifiers that an event has together, of user_id, client_id, user.email and user.phone, are one visitor's
	// from then on. It is decided when an event arrives.
	// +optional
	// +kubebuilder:default=true
	Join *bool `json:"join,omitempty"`
}

// CASecretReference names a key, of a Secret in the Property's namespace, that holds certificates of authorities.
type CASecretReference struct {
	// The Secret's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Secret: lower-case letters, digits, '-' and '.', with a letter or digit at either end, such as shop-keys"
	Name string `json:"name"`

	// The key in the Secret's data.
	// +optional
	// +kubebuilder:default=ca.crt
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="must be a key of a Secret: letters, digits, '-', '_' and '.', not beginning with '..', such as ca.crt"
	Key string `json:"key,omitempty"`
}

// SecretReference names a Secret in the Property's namespace.
type SecretReference struct {
	// The Secret's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Secret: lower-case letters, digits, '-' and '.', with a letter or digit at either end, such as shop-keys"
	Name string `json:"name"`
}

// SecretKeyReference names one key of a Secret in the Property's namespace.
type SecretKeyReference struct {
	// The Secret's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Secret: lower-case letters, digits, '-' and '.', with a letter or digit at either end, such as shop-keys"
	Name string `json:"name"`

	// The key in the Secret's data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="must be a key of a Secret: letters, digits, '-', '_' and '.', not beginning with '..', such as url"
	Key string `json:"key"`
}

// DeletionPolicy is what becomes of the stored events when the Property is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

// The deletion policies.
const (
	DeletionPolicyRetain DeletionPolicy = "Retain"
	DeletionPolicyDelete DeletionPolicy = "Delete"
)
