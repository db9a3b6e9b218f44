package controllers_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// left says how many databases and users of a namespace's Properties a ClickHouse has.
func left(t testing.TB, admin, namespace string) string {
	t.Helper()
	count := func(table string) string {
		return clickhousetest.Exec(t, admin, "SELECT count() FROM system."+table+" WHERE startsWith(name, 'weir_"+namespace+"_')")
	}
	return count("databases") + " databases, " + count("users") + " users"
}

func TestAHistorysPasswordIsRotatedByDeletingItsSecret(t *testing.T) {
	t.Parallel()
	clickhouse := clickhousetest.Start(t)
	namespace, start := newNamespace(t), time.Now() // of a clock on which an hour is two minutes
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{
		RedisURL: redistest.URL(t), ClickHouseURL: clickhouse.URL(""), Now: func() time.Time { return start.Add(time.Since(start) * 30) },
	}})
	create(t, property(namespace, "shop", inClickHouse))
	remembered(t, namespace, "shop")
	old := historyURL(t, namespace, "shop", "archive")
	eventually(t, func() error { return asks(t, old, "SELECT count() FROM events") })
	if err := server.client.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop-history-archive"}}); err != nil {
		t.Fatal(err)
	}
	renewed := ""
	eventually(t, func() error {
		secret := &corev1.Secret{}
		if err := server.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "shop-history-archive"}, secret); err != nil {
			return err
		}
		if renewed = string(secret.Data["url"]); renewed == "" || renewed == old {
			return fmt.Errorf("there is no other password yet")
		}
		return asks(t, renewed, "SELECT count() FROM events")
	})
	if err := asks(t, old, "SELECT count() FROM events"); err != nil {
		t.Errorf("pods that have not got the new password yet: %v", err)
	}
	eventually(t, func() error {
		if err := asks(t, old, "SELECT count() FROM events"); err != nil {
			return nil
		}
		return fmt.Errorf("the old password is still taken (%w)", errStillThere)
	})
	if err := asks(t, renewed, "SELECT count() FROM events"); err != nil {
		t.Errorf("the new password: %v", err)
	}
}

func TestAHistoryThatIsSwitchedOffKeepsItsData(t *testing.T) {
	t.Parallel()
	clickhouse := clickhousetest.Start(t)
	for sentence, own := range map[string]bool{"in the operator's server": false, "in the Property's own": true} {
		t.Run(sentence, func(t *testing.T) {
			namespace := newNamespace(t)
			options := controllers.Options{RedisURL: redistest.URL(t), ClickHouseURL: clickhouse.URL("")}
			edit := inClickHouse
			if own {
				options.ClickHouseURL, edit = "", inOwnClickHouse("mine")
				secretOf(t, namespace, "mine", map[string]string{"url": clickhouse.URL("")})
			}
			startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: options})
			create(t, property(namespace, "shop", edit))
			remembered(t, namespace, "shop")
			eventually(t, func() error {
				return server.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "shop-archive"}, &appsv1.Deployment{})
			})
			if got := left(t, clickhouse.URL(""), namespace); got != "1 databases, 2 users" {
				t.Errorf("there are %s", got)
			}
			switchOff(t, namespace, "shop")
			for _, name := range []string{"shop-history-archive", "shop-history-query", "shop-redis-archive"} {
				secretGone(t, namespace, name)
			}
			eventually(t, func() error {
				p := get(t, &v1alpha1.Property{}, namespace, "shop")
				if found := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionHistoryReady); found != nil {
					return fmt.Errorf("the condition is still there: %v", found)
				}
				if strings.Contains(strings.Join(p.Finalizers, " "), controllers.HistoryFinalizer) {
					return fmt.Errorf("the finalizers are %v", p.Finalizers)
				}
				return nil
			})
			if got := left(t, clickhouse.URL(""), namespace); got != "1 databases, 0 users" {
				t.Errorf("there are %s", got)
			}
		})
	}
}

// gone says whether there is no such object.
func gone(namespace, name string, object client.Object) error {
	err := server.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return nil
	}
	return fmt.Errorf("%s is still there (%w)", name, errStillThere)
}

func TestAHistoryIsDeletedByThePolicy(t *testing.T) {
	t.Parallel()
	clickhouse := clickhousetest.Start(t)
	for sentence, test := range map[string]struct {
		policy v1alpha1.DeletionPolicy
		want   string
	}{
		"Retain keeps the data":   {v1alpha1.DeletionPolicyRetain, "1 databases, 0 users"},
		"Delete removes them too": {v1alpha1.DeletionPolicyDelete, "0 databases, 0 users"},
	} {
		t.Run(sentence, func(t *testing.T) {
			namespace := newNamespace(t)
			startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t), ClickHouseURL: clickhouse.URL("")}})
			create(t, property(namespace, "shop", inClickHouse, func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = test.policy }))
			remembered(t, namespace, "shop")
			deleted(t, namespace, "shop")
			if got := left(t, clickhouse.URL(""), namespace); got != test.want {
				t.Errorf("there are %s, want %s", got, test.want)
			}
		})
	}
}

// TestAHistoryThatIsSwitchedOffStaysForThePodsThatEnd: pods that are replaced answer for some seconds more.
func TestAHistoryThatIsSwitchedOffStaysForThePodsThatEnd(t *testing.T) {
	t.Parallel()
	clickhouse := clickhousetest.Start(t)
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t), ClickHouseURL: clickhouse.URL("")}})
	create(t, property(namespace, "shop", inClickHouse))
	remembered(t, namespace, "shop")
	var template corev1.PodTemplateSpec
	eventually(t, func() error {
		if template = get(t, &appsv1.Deployment{}, namespace, "shop-query").Spec.Template; template.Annotations["weir.dev/history"] == "" {
			return fmt.Errorf("query pods are not told of the history")
		}
		return nil
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop-query-1", Labels: template.Labels, Annotations: template.Annotations}, Spec: template.Spec}
	create(t, pod)
	switchOff(t, namespace, "shop")
	quiet(t, get(t, &v1alpha1.Property{}, namespace, "shop"))
	if got := left(t, clickhouse.URL(""), namespace); got != "1 databases, 2 users" {
		t.Errorf("while a pod of before runs there are %s", got)
	}
	if err := server.client.Delete(context.Background(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	secretGone(t, namespace, "shop-history-archive")
	if got := left(t, clickhouse.URL(""), namespace); got != "1 databases, 0 users" {
		t.Errorf("there are %s", got)
	}
}

// switchOff takes a Property's history out of the spec, and rolls its Deployments out.
func switchOff(t testing.TB, namespace, name string) {
	t.Helper()
	change(t, &v1alpha1.Property{}, namespace, name, func(p *v1alpha1.Property) { p.Spec.History = v1alpha1.History{Type: v1alpha1.HistoryMemory} })
	eventually(t, func() error { return gone(namespace, name+"-archive", &appsv1.Deployment{}) })
	rollOut(t, namespace, name)
}

// TestThePodOfAnImportThatIsDoneHoldsNothing has one beside the archive's, as the guide to imports makes it: it stays until its Job is removed.
func TestThePodOfAnImportThatIsDoneHoldsNothing(t *testing.T) {
	t.Parallel()
	clickhouse := clickhousetest.Start(t)
	for sentence, test := range map[string]struct {
		phase corev1.PodPhase
		end   func(t *testing.T, namespace string)
	}{
		"a history that is switched off": {corev1.PodSucceeded, func(t *testing.T, namespace string) {
			switchOff(t, namespace, "shop")
			secretGone(t, namespace, "shop-history-archive")
		}},
		"a Property that is deleted": {corev1.PodFailed, func(t *testing.T, namespace string) { deleted(t, namespace, "shop") }},
	} {
		t.Run(sentence, func(t *testing.T) {
			namespace := newNamespace(t)
			startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t), ClickHouseURL: clickhouse.URL("")}})
			create(t, property(namespace, "shop", inClickHouse))
			remembered(t, namespace, "shop")
			archive := &appsv1.Deployment{}
			eventually(t, func() error {
				return server.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "shop-archive"}, archive)
			})
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop-import", Labels: archive.Spec.Template.Labels, Annotations: archive.Spec.Template.Annotations}, Spec: archive.Spec.Template.Spec}
			create(t, pod)
			created := client.MergeFrom(pod.DeepCopy()) // which the operator annotates meanwhile
			pod.Status.Phase = test.phase
			if err := server.client.Status().Patch(context.Background(), pod, created); err != nil {
				t.Fatal(err)
			}
			test.end(t, namespace)
			if got := left(t, clickhouse.URL(""), namespace); got != "1 databases, 0 users" {
				t.Errorf("there are %s", got)
			}
		})
	}
}

func TestAClickHouseThatIsAwayHoldsNoDeletion(t *testing.T) {
	t.Parallel()
	clickhouse := clickhousetest.Start(t)
	namespace, start := newNamespace(t), time.Now()
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{
		RedisURL: redistest.URL(t), ClickHouseURL: clickhouse.URL(""), Now: func() time.Time { return start.Add(time.Since(start) * 30) },
	}})
	create(t, property(namespace, "shop", inClickHouse, func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete }))
	remembered(t, namespace, "shop")
	clickhouse.Kill()
	deleted(t, namespace, "shop")
	var events eventsv1.EventList
	eventually(t, func() error {
		if err := server.client.List(context.Background(), &events, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == "HistoryLeftBehind" && strings.Contains(event.Note, "DROP DATABASE IF EXISTS `weir_"+namespace+"_shop`") {
				return nil
			}
		}
		return fmt.Errorf("nothing says what is left behind")
	})
	clickhouse.Restart()
	eventually(t, func() error {
		if got := left(t, clickhouse.URL(""), namespace); got != "0 databases, 0 users" {
			return fmt.Errorf("when it is back there are %s", got)
		}
		return nil
	})
}

// TestWhatIsWrongWithAHistoryIsSaid has Properties with servers of their own that are not what they should be.
func TestWhatIsWrongWithAHistoryIsSaid(t *testing.T) {
	t.Parallel()
	const secret = "pa55-of-somebody"
	clickhouse := clickhousetest.Start(t)
	namespace, logged := newNamespace(t), &lockedBuffer{}
	startOperator(t, operatorOptions{
		namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)},
		log: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	clickhousetest.Exec(t, clickhouse.URL(""), "CREATE USER few IDENTIFIED BY '"+secret+"'")
	as := func(user, password string) string {
		parsed, err := url.Parse(clickhouse.URL(""))
		if err != nil {
			t.Fatal(err)
		}
		parsed.User = url.UserPassword(user, password)
		return parsed.String()
	}
	behind := func(fault clickhousetest.Fault) string {
		proxy := clickhousetest.StartProxy(t, clickhouse.URL(""))
		proxy.Add(fault)
		return proxy.URL()
	}
	creates := func(sql string) bool { return strings.HasPrefix(sql, "CREATE ") }
	at := "@" + strings.SplitN(clickhouse.URL(""), "@", 2)[1]
	names := 0
	for sentence, test := range map[string]struct{ address, reason, says string }{
		"nobody is there":                      {"http://u:" + secret + "@127.0.0.1:1", v1alpha1.ReasonHistoryUnreachable, "refuses connections"},
		"something else is there":              {behind(clickhousetest.Fault{Nonsense: secret}), v1alpha1.ReasonHistoryUnreachable, "HTTP interface"},
		"the user may not administer":          {as("few", secret), v1alpha1.ReasonHistoryAccessDenied, "GRANT CREATE USER"},
		"the password is wrong":                {as("few", "wrong-"+secret), v1alpha1.ReasonHistoryAccessDenied, "correct user and password"},
		"the disk is full":                     {behind(clickhousetest.Fault{Code: 243, Message: secret, Matching: creates}), v1alpha1.ReasonHistoryDiskFull, "larger disk"},
		"it is too old":                        {calledVersion(t, clickhouse.URL(""), "24.3.18.7"), v1alpha1.ReasonHistoryVersionTooOld, "24.8 or newer; upgrade it"},
		"its Keeper is away":                   {behind(clickhousetest.Fault{Code: 999, Message: secret, Matching: creates}), v1alpha1.ReasonHistoryUnreachable, "Keeper"},
		"it refuses a statement":               {behind(clickhousetest.Fault{Code: 48, Message: secret, Matching: creates}), v1alpha1.ReasonHistoryRefused, "error 48"},
		"the cloud's metadata":                 {"http://u:" + secret + "@169.254.169.254:80", v1alpha1.ReasonHistoryAddressDenied, "--clickhouse-allow-cidr"},
		"a private address":                    {"http://u:" + secret + "@10.1.2.3", v1alpha1.ReasonHistoryAddressDenied, "--clickhouse-allow-cidr"},
		"a parameter":                          {"http://u:" + secret + at + "?readonly=0", v1alpha1.ReasonSecretInvalid, "question mark"},
		"a certificate that nobody looks at":   {"https://u:" + secret + "@127.0.0.1:1?skip_verify=true", v1alpha1.ReasonSecretInvalid, "caSecretRef"},
		"nobody's name":                        {"http://127.0.0.1:1", v1alpha1.ReasonSecretInvalid, "must name a user"},
		"a native port's scheme":               {"clickhouse://u:" + secret + "@127.0.0.1:9000", v1alpha1.ReasonSecretInvalid, "https://user:password@host:8443"},
		"a path out of the database":           {"http://u:" + secret + "@127.0.0.1:1/a/b", v1alpha1.ReasonSecretInvalid, "name of a database"},
		"a file of the machine":                {"file:///etc/passwd", v1alpha1.ReasonSecretInvalid, "https://user:password@host:8443"},
		"no Secret":                            {"", v1alpha1.ReasonSecretMissing, "spec.history.clickHouse.urlSecretKeyRef: there is no Secret"},
		"a server that none but its owner has": {"operator", v1alpha1.ReasonHistoryServerMissing, "--clickhouse-url-file"},
	} {
		names++
		name := fmt.Sprintf("shop-%d", names)
		if test.address != "" {
			secretOf(t, namespace, name, map[string]string{"url": test.address})
		}
		edit := inOwnClickHouse(name)
		if test.address == "operator" {
			edit = inClickHouse
		}
		create(t, property(namespace, name, edit))
		t.Run(sentence, func(t *testing.T) {
			p := waitFor(t, namespace, name, v1alpha1.ConditionHistoryReady, metav1.ConditionFalse, test.reason)
			if got := message(p, v1alpha1.ConditionHistoryReady); !strings.Contains(got, test.says) || strings.Contains(got, secret) {
				t.Errorf("it says %q, want %q", got, test.says)
			}
			waitFor(t, namespace, name, v1alpha1.ConditionRedisReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
			if text := get(t, &corev1.ConfigMap{}, namespace, name+"-config").Data["property.json"]; strings.Contains(text, `"history"`) {
				t.Errorf("the pods are told of a history that is not there: %s", text)
			}
		})
	}
	if strings.Contains(logged.String(), secret) {
		t.Error("the log has a password")
	}
}
