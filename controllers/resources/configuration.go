package resources

import (
	"path"

	applycore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
)

// configObjects hold the pods' files: what is no secret in a ConfigMap, hashes of keys and tokens in a Secret
// for each role that needs them.
func configObjects(property *v1alpha1.Property, files map[string][]byte) []Object {
	name := configMapName(property)
	return append([]Object{
		{kindConfigMap, property.Namespace, name, applycore.ConfigMap(name, property.Namespace).
			WithLabels(Labels(property)).
			WithOwnerReferences(ownedBy(property)).
			WithData(map[string]string{
				path.Base(config.PropertyFile): string(files[config.PropertyFile]),
				path.Base(config.SettingsFile): string(files[config.SettingsFile]),
				path.Base(config.ConsoleFile):  string(files[config.ConsoleFile]),
			})},
	}, hashObjects(property, files)...)
}

// hashObjects hold the hashes of keys and tokens.
func hashObjects(property *v1alpha1.Property, files map[string][]byte) []Object {
	secret := func(name, file string) Object {
		return Object{kindSecret, property.Namespace, name, applycore.Secret(name, property.Namespace).
			WithLabels(Labels(property)).
			WithOwnerReferences(ownedBy(property)).
			WithData(map[string][]byte{path.Base(file): files[file]})}
	}
	return []Object{
		secret(apiKeysSecretName(property), config.APIKeysFile),
		secret(accessTokensSecretName(property), config.AccessTokensFile),
	}
}

// serviceAccount is what a role's pods run as. They get no token: none of them speaks to the API server.
func serviceAccount(property *v1alpha1.Property, role Role) Object {
	name := ObjectName(property, role)
	return Object{kindServiceAccount, property.Namespace, name, applycore.ServiceAccount(name, property.Namespace).
		WithLabels(roleLabels(property, role)).
		WithOwnerReferences(ownedBy(property)).
		WithAutomountServiceAccountToken(false)}
}
