package property

import (
	"cmp"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// adviceOf says in a sentence what to do about the reason of a condition that is not True. docs/operate/troubleshoot.md says more.
func adviceOf(reason string) string {
	for _, table := range []map[string]string{workloadAdvice(), redisAdvice(), historyAdvice(), exposureAdvice(), platformAdvice()} {
		if text := table[reason]; text != "" {
			return text
		}
	}
	return ""
}

func workloadAdvice() map[string]string {
	return map[string]string{
		v1alpha1.ReasonNamespaceNotServed:    "Make the Property in another namespace than kube-*.",
		v1alpha1.ReasonRefused:               "The message has the API server's words: a quota, a policy, or a right that the operator lacks.",
		v1alpha1.ReasonServerFailed:          "It is tried again. If it stays, look at the API server and at the webhooks that it asks.",
		v1alpha1.ReasonSecretMissing:         "Make the Secret that the message names, with the key that it names.",
		v1alpha1.ReasonSecretInvalid:         "Correct the value in the Secret that the message names.",
		v1alpha1.ReasonObjectConflict:        "Remove or rename the object that is not the Property's, or give the Property another name.",
		v1alpha1.ReasonConfigurationInvalid:  "Correct the field that the message names.",
		v1alpha1.ReasonProgressing:           "Wait: pods are being started or replaced.",
		v1alpha1.ReasonUnavailable:           "Look at the pods below, and at kubectl describe pod: an image, room, a volume, memory.",
		v1alpha1.ReasonTolerationNotAllowed:  "Take the toleration out, or have the operator allow it (tenants.*).",
		v1alpha1.ReasonResourceNotAllowed:    "Ask for less, or have the operator allow it (tenants.*).",
		v1alpha1.ReasonAffinityNotAllowed:    "Take out the affinity to pods of other namespaces.",
		v1alpha1.ReasonAnnotationNotAllowed:  "Take the annotation out, or have the operator allow it (tenants.*).",
		v1alpha1.ReasonLedgerFull:            "Make room in the ledger of erasures: docs/operate/back-up.md.",
		v1alpha1.ReasonLedgerLost:            "Put the ledger's Secret back from a backup: docs/operate/back-up.md.",
		v1alpha1.ReasonRedisRewriteDenied:    "Let the user of the Redis URL use BGREWRITEAOF.",
		v1alpha1.ReasonRedisKeepsErased:      "Have Redis write no snapshots (save \"\").",
		v1alpha1.ReasonRedisRewriteFailed:    "Look at Redis's log and disk: it cannot rewrite its append-only file.",
		v1alpha1.ReasonIngressClassMissing:   "Name an IngressClass that the cluster has.",
		v1alpha1.ReasonIngressClassUnknown:   "Name an IngressClass that the cluster has; nobody has given the Ingress an address yet.",
		v1alpha1.ReasonCredentialsReplaced:   "Hand the new keys out: those of before are refused.",
		v1alpha1.ReasonSharedUser:            "Nothing has to be done. A Redis whose user may make others keeps roles apart.",
		v1alpha1.ReasonNotExposed:            "Nothing has to be done where events come from inside the cluster; else set spec.exposure.",
		v1alpha1.ReasonPending:               "Wait, or look at the Property's conditions.",
		v1alpha1.ReasonPropertyMissing:       "Make the Property, or the object anew for another.",
		v1alpha1.ReasonExpired:               "Make another.",
		v1alpha1.ReasonScaledToZero:          "Have whoever scales the role leave one pod at least, or set replicas: 0 in the spec.",
		v1alpha1.ReasonPaused:                "Take the annotation weir.dev/paused off when you are done: nothing is revoked or put right meanwhile.",
		v1alpha1.ReasonPauseInvalid:          "Give the annotation weir.dev/paused the value \"true\" or \"false\".",
		v1alpha1.ReasonLimitReached:          "Delete those that nobody uses.",
		v1alpha1.ReasonDuplicate:             "Make another, with a secret of its own.",
		v1alpha1.ReasonConfigurationRejected: "Correct the settings, or the permission at the platform or shop.",
	}
}

func redisAdvice() map[string]string {
	return map[string]string{
		v1alpha1.ReasonRedisUnreachable:          "Look whether Redis runs, and its pod where the message names one, and whether a NetworkPolicy or a wrong host keeps the operator from it.",
		v1alpha1.ReasonRedisUnsupported:          "Take a Redis 7.0 or newer, or a Valkey.",
		v1alpha1.ReasonEvictionEnabled:           "Set maxmemory-policy noeviction: Redis could drop events otherwise.",
		v1alpha1.ReasonRedisAdminDenied:          "Let the user of the Redis URL administer users and functions.",
		v1alpha1.ReasonRedisInfoDenied:           "Let the user of the Redis URL use INFO.",
		v1alpha1.ReasonRedisFunctionsMissing:     "Take a Redis with Functions, and none of another's under the library's name.",
		v1alpha1.ReasonRedisAuthenticationFailed: "Correct user and password of the Redis URL.",
		v1alpha1.ReasonRedisTLSFailed:            "Correct the certificates: the message says which.",
		v1alpha1.ReasonRedisProtocolError:        "Correct the URL: what answers there is no Redis.",
		v1alpha1.ReasonRedisAddressDenied:        "Use an address that the operator allows, or have it allowed.",
		v1alpha1.ReasonRedisNotOffered:           "Have the operator started with --redis-image, or name a Redis in spec.redis.urlSecretKeyRef.",
		v1alpha1.ReasonRedisLimitReached:         "Use fewer Redis servers in the namespace, or have more allowed.",
	}
}

func historyAdvice() map[string]string {
	return map[string]string{
		v1alpha1.ReasonHistoryServerMissing: "Name a ClickHouse in spec.history, or have the operator given one.",
		v1alpha1.ReasonHistoryUnreachable:   "Look whether ClickHouse runs and whether a NetworkPolicy or a wrong host is in the way.",
		v1alpha1.ReasonHistoryAddressDenied: "Use an address that the operator allows, or have it allowed.",
		v1alpha1.ReasonHistoryAccessDenied:  "Correct user and password of the ClickHouse URL, or give the user the right that the message names.",
		v1alpha1.ReasonHistoryVersionTooOld: "Take a ClickHouse 24.8 or newer.",
		v1alpha1.ReasonHistoryDiskFull:      "Give ClickHouse more disk, or keep fewer days.",
		v1alpha1.ReasonHistoryTooManyParts:  "Give ClickHouse more time to merge: it has too much to do.",
		v1alpha1.ReasonHistoryTablesDiffer:  "Put the table's column back as it was: docs/operate/history.md.",
		v1alpha1.ReasonHistoryLimitReached:  "Use fewer ClickHouse servers in the namespace, or have more allowed.",
		v1alpha1.ReasonHistoryRefused:       "The message has ClickHouse's words.",
		v1alpha1.ReasonArchiveLagging:       "Look at the archive's pod and at ClickHouse: docs/operate/runbooks/WeirArchiveLagging.md.",
		v1alpha1.ReasonVersionEnding:        "Upgrade Weir, or name another apiVersion of the platform, before that day.",
		v1alpha1.ReasonVersionEnded:         "Upgrade Weir, or name another apiVersion of the platform.",
	}
}

func exposureAdvice() map[string]string {
	return map[string]string{
		v1alpha1.ReasonHostConflict:           "Choose another host: an older Property has this one.",
		v1alpha1.ReasonHostMissing:            "Set spec.exposure.collectHost.",
		v1alpha1.ReasonHostNotAllowed:         "Choose a host that the operator allows in this namespace, or have it allowed.",
		v1alpha1.ReasonIngressClassNotAllowed: "Name a class that the operator allows, or have it allowed.",
		v1alpha1.ReasonGatewayNotAllowed:      "Name a Gateway that the operator allows, or have it allowed.",
		v1alpha1.ReasonGatewayMissing:         "Install the Gateway API, or expose by an Ingress.",
		v1alpha1.ReasonRouteNotAccepted:       "kubectl describe httproute says why the Gateway does not take it.",
	}
}

func platformAdvice() map[string]string {
	return map[string]string{
		v1alpha1.ReasonCredentialsRejected: "Put a new credential into the Secret of the platform or shop.",
		v1alpha1.ReasonEgressDenied:        "Use a public host, or have the operator allow the address (tenants.egressAllowCIDRs).",
	}
}

// wordsFor is the advice, or where to look where a newer operator has a reason of which this command does not know.
func wordsFor(reason string) string {
	return cmp.Or(adviceOf(reason), "docs/operate/troubleshoot.md has what to do by the reason.")
}
