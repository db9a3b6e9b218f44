package controllers_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/controllers/resources"
)

func TestAnAnnotationReachesThePodsAsTheirLogLevel(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "shop"))
	settled(t, namespace, "shop")
	for _, step := range []struct {
		word string
		want bool
	}{{"debug", true}, {"", false}} {
		change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) {
			p.Annotations = map[string]string{resources.AnnotationLogLevel: step.word}
		})
		eventually(t, func() error {
			told := fmt.Sprint(get(t, &corev1.ConfigMap{}, namespace, "shop-config").Data)
			if strings.Contains(told, `"logLevel":"DEBUG"`) != step.want && strings.Contains(told, `"logLevel": "DEBUG"`) != step.want {
				return fmt.Errorf("with %q the pods are told %s", step.word, told)
			}
			return nil
		})
	}
}
