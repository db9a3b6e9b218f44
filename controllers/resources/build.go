package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/access"
)

// Input is what the objects are made from, beside the Property.
type Input struct {
	Credentials Credentials
	Options     Options
	// RedisURLs are what each role's pods reach Redis with: with the role's own user.
	RedisURLs map[Role]string
	// RedisPort is the port that the pods may reach Redis at; 0 for any.
	RedisPort int32
	// HistoryURLs are what pods reach the history with, by whose user it is; empty where there is none, or none yet. HistoryPort is
	// the port of its server.
	HistoryURLs map[access.Role]string
	HistoryPort int32
	// LedgerParts is over how many Secrets the ledger of erasures is spread; 0 means 1. A further one replaces the pods, which
	// know of what is in it from the stream until then.
	LedgerParts int
	// Withheld leaves out what exposes the Property, because it may not have the hosts.
	Withheld bool
	// Available says which of [OptionalKinds] the cluster has.
	Available map[schema.GroupVersionKind]bool
}

// Build returns everything that a Property asks for, but not the Secrets whose content is created once, and the files of its
// pods as [PodConfig] renders them. An error says what of the spec the pods would refuse, or which credential is missing.
func Build(property *v1alpha1.Property, in Input) (objects []Object, files map[string][]byte, err error) {
	files, err = PodConfig(property, in.Credentials, in.Options)
	if err != nil {
		return nil, nil, err
	}
	objects = configObjects(property, files)
	if in.Options.DeliveryProxy.URL != "" {
		objects = append(objects, deliveryProxySecret(property, in.Options.DeliveryProxy))
	}
	objects = append(objects, dedicatedRedis(property, &in.Options)...)
	for _, role := range RolesOf(property) {
		objects = append(objects,
			serviceAccount(property, role),
			deployment(property, role, in),
		)
		if !in.Options.Network.Disabled {
			objects = append(objects, networkPolicy(property, role, in))
		}
		if role.traits().takesRequests {
			objects = append(objects, service(property, role))
		}
		if isScaled(property, role) {
			objects = append(objects, disruptionBudget(property, role))
		}
	}
	if bounds := Collector.traits().spec(&property.Spec).autoscaling; bounds != nil {
		objects = append(objects, autoscaler(property, bounds))
	}
	if !in.Withheld {
		objects = append(objects, exposure(property, in)...)
	}
	if in.Available[kindPodMonitor] {
		objects = append(objects, podMonitor(property))
	}
	return objects, files, nil
}

// ConfigHash tells apart what a role's pods have mounted: its files, and the versions of the Secrets that the
// operator does not read. The pods get it as an annotation, which makes the kubelet sync their volumes at once.
func ConfigHash(files map[string][]byte, redis config.Redis, history config.ClickHouse, secretVersions map[string]string) string {
	sum := sha256.New()
	part := func(text string) {
		length := len(text)
		sum.Write([]byte{byte(length >> 24), byte(length >> 16), byte(length >> 8), byte(length)})
		sum.Write([]byte(text))
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		part(path)
		part(string(files[path]))
	}
	for _, text := range []string{redis.URL, redis.TLS.CA, redis.TLS.Certificate, redis.TLS.Key} {
		part(text)
	}
	if history.URL != "" {
		for _, text := range []string{history.URL, history.TLS.CA, history.TLS.Certificate, history.TLS.Key} {
			part(text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(secretVersions)) {
		part(name)
		part(secretVersions[name])
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
