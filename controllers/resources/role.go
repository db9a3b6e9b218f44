package resources

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/collector/sources"
)

// Role is one of a Property's deployments.
type Role string

// The roles, by the names that their objects end in.
const (
	Collector Role = "collector"
	Deliverer Role = "deliverer"
	Query     Role = "query"
	Archive   Role = "archive"
)

// Roles returns all roles.
func Roles() []Role { return []Role{Collector, Deliverer, Query, Archive} }

// RolesOf returns those that a Property has pods of.
func RolesOf(property *v1alpha1.Property) []Role {
	roles := Roles()
	if !property.Spec.HasHistory() {
		roles = slices.DeleteFunc(roles, func(r Role) bool { return r == Archive })
	}
	return roles
}

// roleTraits is in what a role's objects differ from the others'. What it may do in Redis is not here but where its user is made.
type roleTraits struct {
	// serves is the name by which the collector binary knows the role.
	serves string
	// takesRequests says that the role is reached by HTTP: it has a port and a Service, and waits to be left alone before it ends.
	takesRequests bool
	// credentials is the configuration file with the hashes of what requests show, in a Secret of its own; "" for none.
	credentials string
	// credentialsSecret names that Secret.
	credentialsSecret func(*v1alpha1.Property) string
	// settings are the files of the ConfigMap that the role has mounted.
	settings []string
	// signsIn says that people sign in to the role's pods, which have the keys of sessions mounted for that.
	signsIn bool
	// sourceSecret returns which keys of which of a source's Secrets the role has mounted; "" for none.
	sourceSecret func(*v1alpha1.Source) (secret string, keys []string)
	// delivers says that the role has the platforms' Secrets mounted and may reach their hosts.
	delivers bool
	// reads is whose user of the history the role's pods have, "" for none.
	reads access.Role
	// alone says that there are never two pods, not while one replaces another either.
	alone bool
	// reports says that the role computes in the reporting currency, and begins anew with another.
	reports bool
	// replicas is how many pods run where the spec does not say.
	replicas int32
	// memory and memoryLimit are what the container has where the spec does not say.
	memory, memoryLimit string
	// gogc is GOGC in the container's environment, "" for Go's own default.
	gogc string
	// spec is what the owner says of the role.
	spec func(*v1alpha1.PropertySpec) roleSpec
}

// roleSpec is what a Property says of a role's pods.
type roleSpec struct {
	pods     *v1alpha1.PodOptions
	replicas *int32
	// autoscaling bounds the autoscaler that is made for the role; nil for none. External says that somebody else scales it.
	autoscaling *v1alpha1.Autoscaling
	external    bool
}

// leaves says whether the number of pods is somebody else's to decide than the spec's.
func (s roleSpec) leaves() bool { return s.autoscaling != nil || s.external }

// ScaledBySomebodyElse says whether the spec leaves the number of a role's pods to others, who may ask for none.
func ScaledBySomebodyElse(property *v1alpha1.Property, role Role) bool {
	return role.traits().spec(&property.Spec).external
}

// traits returns the role's row.
func (r Role) traits() roleTraits {
	switch r {
	case Collector:
		return roleTraits{
			serves: "collect", takesRequests: true, credentials: config.APIKeysFile, credentialsSecret: apiKeysSecretName,
			settings: []string{config.PropertyFile}, sourceSecret: signingSecret,
			replicas: 2, memory: "64Mi", memoryLimit: "256Mi",
			// A collector has so little memory in use that a collection of garbage at twice that, as Go does by default, would come
			// every 500 requests; the container's memory limit, which the program keeps to by itself, starts one in time all the same.
			gogc: "400",
			spec: func(s *v1alpha1.PropertySpec) roleSpec {
				said := roleSpec{&s.Collector.PodOptions, s.Collector.Replicas, s.Collector.Autoscaling, false}
				if said.autoscaling != nil && said.autoscaling.Type == v1alpha1.AutoscalingExternal {
					said.autoscaling, said.external = nil, true
				}
				return said
			},
		}
	case Deliverer:
		return roleTraits{
			serves: "deliver", delivers: true, reads: access.Query, settings: []string{config.PropertyFile}, sourceSecret: readingSecret, replicas: 1, memory: "64Mi", memoryLimit: "256Mi",
			spec: func(s *v1alpha1.PropertySpec) roleSpec {
				return roleSpec{&s.Deliverer.PodOptions, s.Deliverer.Replicas, nil, s.Deliverer.Autoscaling != nil}
			},
		}
	case Archive:
		return roleTraits{
			serves: "archive", reads: access.Archive, alone: true, settings: []string{config.PropertyFile}, sourceSecret: noSecret, replicas: 1,
			// A block of each stream, as it is read, as rows and as it is sent.
			memory: "128Mi", memoryLimit: "512Mi",
			spec: func(s *v1alpha1.PropertySpec) roleSpec { return roleSpec{&s.Archive.PodOptions, nil, nil, false} },
		}
	default:
		return roleTraits{
			serves: "query", takesRequests: true, reads: access.Query, credentials: config.AccessTokensFile, credentialsSecret: accessTokensSecretName,
			settings: []string{config.PropertyFile, config.SettingsFile, config.ConsoleFile}, signsIn: true,
			sourceSecret: noSecret, reports: true, replicas: 1,
			// The retained events are held in memory, in half of the limit: some eight million of them. Where there are
			// more it answers for the newest.
			memory: "256Mi", memoryLimit: "2Gi",
			spec: func(s *v1alpha1.PropertySpec) roleSpec {
				return roleSpec{&s.Query.PodOptions, s.Query.Replicas, nil, s.Query.Autoscaling != nil}
			},
		}
	}
}

// signingSecret is what a source's webhooks are verified with.
func signingSecret(source *v1alpha1.Source) (string, []string) {
	return source.SecretRef.Name, []string{sources.SigningSecret}
}

// readingSecret is what a source's orders are read with.
func readingSecret(source *v1alpha1.Source) (string, []string) {
	if source.APISecretRef == nil {
		return "", nil
	}
	traits, _ := source.Type.Traits()
	return source.APISecretRef.Name, traits.APICredentials
}

func noSecret(*v1alpha1.Source) (string, []string) { return "", nil }

// HistoryRole is whose user of the history the role's pods have, "" for none.
func (r Role) HistoryRole() access.Role { return r.traits().reads }

// HasCredentials says whether requests to the role show API keys or access tokens.
func (r Role) HasCredentials() bool { return r.traits().credentials != "" }

// HashesSecretName is the Secret with the hashes that the role compares keys or tokens with, "" for a role that has none.
func HashesSecretName(property *v1alpha1.Property, role Role) string {
	if !role.HasCredentials() {
		return ""
	}
	return role.traits().credentialsSecret(property)
}

// PodOptions is what the spec says of a role's pods.
func PodOptions(property *v1alpha1.Property, role Role) *v1alpha1.PodOptions {
	return role.traits().spec(&property.Spec).pods
}

// RoleFiles are those of a pod's configuration files that the role mounts.
func RoleFiles(role Role, files map[string][]byte) map[string][]byte {
	mounted := map[string][]byte{}
	for _, file := range role.traits().settings {
		mounted[file] = files[file]
	}
	if credentials := role.traits().credentials; credentials != "" {
		mounted[credentials] = files[credentials]
	}
	if role.traits().delivers {
		maps.Copy(mounted, deliveryProxyFiles(files))
	}
	return mounted
}

// isScaled says whether several pods of the role may run: a budget for disruptions that holds for one keeps nobody from anything.
func isScaled(property *v1alpha1.Property, role Role) bool {
	switch said := role.traits().spec(&property.Spec); {
	case said.external:
		return true
	case said.autoscaling != nil:
		return minReplicas(said.autoscaling) > 1
	default:
		return replicas(property, role) > 1
	}
}

// minReplicas is the fewest pods that an autoscaler may leave.
func minReplicas(bounds *v1alpha1.Autoscaling) int32 {
	return cmp.Or(bounds.MinReplicas, v1alpha1.DefaultMinReplicas)
}

// replicas is how many pods the spec asks for where no autoscaler decides.
func replicas(property *v1alpha1.Property, role Role) int32 {
	traits := role.traits()
	if asked := traits.spec(&property.Spec).replicas; asked != nil {
		return *asked
	}
	return traits.replicas
}
