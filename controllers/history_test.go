package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// inClickHouse asks for a history in the operator's ClickHouse.
func inClickHouse(p *v1alpha1.Property) { p.Spec.History.Type = v1alpha1.HistoryClickHouse }

// inOwnClickHouse asks for one in the Property's own.
func inOwnClickHouse(secret string) func(*v1alpha1.Property) {
	return func(p *v1alpha1.Property) {
		p.Spec.History = v1alpha1.History{Type: v1alpha1.HistoryClickHouse, ClickHouse: &v1alpha1.ClickHouse{
			URLSecretKeyRef: &v1alpha1.SecretKeyReference{Name: secret, Key: "url"},
		}}
	}
}

// remembered waits until a Property's history is ready.
func remembered(t testing.TB, namespace, name string) *v1alpha1.Property {
	t.Helper()
	return waitFor(t, namespace, name, v1alpha1.ConditionHistoryReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

// historyURL is what a role's Secret has.
func historyURL(t testing.TB, namespace, name, role string) string {
	t.Helper()
	return string(get(t, &corev1.Secret{}, namespace, name+"-history-"+role).Data["url"])
}

// asks runs a statement with a URL.
func asks(t testing.TB, address, sql string) error {
	t.Helper()
	asking, err := clickhouse.Dial(address, clickhouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer asking.Close()
	return asking.Exec(context.Background(), clickhouse.Query{SQL: sql})
}

// secretGone waits until there is no such Secret.
func secretGone(t testing.TB, namespace, name string) {
	t.Helper()
	eventually(t, func() error {
		err := server.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Secret{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("Secret %s is still there (%w)", name, errors.Join(err, errStillThere))
	})
}

func TestAHistoryIsMade(t *testing.T) {
	t.Parallel()
	clickhouse := clickhousetest.Start(t)
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t), ClickHouseURL: clickhouse.URL("")}})
	create(t, property(namespace, "plain"))
	create(t, property(namespace, "shop", inClickHouse, func(p *v1alpha1.Property) {
		p.Spec.History.ClickHouse = &v1alpha1.ClickHouse{RetentionDays: 400}
		p.Spec.Archive.NodeSelector = map[string]string{"disk": "fast"}
	}))
	remembered(t, namespace, "shop")
	settled(t, namespace, "plain")
	if found := get(t, &v1alpha1.Property{}, namespace, "plain").Status.Conditions; meta.FindStatusCondition(found, v1alpha1.ConditionHistoryReady) != nil {
		t.Error("a Property without a history has a condition for it")
	}
	database := "weir_" + namespace + "_shop"
	for sentence, test := range map[string]struct{ sql, want string }{
		"the database has its tables":            {"SELECT arrayStringConcat(arraySort(groupArray(name)), ' ') FROM system.tables WHERE database = '" + database + "'", "erased events gaps records"},
		"each role that reaches it has its user": {"SELECT count() FROM system.users WHERE startsWith(name, '" + database + "_')", "2"},
		"a plain Property has no database":       {"SELECT count() FROM system.databases WHERE name = 'weir_" + namespace + "_plain'", "0"},
		"who asks has a quota":                   {"SELECT count() FROM system.quotas WHERE name = '" + database + "'", "1"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := clickhousetest.Exec(t, clickhouse.URL(""), test.sql); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	for role, allowed := range map[string]bool{"archive": true, "query": false} {
		address := historyURL(t, namespace, "shop", role)
		if err := config.CheckHistoryURL(address); err != nil {
			t.Errorf("the pods of %s would refuse their URL: %v", role, err)
		}
		if err := asks(t, address, "INSERT INTO gaps VALUES (1, 2)"); (err == nil) != allowed {
			t.Errorf("an INSERT of the %s role: %v", role, err)
		}
	}
	t.Run("the archive has a pod, and is told where it is", func(t *testing.T) {
		var deployment *appsv1.Deployment
		eventually(t, func() error {
			deployment = &appsv1.Deployment{}
			return server.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "shop-archive"}, deployment)
		})
		if *deployment.Spec.Replicas != 1 || deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
			t.Errorf("it has %d replicas and the strategy %s", *deployment.Spec.Replicas, deployment.Spec.Strategy.Type)
		}
		if got := deployment.Spec.Template.Spec.NodeSelector; got["disk"] != "fast" {
			t.Errorf("it may run on %v", got)
		}
		eventually(t, func() error {
			if text := get(t, &corev1.ConfigMap{}, namespace, "shop-config").Data["property.json"]; !strings.Contains(text, `"retentionDays": 400`) {
				return fmt.Errorf("the pods are told %s", text)
			}
			return nil
		})
	})
	t.Run("pods that reach it may", func(t *testing.T) {
		parsed, err := url.Parse(clickhouse.URL(""))
		if err != nil {
			t.Fatal(err)
		}
		for role, want := range map[string]bool{"archive": true, "query": true, "collector": false, "deliverer": true} { // which replays from there
			eventually(t, func() error {
				found := false
				for _, rule := range get(t, &networkingv1.NetworkPolicy{}, namespace, "shop-"+role).Spec.Egress {
					for _, port := range rule.Ports {
						found = found || port.Port.String() == parsed.Port()
					}
				}
				if found != want {
					return fmt.Errorf("%s may reach it: %v", role, found)
				}
				return nil
			})
		}
	})
}

func TestPropertiesWhoseNamesRunTogetherShareNoHistory(t *testing.T) {
	t.Parallel()
	server := clickhousetest.Start(t)
	one := newNamespace(t)
	two := one + "-a"
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: two}})
	startOperator(t, operatorOptions{namespaces: []string{one, two}, Options: controllers.Options{RedisURL: redistest.URL(t), ClickHouseURL: server.URL("")}})
	places := [][2]string{{one, "a-b"}, {two, "b"}, {one, "a"}, {one, "b"}}
	for _, place := range places {
		create(t, property(place[0], place[1], inClickHouse))
	}
	databases := map[string]bool{}
	for _, place := range places {
		remembered(t, place[0], place[1])
		eventually(t, func() error {
			return asks(t, historyURL(t, place[0], place[1], "archive"), "INSERT INTO gaps VALUES (1, 2)")
		})
		parsed, err := url.Parse(historyURL(t, place[0], place[1], "query"))
		if err != nil {
			t.Fatal(err)
		}
		databases[parsed.Path] = true
	}
	if len(databases) != len(places) {
		t.Errorf("%d Properties have the databases %v", len(places), maps.Keys(databases))
	}
	for database := range databases {
		rows := clickhousetest.Exec(t, server.URL(""), "SELECT count() FROM `"+strings.Trim(database, "/")+"`.gaps")
		if rows != "1" {
			t.Errorf("%s has %s rows, want its own", database, rows)
		}
	}
}

func TestWhatAHistoryLacksIsPutBack(t *testing.T) {
	t.Parallel()
	server := clickhousetest.Start(t)
	namespace := newNamespace(t)
	start := time.Now() // of a clock on which two looks are a second apart
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{
		RedisURL: redistest.URL(t), ClickHouseURL: server.URL(""), Now: func() time.Time { return start.Add(time.Since(start) * 30) },
	}})
	create(t, property(namespace, "shop", inClickHouse))
	remembered(t, namespace, "shop")
	database := "weir_" + namespace + "_shop"
	for sentence, statement := range map[string]string{
		"a user who was dropped":      "DROP USER `" + database + "_archive`",
		"a right that was taken":      "REVOKE INSERT ON `" + database + "`.* FROM `" + database + "_archive`",
		"a table that was dropped":    "DROP TABLE `" + database + "`.gaps",
		"a database that was dropped": "DROP DATABASE `" + database + "` SYNC",
		"a password that was changed": "ALTER USER `" + database + "_archive` IDENTIFIED BY 'x'",
		"a column that was dropped":   "ALTER TABLE `" + database + "`.gaps DROP COLUMN `end`",
	} {
		t.Run(sentence, func(t *testing.T) {
			clickhousetest.Exec(t, server.URL(""), statement)
			eventually(t, func() error {
				return asks(t, historyURL(t, namespace, "shop", "archive"), "INSERT INTO gaps VALUES (1, 2)")
			})
		})
	}
}
