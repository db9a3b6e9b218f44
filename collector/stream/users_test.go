package stream

import (
	"strings"
	"sync"
	"sync/atomic"
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

func TestUsersAreListedWhenSomebodyHasChangedThem(t *testing.T) {
	client, ctx := dial(t, redistest.URL(t)), t.Context()
	users := NewUsers(client)
	user := User{Name: "weir:default/shop:query", Password: "x", Access: ReadAccess, Namespace: "default", Property: "shop"}
	other := User{Name: "weir:default/shop:collector", Password: "y", Access: AppendAccess, Namespace: "default", Property: "shop"}
	wanted := []User{user}
	lists := func() string {
		t.Helper()
		text, err := client.redis.Info(ctx, "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		calls, _, _ := strings.Cut(infoField(text, "cmdstat_acl|list"), ",")
		return calls
	}
	look := func() (repaired int) {
		t.Helper()
		repaired, err := users.Check(ctx, func() []User { return wanted })
		if err != nil {
			t.Fatal(err)
		}
		return repaired
	}
	act := func(words ...any) {
		t.Helper()
		if err := client.redis.Do(ctx, words...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name   string
		act    func()
		mended int
		lists  bool
	}{
		{"one that is new", func() {}, 1, true},
		{"nothing", func() {}, 0, false},
		{"one whom somebody has given more", func() { act("acl", "setuser", user.Name, "+@all") }, 1, true},
		{"one whom somebody has removed", func() { act("acl", "deluser", user.Name) }, 1, true},
		{"another one that is asked for", func() { wanted = []User{user, other} }, 1, true},
		{"counts that somebody has reset", func() { act("config", "resetstat") }, 0, true},
		{"many looks at nothing", func() {
			for range mostLooks {
				look()
			}
		}, 0, true},
	} {
		before := lists()
		step.act()
		if got := look(); got != step.mended {
			t.Errorf("%s: %d users were put right, want %d", step.name, got, step.mended)
		}
		if listed := lists() != before; listed != step.lists {
			t.Errorf("%s: that the users were listed is %v, want %v", step.name, listed, step.lists)
		}
		for range 2 { // until it has seen what it has set
			look()
		}
	}
}

func TestUsersAreListedEachTimeWhereRedisSaysNothingOfChanges(t *testing.T) {
	for name, stats := range map[string]string{
		"the section is refused": "-ERR this section is not for you\r\n",
		"it is left out":         bulk(""),
	} {
		t.Run(name, func(t *testing.T) {
			var lists atomic.Int64
			address := listen(t, answers(func(command string) string {
				switch command {
				case "info server":
					return bulk("run_id:abc\r\n")
				case "info commandstats":
					return stats
				case "acl list":
					lists.Add(1)
					return "*1\r\n" + bulk("user shop on")
				default:
					return "+OK\r\n"
				}
			}))
			client, err := Dial("redis://"+address, DialOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			users := NewUsers(client)
			user := User{Name: "shop", Password: "x", Access: ReadAccess, Namespace: "default", Property: "shop"}
			for i := range 3 {
				before := lists.Load()
				if _, err := users.Check(t.Context(), func() []User { return []User{user} }); err != nil {
					t.Fatal(err)
				}
				if lists.Load() == before {
					t.Errorf("look %d has not listed the users", i+1)
				}
			}
		})
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
