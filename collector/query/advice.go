package query

import (
	"strconv"
	"strings"

	"github.com/weir-dev/weir/collector/stream"
)

// What advice ends with where a cause has to be mended first, and where there is nothing to do.
const (
	sendAgain = " Then send the failed deliveries again."
	byItself  = "Nothing to do: it is tried again by itself."
)

// Advice that several reasons share.
const (
	adviceUnreachable = "The platform cannot be reached from here. " + byItself + " If it goes on, look at the platform's status page, and at " +
		"firewalls and network policies of your own."
	adviceDown        = "The platform has a fault or is overloaded. " + byItself + " If it goes on, look at the platform's status page."
	adviceCredentials = "Put a valid credential into the Secret that the platform's credentialsSecretRef names; it is read without a restart."
	advicePermission  = "Correct the platform's settings in the Property (address, account id), or give the credential the permission for them " +
		"at the platform."
	adviceDenied  = "The visitor did not allow it, and the platform requires that. Nothing to do: this is what the visitor decided."
	adviceGrowing = "The platform's answer does not say that it has the event. " + byItself + " If it goes on, look whether events arrive at the platform."
	adviceField   = "The platform refuses the event for this field. Look up the field on the platform's page in the reference and correct what sends it."
	adviceRefused = "The platform refuses the event as it is: mostly for an id of the account, a currency or a missing field. Look at the event, and " +
		"at the platform's page in the reference, which says what it checks."
	adviceOwnCode   = "This is the platform's own code; its documentation says what it means. Mostly an id of the account or a permission is wrong."
	adviceMissing   = "The platform needs that of the event, and the event has none. Send it along with your events."
	adviceShop      = "The refund cannot be matched to a purchase that this platform has. Nothing to do, unless the purchase should have gone there."
	adviceToken     = "The platform's server of tokens does not work. " + byItself
	adviceBucket    = "Correct the platform's bucket, region or endpoint in the Property, or the bucket itself."
	adviceEgress    = "The platform's host has a private address, which the operator does not allow. Use a public host, or have the address allowed (--egress-allow-cidr)."
	adviceProxyDown = "The proxy that deliveries go through does not answer, or does not reach the platform. " + byItself + " If it goes on, tell whoever runs Weir."
	adviceSecret    = "The platform's Secret lacks a key or holds one of the wrong form. The deliverer's log names the key."
	adviceReported  = "Weir cannot read or write this event. The deliverer's log has the cause; please report it."
)

// advices say what to do about a reason of a delivery record, or about a reason for which a platform is paused until
// somebody has mended something. docs/reference/delivery-states.md has the same reasons.
var advices = map[string]string{
	"timeout": adviceUnreachable, "connection_refused": adviceUnreachable, "connection_reset": adviceUnreachable, "connection_failed": adviceUnreachable,
	"name_not_resolved": "The platform's host name has no address. Check its spelling in the Property; else your DNS is at fault.",
	"tls_failed":        "The platform's certificate cannot be verified. Give its host a valid certificate, or look what stands between.",
	"egress_denied":     adviceEgress,
	"proxy_unreachable": adviceProxyDown, "proxy_502": adviceProxyDown,
	"proxy_timeout": "The proxy that deliveries go through does not say in time whether it reaches the platform. " + byItself +
		" If it goes on, look whether the platform's host is right and answers; else tell whoever runs Weir.",
	"proxy_403":         "The proxy that deliveries go through does not allow the platform's host. Ask whoever runs Weir to have it allowed.",
	"proxy_407":         "The proxy that deliveries go through refuses Weir's own credential. Tell whoever runs Weir.",
	"replayed":          "Nothing to do: somebody has had it sent again, and it is next.",
	"queued":            "Nothing to do: the platform has taken the event and has not said yet what became of it.",
	"request_unknown":   "Nothing to do: the platform has lost what it had queued, and the event is sent again.",
	"awaiting_purchase": "Nothing to do: the refund waits until the platform has its purchase.",
	"awaiting_refund":   "Nothing to do: the refund waits until the platform has another refund of the same order.",
	"too_recent_click":  "Nothing to do: Google does not know the click yet, and the event is sent again after six hours.",
	"destination_account_enhanced_conversions_terms_not_signed": "Sign Google's terms for enhanced conversions in the account. The event is sent again every hour.",
	"terms_and_conditions_not_signed":                           "The owner of the account at Google has to accept its terms first.",
	"batch_refused":                                             "Nothing to do: another event of the same request was refused, and this one is sent again without it.",
	"grant_refused":                                             "The platform grants no token for the credential. " + adviceCredentials,
	"token_server_failed":                                       adviceToken,
	"token_unreadable":                                          adviceToken,
	"interrupted":                                               "Nothing to do: the deliverer was stopped while it waited for the answer, and the event is sent again.",
	"throttled":                                                 "The platform limits the rate of requests. Nothing to do: it slows down by itself. If it stays so, ask the platform for a higher limit.",
	"unauthorized":                                              "The platform refuses the credential. " + adviceCredentials,
	"redirected":                                                "The address answers that the platform is elsewhere. Put the new address into the Property; redirects are not followed.",
	"api_version_ended":                                         "The platform does not take this version of its interface any more. Update Weir.",
	"revision_refused":                                          "The platform does not take this version of its interface. Name another one as apiVersion in the Property, or update Weir.",
	"rule_refused":                                              "The platform has no conversion with the id that the Property gives the event. Correct eventNames in the Property.",
	"url_invalid":                                               "The configured URL is none. Correct it in the Property.",
	"answer_unreadable":                                         adviceGrowing,
	"not_received":                                              adviceGrowing,
	"refused":                                                   adviceRefused,
	"time_refused":                                              "The platform refuses the event's time. Send the timestamp at which it happened, or none, and send events as they happen.",
	"device_silenced":                                           "The platform takes nothing of this visitor's device, because you or the platform have silenced it there.",
	"status_unknown":                                            "The platform queued the event and has not said what became of it. Look whether it arrived there before you send it again.",
	"denied_consent":                                            "Google did not take the event for want of consent. Send the visitor's consent along with the event.",
	"invalid_gclid":                                             "Google does not know the click's id. Pass gclid on from the landing page unchanged.",
	"request_failed":                                            "Google refused what it had queued and gave no reason. Look at the diagnostics of the conversion action there.",
	"too_large":                                                 "The event is too large for the platform. Send fewer items or shorter properties.",
	"undecodable":                                               adviceReported,
	"unrenderable":                                              adviceReported,
	"event_excluded":                                            "Nothing to do: the platform's events in the Property do not name this event. Add it there if the platform is to get it.",
	"no_mapping":                                                "The platform has nothing like this event. Name what it is there under eventNames in the Property if it is to get it.",
	"no_identifier":                                             "Nothing in the event tells the platform whose it is. Send more of the visitor along: an e-mail address, a client_id, click ids.",
	"transaction_unknown":                                       adviceShop,
	"other_currency":                                            "The refund is in another currency than its purchase, or has no value. Send it in the purchase's currency.",
	"no_client_id":                                              adviceMissing,
	"no_order_id":                                               adviceMissing,
	"no_value":                                                  adviceMissing,
	"no_page_url":                                               adviceMissing,
	"name_reserved":                                             "The platform keeps this event's name for itself. Send the event under another name, or rename it for the platform with eventNames.",
	"currency_unsupported":                                      "The platform does not know the event's currency. Nothing to do, unless the currency is a mistake.",
	"consent_ad_storage":                                        adviceDenied, "consent_ad_user_data": adviceDenied, "consent_ad_personalization": adviceDenied,
	"consent_analytics_storage": adviceDenied, "consent_sale": adviceDenied,
	"consent_vendor":     "The visitor's TCF string does not allow this platform. Check that your consent banner lists it as a vendor.",
	"consent_unreadable": "The event's consent string cannot be read, so it is taken for a refusal. Send the string as your consent banner gives it.",
	"consent_absent":     "The event says nothing of consent. Send the visitor's decision along, or change whenAbsent in the Property.",
	"shadow":             "Nothing to do: the platform's mode is Shadow, so nothing is sent. Set the mode to Deliver when it is to get events.",
	"platform_removed":   "Nothing to do: the platform was removed from the Property.",
	"too_old":            "The event was older than the platform takes when it was received. Send events as they happen.",
	"trimmed":            "The event left the stream before it was delivered. Raise retention.days or retention.maxEvents in the Property.",
	"no_such_bucket":     adviceBucket, "wrong_region": adviceBucket,
	"no_conditional_writes": "The bucket's server does not keep files from being overwritten (If-None-Match). Use one that does.",
	"changed_meanwhile":     "Nothing to do: another deliverer has written meanwhile, and this one goes on from there.",
	"file_deleted":          "A file was deleted from the bucket before its day was over. Restore it, or leave files alone until their day is over.",
	"not_parquet":           "A file in the bucket is cut off or foreign; the deliverer's log names it. Restore it, or delete it with the rows it had.",
	"clock_skewed":          "The clock of this machine and the bucket's server differ by too much. Set this machine's clock.",
	"misconfigured":         adviceSecret,

	"CredentialsRejected":   "The platform refuses the credential. " + adviceCredentials,
	"ConfigurationRejected": "The platform refuses its settings, or is gone. " + advicePermission,
	"EgressDenied":          adviceEgress,
	"SecretMissing":         "The Secret that the platform's credentialsSecretRef names is missing. Create it.",
	"SecretInvalid":         adviceSecret,
}

// advicesOf are those that hold for a status alone, where the same reason means something else in another one.
var advicesOf = map[stream.Status]map[string]string{
	stream.Failed: {
		"unauthorized":  "The platform refused this event's credential again and again while it took others. " + adviceCredentials + sendAgain,
		"redirected":    "The address sent this event elsewhere while it took others. Correct the platform's settings." + sendAgain,
		"batch_refused": "The platform refused the event and did not say why. Look at the event, and at the platform's page in the reference.",
	},
	stream.Expired: {
		"too_old":         "The event waited for so long that the platform does not take it any more. Look what kept the platform from taking events.",
		"awaiting_refund": "Another refund of the order was under way for three days. Correct the order's value at the platform by hand.",
	},
}

// adviceFor says what a shop's person can do about a delivery that is in a status for a reason, or about a platform that is paused
// for one, in one or two sentences; "" where there is no reason.
func adviceFor(status stream.Status, reason string) string {
	if reason == "" {
		return ""
	}
	if advice, found := advicesOf[status][reason]; found {
		return advice
	}
	if advice, found := advices[reason]; found {
		return advice
	}
	if code, found := strings.CutPrefix(reason, "http_"); found {
		return adviceForStatus(status, code)
	}
	switch {
	case strings.HasPrefix(reason, "code_"):
		return adviceOwnCode
	case strings.HasSuffix(reason, "_refused"):
		return adviceField
	case strings.HasPrefix(reason, "proxy_"):
		return adviceProxyDown
	case strings.HasPrefix(reason, "consent_"):
		return adviceDenied
	}
	return adviceOwnReason(status)
}

// adviceForStatus is advice on an HTTP status that a platform answered.
func adviceForStatus(status stream.Status, code string) string {
	number, err := strconv.Atoi(code)
	switch {
	case err != nil:
		return adviceOwnReason(status)
	case number == 403, number == 404, number == 405, number == 410, number == 426:
		advice := "The platform answers that this may not be done, or is not there. " + advicePermission
		if status == stream.Failed {
			advice += sendAgain
		}
		return advice
	case number == 408, number == 425, number >= 500, number < 400:
		return adviceDown
	default:
		return adviceRefused
	}
}

// adviceOwnReason is advice on a reason that Weir knows nothing of but the status.
func adviceOwnReason(status stream.Status) string {
	if status == stream.Retrying {
		return "This is the platform's own reason. " + byItself + " If it goes on, look it up in the platform's documentation."
	}
	return "This is the platform's own reason, and its documentation says what it means. Correct that, and send the event again."
}
