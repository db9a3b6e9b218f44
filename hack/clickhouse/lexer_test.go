package main

import "testing"

func TestOnClusterIsThisServer(t *testing.T) {
	for name, test := range map[string]struct{ sql, want string }{
		"a table that is made":       {"CREATE TABLE t ON CLUSTER `c` (x Int8) ENGINE = Log", "CREATE TABLE t  (x Int8) ENGINE = Log"},
		"a table that is changed":    {"ALTER TABLE d.t ON CLUSTER c DELETE WHERE x = 1", "ALTER TABLE d.t  DELETE WHERE x = 1"},
		"not in a text":              {"ALTER TABLE t DELETE WHERE x = 'ON CLUSTER c'", "ALTER TABLE t DELETE WHERE x = 'ON CLUSTER c'"},
		"a question is as it stands": {"SELECT 1 AS on, 2 AS cluster", "SELECT 1 AS on, 2 AS cluster"},
		"neither is nothing":         {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hereOnly(test.sql); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
