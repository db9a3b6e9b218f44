package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// TestTheServerTakesNothingThatTheOperatorCannotRead holds the definitions to what Go can decode. One object that it cannot would
// end the watching of all others, and so the work for every tenant: JSON Schema's date-time and Kubernetes' pattern of quantities
// take more than that.
func TestTheServerTakesNothingThatTheOperatorCannotRead(t *testing.T) {
	t.Parallel()
	namespace, hash := newNamespace(t), strings.Repeat("0a", 32)
	specs := map[string]string{}
	for _, date := range []string{
		"2027-01-01t00:00:00Z", "2027-01-01T00:00:00z", "2027-01-01T00:00:00ZtX", "2027-01-01T00:00:00x5Z", "2027-01-01T00:00:00+99:99", "2027-01-01T24:00:00Z",
		"2027-02-30T00:00:00Z", "2027-01-01T00:00:60Z", "2027-01-01T00:00:00,5Z", "2027-01-01T00:00:00+24:00", "9999-12-31T23:59:59-12:00", "0000-01-01T00:00:00+12:00",
		"2027-01-01T00:00:00.123456789123456789Z", "2027-01-01T00:00:00-23:59", "2027-01-01", "x",
	} {
		specs["AccessToken "+date] = fmt.Sprintf("{propertyRef: {name: shop}, sha256: %s, expirationTime: %q}", hash, date)
		specs["APIKey "+date] = fmt.Sprintf("{propertyRef: {name: shop}, sha256: %s, expirationTime: %q}", hash, date)
		specs["Property "+date] = fmt.Sprintf("{currency: EUR, accessTokens: [{name: a, expirationTime: %q}]}", date)
	}
	for _, quantity := range []string{"'1e1.5'", "'1E.5'", "'1e99999999999'", "5", "'.5'", "'1.'", "-1", "'+1Ki'", "''", "1.5", "'" + strings.Repeat("9", 100) + "'", "99999999999999999999"} {
		specs["Property limits "+quantity] = fmt.Sprintf("{currency: EUR, query: {resources: {limits: {cpu: %s}}}}", quantity)
		specs["Property requests "+quantity] = fmt.Sprintf("{currency: EUR, collector: {resources: {requests: {cpu: %s}}}}", quantity)
	}
	accepted := 0
	for what, spec := range specs {
		kind, _, _ := strings.Cut(what, " ")
		object := &unstructured.Unstructured{Object: map[string]any{}}
		if err := yaml.Unmarshal([]byte(fmt.Sprintf("{apiVersion: weir.dev/v1alpha1, kind: %s, metadata: {namespace: %s, name: read}, spec: %s}", kind, namespace, spec)), &object.Object); err != nil {
			t.Fatal(err)
		}
		err := server.client.Create(context.Background(), object)
		if apierrors.IsInvalid(err) {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		accepted++
		typed := map[string]client.Object{"Property": &v1alpha1.Property{}, "AccessToken": &v1alpha1.AccessToken{}, "APIKey": &v1alpha1.APIKey{}}[kind]
		read := server.client.Get(context.Background(), client.ObjectKeyFromObject(object), typed)
		if err := errors.Join(read, server.client.Delete(context.Background(), object)); err != nil {
			t.Errorf("%s is taken, and cannot be read: %v", what, err)
		}
	}
	if accepted < 15 {
		t.Errorf("%d are taken: the search has gone blind", accepted)
	}
}
