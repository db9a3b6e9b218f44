package console

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// CacheOptions keep the three kinds that the console reads, of some namespaces, or of all where none is named. It asks for no others:
// what is not here cannot be read by accident.
func CacheOptions(scheme *runtime.Scheme, namespaces []string) cache.Options {
	options := cache.Options{
		Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields(), ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{&v1alpha1.Property{}: {}, &v1alpha1.AccessToken{}: {}, &v1alpha1.APIKey{}: {}},
	}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}
