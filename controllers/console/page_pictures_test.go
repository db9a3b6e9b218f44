package console

import (
	"flag"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

var update = flag.Bool("update", false, "take the pictures of the guide to the console anew")

const (
	picturesFolder = "../../docs/guides/console"
	pictureWidth   = 1280
)

// visits sends so many visits, of which some end with an order.
func (p *propertyPods) visits(currency string, visits, value int) {
	p.t.Helper()
	for i := range visits {
		events := []string{`"event": "pageview"`, `"event": "pageview"`}
		if i%4 == 0 {
			events = append(events, `"event": "add_to_cart"`)
		}
		if i%9 == 0 {
			events = append(events, fmt.Sprintf(`"event": "purchase", "data": {"value": %d.%d, "currency": %q}`, value+i*7%value, i%9*10, currency))
		}
		for step, event := range events {
			body := fmt.Sprintf(`{%s, "event_id": "%d-%d", "client_id": "visitor-%d"}`, event, i, step, i*7%(visits-visits/3))
			if currency == "JPY" {
				body = strings.ReplaceAll(body, fmt.Sprintf(".%d,", i%9*10), ",")
			}
			if got := p.send(firstKey, body); got != http.StatusAccepted {
				p.t.Fatalf("%s: got %d", body, got)
			}
		}
	}
}

// TestTheGuidesPictures holds that each picture can be taken and is small. With -update it takes them: `make screenshots`.
func TestTheGuidesPictures(t *testing.T) {
	t.Parallel()
	c := start(t)
	const user = "ada"
	for _, namespace := range []string{"garden", "kitchen"} {
		create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		grant(t, "User", user, namespace, editor...)
	}
	for _, one := range []struct {
		namespace, name, currency string
		visits, value             int
	}{{"garden", "outlet", "EUR", 40, 12}, {"garden", "shop", "EUR", 160, 45}, {"kitchen", "shop", "EUR", 90, 28}, {"kitchen", "shop-japan", "JPY", 60, 4200}} {
		p := newProperty(t, one.namespace, one.name, inCurrency(one.currency))
		c.startPods(t, p).visits(one.currency, one.visits, one.value)
		if one.name == "outlet" {
			ready(t, p, metav1.ConditionFalse, "RedisUnavailable", "Redis does not answer at redis.garden.svc:6379; it is tried again by itself.")
			continue
		}
		ready(t, p, metav1.ConditionTrue, "Ready", "Everything is up to date.")
	}
	shop := object(t, &v1alpha1.Property{}, "garden", "shop")
	report(t, shop, &shop.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionCredentialsReady, Status: metav1.ConditionTrue, Reason: "Ready", Message: "All are there."})
	for name, scope := range map[string]v1alpha1.AccessTokenScope{"monthly-report": "read", "support-desk": "write"} {
		ends := metav1.NewTime(time.Now().AddDate(0, 3, 0))
		token := &v1alpha1.AccessToken{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}, Spec: v1alpha1.AccessTokenSpec{
			PropertyRef: v1alpha1.PropertyReference{Name: "shop"}, SHA256: hashOf(t, name), Scope: scope, ExpirationTime: &ends, CreatedBy: user,
		}}
		create(t, token)
		accepted(t, token, &token.Status)
	}
	s := c.seat(t, user, "/")
	for name, picture := range map[string]struct {
		path   string
		height int64
		do     func()
	}{
		"properties": {"/?period=7d", 700, func() {}},
		"access": {below(shop) + "?view=access", 720, func() {
			s.fillIn(keysPanel, "checkout-server")
		}},
	} {
		s.Do(chromedp.EmulateViewport(pictureWidth, picture.height))
		s.show(picture.path)
		picture.do()
		s.Do(chromedp.Evaluate[chromedp.Void](`scrollTo(0, 0)`))
		s.Keep(filepath.Join(picturesFolder, name+".png"), pictureWidth, picture.height, *update)
	}
}
