package forget_test

import (
	"regexp"
	"testing"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/clickhouseserver"
	"github.com/weir-dev/weir/collector/history/schema"
)

// alone is a cluster of the test server with one shard, which is the server itself.
const alone = "<remote_servers><alone><shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard></alone></remote_servers>"

// replicated is what the test server's tables cannot be.
var replicated = regexp.MustCompile(`ReplicatedMergeTree\([^)]*\)|SETTINGS replicated_.*`)

// makeTables makes the tables where they are missing.
func (h *history) makeTables() {
	h.t.Helper()
	for _, statement := range schema.Creates(h.client.Database(), h.cluster) {
		statement = replicated.ReplaceAllStringFunc(statement, func(text string) string {
			if text[0] == 'S' {
				return ""
			}
			return "MergeTree"
		})
		if err := h.client.Exec(h.t.Context(), clickhouse.Query{SQL: statement}); err != nil {
			h.t.Fatal(err)
		}
	}
}

// TestInAClusterRowsGoByTheSameRules has the statements for a cluster run: what changes rows, and what looks at parts and mutations.
func TestInAClusterRowsGoByTheSameRules(t *testing.T) {
	server := clickhousetest.StartWith(t, clickhouseserver.Options{Config: alone})
	newHistory := func(t testing.TB) *history {
		t.Helper()
		settings := schema.Cluster("alone").Settings()
		settings["prefer_localhost_replica"] = true // the server has no port at which it could ask itself
		return newHistoryIn(t, server.Database(t), "alone", settings)
	}
	for name, test := range map[string]func(*testing.T, func(testing.TB) *history){
		"whose rows go": whoseRowsGo, "what comes back": whatComesBackGoesAgain, "what is old": whatIsOlderThanItIsKeptGoes,
		"what is nobody's": whatIsTooOldToBeAnybodysIsNobodys,
	} {
		t.Run(name, func(t *testing.T) { test(t, newHistory) })
	}
}
