package v1alpha1

// The types of a Property's conditions. Every one of them is good when True, but for Paused. Unknown means that the operator
// has not been able to look.
const (
	// ConditionReady says that events can be sent and read: CredentialsReady, RedisReady, HistoryReady where it is
	// there and WorkloadsAvailable are True, and Exposed is not False. Its reason and message are those of the first that is not so.
	ConditionReady = "Ready"
	// ConditionCredentialsReady says that every API key and access token of the spec exists, and no others.
	ConditionCredentialsReady = "CredentialsReady"
	// ConditionRedisReady says that the Property's Redis answers, is fit to keep events and has its users and
	// function library.
	ConditionRedisReady = "RedisReady"
	// ConditionWorkloadsAvailable says that all pods are as the spec has them and that of each role one serves at least.
	ConditionWorkloadsAvailable = "WorkloadsAvailable"
	// ConditionExposed says that the hosts of the spec lead to the pods, or that there are none.
	ConditionExposed = "Exposed"
	// ConditionHistoryReady says that the history is there, that its users may do what they have to, and that what Redis has is
	// being copied to it. It is absent where there is no history. A copy that lags behind leaves Ready as it is.
	ConditionHistoryReady = "HistoryReady"
	// ConditionPlatformsReady says that no platform refuses deliveries. It stands apart from Ready, so that a
	// platform's outage fails no deployment.
	ConditionPlatformsReady = "PlatformsReady"
	// ConditionVersionsSupported says that no platform has announced to end, within 60 days, the version of its interface that is
	// spoken to it. It stands apart from Ready as well.
	ConditionVersionsSupported = "VersionsSupported"
	// ConditionSourcesReady says that every source has its Secrets, and that no shop refuses to have its orders read. It
	// stands apart from Ready as well.
	ConditionSourcesReady = "SourcesReady"
	// ConditionErasuresReady says that persons can be erased: the ledger of erasures is there and has room, and nothing keeps
	// Redis's files from being rid of them. It stands apart from Ready as well.
	ConditionErasuresReady = "ErasuresReady"
	// ConditionPaused says that the annotation weir.dev/paused keeps the operator from changing anything of the Property; the other
	// conditions then say what was found before. It is absent from Properties without the annotation.
	ConditionPaused = "Paused"
)

// ReasonPauseInvalid of Paused means that the annotation weir.dev/paused is neither "true" nor "false", and so no pause. False.
const ReasonPauseInvalid = "PauseInvalid"

// ReasonPaused of Paused means that the annotation weir.dev/paused is "true". True.
const ReasonPaused = "Paused"

// ReasonReady is the reason of a condition that is True, where nothing better is said below.
const ReasonReady = "Ready"

// ReasonNamespaceNotServed of Ready means that the Property is in one of the cluster's own namespaces. False.
const ReasonNamespaceNotServed = "NamespaceNotServed"

// Reasons of any condition whose objects cannot be made, changed, removed or read. False.
const (
	// ReasonRefused: the API server refuses it, as invalid, as forbidden, or for a quota or policy. The message has its words.
	ReasonRefused = "Refused"
	// ReasonServerFailed: the API server, or a webhook that it asks, could not do it.
	ReasonServerFailed = "ServerFailed"
)

// Reasons of CredentialsReady. False.
const (
	// ReasonSecretMissing: a Secret that the spec refers to does not exist, or lacks the key. Also of RedisReady, HistoryReady,
	// PlatformsReady and SourcesReady.
	ReasonSecretMissing = "SecretMissing"
	// ReasonSecretInvalid: a Secret's value is not what the field needs. Also of RedisReady, HistoryReady,
	// PlatformsReady, SourcesReady and ErasuresReady.
	ReasonSecretInvalid = "SecretInvalid"
)

// ReasonCredentialsReplaced of CredentialsReady means that keys or tokens were deleted from their Secret, or with it, and
// made anew: the ones before are refused. True, until the spec changes.
const ReasonCredentialsReplaced = "CredentialsReplaced"

// Reasons of RedisReady. False.
const (
	// ReasonRedisUnreachable: Redis does not answer.
	ReasonRedisUnreachable = "RedisUnreachable"
	// ReasonRedisUnsupported: Redis is older than 7.0, or lacks what is needed.
	ReasonRedisUnsupported = "RedisUnsupported"
	// ReasonEvictionEnabled: maxmemory-policy is not noeviction, so Redis could drop events unasked.
	ReasonEvictionEnabled = "EvictionEnabled"
	// ReasonRedisAdminDenied: the user of the Redis URL may not administer users or functions. Also of ErasuresReady: it may
	// not do what erasures take.
	ReasonRedisAdminDenied = "RedisAdminDenied"
	// ReasonRedisInfoDenied: the user of the Redis URL may not use the command INFO.
	ReasonRedisInfoDenied = "RedisInfoDenied"
	// ReasonRedisFunctionsMissing: Redis has no Functions, or others of the library's name.
	ReasonRedisFunctionsMissing = "RedisFunctionsMissing"
	// ReasonRedisAuthenticationFailed: Redis does not take the URL's user and password.
	ReasonRedisAuthenticationFailed = "RedisAuthenticationFailed"
	// ReasonRedisTLSFailed: there is no encrypted connection, because of a certificate for example.
	ReasonRedisTLSFailed = "RedisTLSFailed"
	// ReasonRedisProtocolError: what answers is no Redis, or answers with more than is taken.
	ReasonRedisProtocolError = "RedisProtocolError"
	// ReasonRedisAddressDenied: Redis is at an address that the operator does not allow.
	ReasonRedisAddressDenied = "RedisAddressDenied"
	// ReasonRedisLimitReached: the namespace's Properties bring more Redis servers than they may.
	ReasonRedisLimitReached = "RedisLimitReached"
	// ReasonRedisNotOffered: the spec asks for a Redis that the operator makes, and this operator has no image for one; True where there
	// is one already.
	ReasonRedisNotOffered = "RedisNotOffered"
)

// Reasons of HistoryReady. False. Those of which it is said are also what the archive pauses with, under the same name.
const (
	// ReasonHistoryServerMissing: the Property names no ClickHouse, and the operator has none.
	ReasonHistoryServerMissing = "HistoryServerMissing"
	// ReasonHistoryUnreachable: ClickHouse, or another server of its cluster, does not answer, or answers nonsense. Also the archive's.
	ReasonHistoryUnreachable = "HistoryUnreachable"
	// ReasonHistoryAddressDenied: ClickHouse is at an address that the operator does not allow.
	ReasonHistoryAddressDenied = "HistoryAddressDenied"
	// ReasonHistoryAccessDenied: ClickHouse does not take user and password, or the user lacks a right. Also the archive's.
	ReasonHistoryAccessDenied = "HistoryAccessDenied"
	// ReasonHistoryVersionTooOld: ClickHouse is older than 24.8. Also the archive's.
	ReasonHistoryVersionTooOld = "HistoryVersionTooOld"
	// ReasonHistoryDiskFull: ClickHouse has no room left. Also the archive's.
	ReasonHistoryDiskFull = "HistoryDiskFull"
	// ReasonHistoryTooManyParts: ClickHouse merges more slowly than blocks come. Also the archive's.
	ReasonHistoryTooManyParts = "HistoryTooManyParts"
	// ReasonHistoryTablesDiffer: a table of the history has a column of another type than it must have.
	ReasonHistoryTablesDiffer = "HistoryTablesDiffer"
	// ReasonHistoryLimitReached: the namespace's Properties bring more ClickHouse servers than they may.
	ReasonHistoryLimitReached = "HistoryLimitReached"
	// ReasonHistoryRefused: ClickHouse refuses a statement for another cause, which the message has.
	ReasonHistoryRefused = "HistoryRefused"
	// ReasonArchiveLagging: what is in Redis has not been copied for a while. It leaves Ready as it is.
	ReasonArchiveLagging = "ArchiveLagging"
)

// ReasonSharedUser of RedisReady means that the user of spec.redis may not make users, so that all roles share it.
// True.
const ReasonSharedUser = "SharedUser"

// ReasonObjectConflict means that an object which the Property needs exists and is not the Property's. It is left
// alone. Of CredentialsReady, HistoryReady, WorkloadsAvailable and ErasuresReady. False.
const ReasonObjectConflict = "ObjectConflict"

// Reasons of WorkloadsAvailable. False.
const (
	// ReasonProgressing: pods are being started or replaced. Also of HistoryReady: database, users and tables are being made.
	ReasonProgressing = "Progressing"
	// ReasonUnavailable: pods do not become ready, and nothing has moved for a while.
	ReasonUnavailable = "Unavailable"
	// ReasonScaledToZero: whoever scales a role in place of the spec has scaled it to 0 pods, from which nothing wakes it.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonTolerationNotAllowed: the operator does not allow a toleration of a role's pods.
	ReasonTolerationNotAllowed = "TolerationNotAllowed"
	// ReasonResourceNotAllowed: a role's pods ask for a resource that is more than a share of a node.
	ReasonResourceNotAllowed = "ResourceNotAllowed"
	// ReasonAffinityNotAllowed: an affinity is about pods of other namespaces.
	ReasonAffinityNotAllowed = "AffinityNotAllowed"
)

// Reasons of Exposed.
const (
	// ReasonNotExposed: exposure.type is None. True.
	ReasonNotExposed = "NotExposed"
	// ReasonHostConflict: an older Property has the collectHost, or the name on the apiHost. False.
	ReasonHostConflict = "HostConflict"
	// ReasonHostMissing: there is no collectHost, and the operator has no template for one. False.
	ReasonHostMissing = "HostMissing"
	// ReasonHostNotAllowed: the operator does not allow the host in this namespace. False.
	ReasonHostNotAllowed = "HostNotAllowed"
	// ReasonAnnotationNotAllowed: the operator does not allow an annotation of exposure.ingress, or of a role's pods.
	// Also of WorkloadsAvailable. False.
	ReasonAnnotationNotAllowed = "AnnotationNotAllowed"
	// ReasonIngressClassNotAllowed: the operator does not allow the class of exposure.ingress. False.
	ReasonIngressClassNotAllowed = "IngressClassNotAllowed"
	// ReasonGatewayNotAllowed: the operator does not allow a Gateway of another namespace. False.
	ReasonGatewayNotAllowed = "GatewayNotAllowed"
	// ReasonGatewayMissing: the cluster does not have the Gateway API. False.
	ReasonGatewayMissing = "GatewayMissing"
	// ReasonRouteNotAccepted: a Gateway has not accepted an HTTPRoute, or is not there. False.
	ReasonRouteNotAccepted = "RouteNotAccepted"
	// ReasonIngressClassMissing: the cluster has no such IngressClass. False.
	ReasonIngressClassMissing = "IngressClassMissing"
	// ReasonIngressClassUnknown: the operator may not look whether there is such a class, and nobody has given the Ingress an
	// address. Unknown, which leaves Ready as it is.
	ReasonIngressClassUnknown = "IngressClassUnknown"
)

// Reasons of PlatformsReady and SourcesReady. False.
const (
	// ReasonCredentialsRejected: a platform or shop refuses the credentials, or they allow too little.
	ReasonCredentialsRejected = "CredentialsRejected"
	// ReasonConfigurationRejected: a platform refuses the settings, a webhook answers that it is gone, or a shop's API is
	// not where the source has it.
	ReasonConfigurationRejected = "ConfigurationRejected"
	// ReasonEgressDenied: a webhook's or shop's host has only addresses that the operator does not allow.
	ReasonEgressDenied = "EgressDenied"
)

// Reasons of VersionsSupported. False.
const (
	// ReasonVersionEnding: a platform ends the version of its interface that is spoken to it within 60 days. The message has the day.
	ReasonVersionEnding = "VersionEnding"
	// ReasonVersionEnded: the day is past; the platform may refuse the events, or read them by the rules of a later version.
	ReasonVersionEnded = "VersionEnded"
)

// Reasons of ErasuresReady. False.
const (
	// ReasonLedgerFull: the ledger of erasures has no room for those who are to be erased next.
	ReasonLedgerFull = "LedgerFull"
	// ReasonLedgerLost: the Secret with the ledger of erasures was deleted, and a new one has nobody in it who was erased before.
	ReasonLedgerLost = "LedgerLost"
	// ReasonRedisRewriteDenied: the user of the Redis URL may not have Redis rewrite its append-only file, so that it keeps what
	// was erased.
	ReasonRedisRewriteDenied = "RedisRewriteDenied"
	// ReasonRedisKeepsErased: Redis writes snapshots, which keep what was erased.
	ReasonRedisKeepsErased = "RedisKeepsErased"
	// ReasonRedisRewriteFailed: Redis has failed to rewrite its append-only file three times in a row.
	ReasonRedisRewriteFailed = "RedisRewriteFailed"
)

// ReasonConfigurationInvalid means that the spec asks for something that only the operator can tell to be wrong,
// such as a currency that is not in ISO 4217. Of WorkloadsAvailable. False.
const ReasonConfigurationInvalid = "ConfigurationInvalid"

// Reasons of Ready of an AccessToken or an APIKey. False: the key or token is refused.
const (
	// ReasonPending: the Property's pods cannot be told of it yet. The message says why, or the Property's conditions do.
	ReasonPending = "Pending"
	// ReasonPropertyMissing: there is no such Property in the namespace, or it was made for one of the name that is gone.
	ReasonPropertyMissing = "PropertyMissing"
	// ReasonExpired: its expirationTime is past.
	ReasonExpired = "Expired"
	// ReasonLimitReached: the Property has 256 others of its kind in force.
	ReasonLimitReached = "LimitReached"
	// ReasonDuplicate: its hash is that of a key or token that the Property has already. It is refused for good, also when the
	// other one is revoked.
	ReasonDuplicate = "Duplicate"
)
