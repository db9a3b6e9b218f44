package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const apiHost = "api.e2e.test"

// tenant is a Property and how it is reached.
type tenant struct {
	*suite
	namespace, name string
	// collect and read are where requests go: the ingress, or a forwarded port. The hosts go with them.
	collect, collectHost string
	read, readHost       string
}

// property returns a Property of the suite's, as yet without platforms and exposure.
func (s *suite) property(name string) *v1alpha1.Property {
	return &v1alpha1.Property{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespaceOf(name), Name: name},
		Spec:       v1alpha1.PropertySpec{Currency: "EUR", Platforms: []v1alpha1.Platform{{Name: "console", Type: "Log"}}},
	}
}

// expose leads hosts to a Property, where there is an ingress.
func (s *suite) expose(property *v1alpha1.Property) *v1alpha1.Property {
	if s.node {
		property.Spec.Exposure = v1alpha1.Exposure{
			Type: "Ingress", CollectHost: collectHost(property.Name), APIHost: apiHost,
			Ingress: &v1alpha1.IngressExposure{ClassName: "weir-node"},
		}
	}
	return property
}

func collectHost(name string) string { return "collect." + name + ".e2e.test" }

// tenantOf finds the way to a Property that is there.
func (s *suite) tenantOf(t *testing.T, name string) *tenant {
	t.Helper()
	it := &tenant{suite: s, namespace: s.namespaceOf(name), name: name}
	if s.node {
		it.collect, it.collectHost = settings.ingress, collectHost(name)
		it.read, it.readHost = settings.ingress, apiHost
		return it
	}
	it.collect = forward(t, it.namespace, name+"-collector")
	it.read = forward(t, it.namespace, name+"-query")
	return it
}

func (it *tenant) get(t *testing.T) *v1alpha1.Property {
	t.Helper()
	var property v1alpha1.Property
	if err := it.Get(t.Context(), client.ObjectKey{Namespace: it.namespace, Name: it.name}, &property); err != nil {
		t.Fatal(err)
	}
	return &property
}

// change edits the Property's spec.
func (it *tenant) change(t *testing.T, edit func(*v1alpha1.PropertySpec)) {
	t.Helper()
	property := it.get(t)
	before := property.DeepCopy()
	edit(&property.Spec)
	if err := it.Patch(t.Context(), property, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// settled waits until a condition of the Property's present generation has a status, and a reason unless that is "". It returns how long it took.
func (s *suite) settled(t *testing.T, namespace, name, condition string, status metav1.ConditionStatus, reason string) time.Duration {
	t.Helper()
	return within(t, 3*time.Minute, fmt.Sprintf("%s of Property %s is %s %s", condition, name, status, reason), func() error {
		var property v1alpha1.Property
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &property); err != nil {
			return err
		}
		found := meta.FindStatusCondition(property.Status.Conditions, condition)
		if found == nil {
			return errors.New("there is no such condition yet")
		}
		if found.ObservedGeneration != property.Generation || found.Status != status || reason != "" && found.Reason != reason {
			return fmt.Errorf("generation %d of %d is %s %s: %s", found.ObservedGeneration, property.Generation, found.Status, found.Reason, found.Message)
		}
		return nil
	})
}

func (it *tenant) ready(t *testing.T) time.Duration {
	t.Helper()
	return it.settled(t, it.namespace, it.name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// key returns an API key that the operator has made.
func (it *tenant) key(t *testing.T, name string) string {
	t.Helper()
	return it.credential(t, "api-key."+name)
}

func (it *tenant) token(t *testing.T) string {
	t.Helper()
	return it.credential(t, "access-token.default")
}

func (it *tenant) credential(t *testing.T, entry string) string {
	t.Helper()
	value := string(it.secret(t, it.namespace, it.name+"-credentials")[entry])
	if value == "" {
		t.Fatalf("the Secret %s-credentials has no %s", it.name, entry)
	}
	return value
}

// send sends one event from outside and returns the answer's status and body.
func (it *tenant) send(t *testing.T, key, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, it.collect+"/collect/"+key, strings.NewReader(body))
	if err != nil {
		t.Fatal("the collector's URL cannot be used")
	}
	request.Host = it.collectHost
	request.Header.Set("Content-Type", "application/json")
	status, answer, err := do(request)
	if err != nil {
		t.Fatal(err)
	}
	return status, answer
}

// request asks the read API with a token, and returns the answer's status and body.
func (it *tenant) request(t *testing.T, token, path string) (int, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, it.read+"/api/v1/properties/"+it.name+"/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = it.readHost
	request.Header.Set("Authorization", "Bearer "+token)
	return do(request)
}

// ask asks the read API with the Property's own token and reads the answer.
func (it *tenant) ask(t *testing.T, path string, into any) error {
	t.Helper()
	status, body, err := it.request(t, it.token(t), path)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s answers %d %.300s", path, status, body)
	}
	return json.Unmarshal([]byte(body), into)
}

var httpClient = &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 5 * time.Second}}

// do makes a request. Its errors have no URL in them, which may hold a key.
func do(request *http.Request) (int, string, error) {
	response, err := httpClient.Do(request)
	if err != nil {
		if bare := new(url.Error); errors.As(err, &bare) {
			err = bare.Err
		}
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// delivery is an event's, as the listing has it.
type delivery struct {
	Platform string `json:"platform"`
	Status   string `json:"status"`
	Reason   string `json:"reason"`
}

// record is an event of the listing.
type record struct {
	EventID  string      `json:"event_id"`
	Event    string      `json:"event"`
	Value    json.Number `json:"value"`
	Currency string      `json:"currency"`
	Delivery []delivery  `json:"delivery"`
}

// delivered says where the event has not been delivered to as many platforms.
func (r *record) delivered(platforms int) error {
	if len(r.Delivery) != platforms {
		return fmt.Errorf("event %s has %d deliveries, want %d", r.EventID, len(r.Delivery), platforms)
	}
	for _, delivery := range r.Delivery {
		if delivery.Status != "delivered" {
			return fmt.Errorf("event %s is %s to %s", r.EventID, delivery.Status, delivery.Platform)
		}
	}
	return nil
}

// list turns the listing's pages, of one event name unless that is "".
func (it *tenant) list(t *testing.T, event string) ([]record, error) {
	t.Helper()
	query := url.Values{"limit": {"1000"}}
	if event != "" {
		query.Set("event", event)
	}
	var records []record
	for {
		var page struct {
			Data       []record `json:"data"`
			NextCursor string   `json:"next_cursor"`
		}
		if err := it.ask(t, "events?"+query.Encode(), &page); err != nil {
			return nil, err
		}
		records = append(records, page.Data...)
		if page.NextCursor == "" {
			return records, nil
		}
		query.Set("cursor", page.NextCursor)
	}
}
