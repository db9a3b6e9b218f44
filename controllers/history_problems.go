package controllers

import (
	"errors"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/controllers/resources"
)

// historyProblems are the conditions for what may be wrong with a ClickHouse, each with what to do about it.
var historyProblems = []struct {
	problem        error
	reason, advice string
}{
	{errHistoryAddress, v1alpha1.ReasonHistoryAddressDenied,
		"private addresses are connected to where the operator allows them: ask for the range with --clickhouse-allow-cidr"},
	{errHistoryTables, v1alpha1.ReasonHistoryTablesDiffer,
		"a column has another type than Weir's; drop the table, and what Redis still has is copied anew, or restore it (see docs/operate/history.md)"},
	{errTooManyHistories, v1alpha1.ReasonHistoryLimitReached, "use one for several Properties, or several namespaces"},
	{clickhouse.Unreachable, v1alpha1.ReasonHistoryUnreachable, "check host and port, whether it has to be https://, and whether the server runs: events wait in Redis"},
	{clickhouse.Nonsense, v1alpha1.ReasonHistoryUnreachable, "check host and port: it has to be the HTTP interface, 8123, or 8443 with https://"},
	{clickhouse.Timeout, v1alpha1.ReasonHistoryUnreachable, "look at what the server is busy with: events wait in Redis"},
	{clickhouse.ReadOnly, v1alpha1.ReasonHistoryUnreachable, "look at its Keeper and its other replicas: events wait in Redis"},
	{clickhouse.Denied, v1alpha1.ReasonHistoryAccessDenied, "correct user and password in the URL, or in ClickHouse"},
	{clickhouse.TooOld, v1alpha1.ReasonHistoryVersionTooOld, "upgrade it"},
	{clickhouse.DiskFull, v1alpha1.ReasonHistoryDiskFull, "give it a larger disk, or remove what is not needed: events wait in Redis, up to retention.maxEvents"},
	{clickhouse.TooManyParts, v1alpha1.ReasonHistoryTooManyParts, "it passes when parts have been merged; where it does not, give the server more processors or a faster disk"},
	{clickhouse.ErrURL, v1alpha1.ReasonSecretInvalid, ""},
}

// historyProblemOf is the condition for what is wrong with a ClickHouse, nil where nothing is. It repeats nothing that the server has
// answered.
func historyProblemOf(target historyTarget, err error) *conditionReason {
	if err == nil {
		return nil
	}
	field := "the operator's ClickHouse: "
	if !target.own {
		field = resources.HistoryURLField + ": "
	}
	if denied, ok := errors.AsType[*access.DeniedError](err); ok {
		return reasonf(v1alpha1.ReasonHistoryAccessDenied, "%s%v", field, denied)
	}
	if blamed := resources.HistoryCertificateField(err); blamed != "" {
		if target.own {
			blamed = "the operator's ClickHouse"
		}
		return reasonf(v1alpha1.ReasonSecretInvalid, "%s: %v", blamed, err)
	}
	for _, known := range historyProblems {
		if !errors.Is(err, known.problem) {
			continue
		}
		message := err.Error()
		if known.advice != "" {
			message += "; " + known.advice
		}
		return reasonf(known.reason, "%s%s", field, message)
	}
	if _, ok := errors.AsType[*clickhouse.Problem](err); !ok {
		err = errors.New("something failed, and is tried again") // nobody knows what its words hold
	}
	return reasonf(v1alpha1.ReasonHistoryRefused, "%s%v; look at ClickHouse's own log, and at docs/operate/history.md", field, err)
}

// archiveReasons are why the archive does not copy; anything else is nothing that it says.
var archiveReasons = map[string]string{
	v1alpha1.ReasonHistoryUnreachable:   "the archive does not reach ClickHouse; look whether its pod may connect to it, and at its log",
	v1alpha1.ReasonHistoryAccessDenied:  "ClickHouse denies the archive's user something; it is put right within a minute, or its user may come from other addresses only",
	v1alpha1.ReasonHistoryVersionTooOld: "ClickHouse is too old; upgrade it to 24.8 or newer",
	v1alpha1.ReasonHistoryDiskFull:      "ClickHouse's disk is full; give it a larger one, or remove what is not needed",
	v1alpha1.ReasonHistoryTooManyParts:  "ClickHouse merges more slowly than blocks come; give it more processors or a faster disk",
}
