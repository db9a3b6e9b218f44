package controllers_test

import (
	"net/url"
	"testing"
)

// withUser returns a Redis URL with another user.
func withUser(t testing.TB, address, name, password string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.UserPassword(name, password)
	return parsed.String()
}
