package stream

import (
	"sync"
	"testing"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

func TestAUserWhoIsBeingRemovedIsNotPutBack(t *testing.T) {
	client, ctx := dial(t, redistest.URL(t)), t.Context()
	users := NewUsers(client)
	user := User{Name: "weir:default/shop:query", Password: "x", Access: ReadAccess, Namespace: "default", Property: "shop"}
	if err := users.Set(ctx, []User{user}); err != nil {
		t.Fatal(err)
	}
	if err := client.redis.Do(ctx, "acl", "deluser", user.Name).Err(); err != nil {
		t.Fatal(err)
	}
	var removing sync.WaitGroup
	repaired, err := users.Check(ctx, func() []User {
		removing.Go(func() {
			if err := users.Remove(ctx, user.Name); err != nil {
				t.Error(err)
			}
		})
		return []User{user}
	})
	if err != nil || repaired != 1 {
		t.Errorf("Check repaired %d users, error %v", repaired, err)
	}
	removing.Wait()
	left, err := client.redis.Do(ctx, "acl", "users").StringSlice()
	if err != nil || len(left) != 1 {
		t.Errorf("the users %v are left, error %v", left, err)
	}
}

func TestPasswordsOverlapUntilTheyNeedNot(t *testing.T) {
	client, ctx := dial(t, redistest.URL(t)), t.Context()
	users := NewUsers(client)
	user := User{Name: "weir:default/shop:query", Access: ReadAccess, Namespace: "default", Property: "shop"}
	for _, step := range []struct {
		name, password string
		keep           bool
		holding        []string
	}{
		{"the first", "one", true, []string{"one"}},
		{"a second beside it", "two", true, []string{"one", "two"}},
		{"the second again", "two", true, []string{"one", "two"}},
		{"the second alone", "two", false, []string{"two"}},
		{"a third beside it", "three", true, []string{"two", "three"}},
		{"the third alone", "three", false, []string{"three"}},
	} {
		t.Run(step.name, func(t *testing.T) {
			user.Password, user.KeepPasswords = step.password, step.keep
			if err := users.Set(ctx, []User{user}); err != nil {
				t.Fatal(err)
			}
			if _, err := users.Check(ctx, func() []User { return []User{user} }); err != nil {
				t.Fatal(err)
			}
			holds := map[string]bool{}
			for _, password := range step.holding {
				holds[password] = true
			}
			for _, password := range []string{"one", "two", "three"} {
				err := client.redis.Do(ctx, "auth", user.Name, password).Err()
				if reset := client.redis.Do(ctx, "auth", "default", "").Err(); reset != nil && err == nil {
					t.Fatal(reset)
				}
				if (err == nil) != holds[password] {
					t.Errorf("password %s: %v", password, err)
				}
			}
		})
	}
}
