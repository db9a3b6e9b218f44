package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	kubevalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers/resources"
)

// loadedSecret is a Secret from a file.
type loadedSecret struct {
	file   string
	values map[string]string
}

// secretFields are the members of a Secret.
var secretFields = []string{"apiVersion", "data", "immutable", "kind", "metadata", "stringData", "type"}

func (l *propertyLoader) readSecret(file string, manifest manifest) {
	for _, field := range slices.Sorted(maps.Keys(manifest.object)) {
		if !slices.Contains(secretFields, field) {
			l.errs.Add("%s: %s: %s: is no field here; the fields are %s", file, manifest, field, strings.Join(secretFields, ", "))
		}
	}
	name := manifest.name()
	if wrong := kubevalidation.IsDNS1123Subdomain(name.name); len(wrong) > 0 {
		l.errs.Add("%s: %s: metadata.name: must be lower-case letters, digits, '-' and '.', such as shop-crm", file, manifest)
		return
	}
	if name.namespace == "" {
		l.errs.Add("%s: %s: metadata.namespace: must be text; put it in quotes", file, manifest)
		return
	}
	if earlier, found := l.secrets[name]; found {
		l.errs.Add("%s: %s: metadata.name: must be unique, but stands in %s already", file, manifest, earlier.file)
		return
	}
	secret := &loadedSecret{file: file, values: map[string]string{}}
	l.secrets[name] = secret
	// stringData is the later of the two, because it wins.
	for _, field := range []string{"data", "stringData"} {
		members, isMap := manifest.object[field].(map[string]any)
		if !isMap && manifest.object[field] != nil {
			l.errs.Add("%s: %s: %s: must be an object of texts", file, manifest, field)
		}
		for _, key := range slices.Sorted(maps.Keys(members)) {
			value, err := secretValue(field, key, members[key])
			if err != nil {
				l.errs.Add("%s: %s: %s.%s: %v", file, manifest, field, key, err)
			}
			secret.values[key] = value
		}
	}
}

// secretValue reads one member of a Secret's data or stringData. Its errors never repeat the value.
func secretValue(field, key string, member any) (string, error) {
	if len(kubevalidation.IsConfigMapKey(key)) > 0 {
		return "", fmt.Errorf("the key must be letters, digits, '-', '_' and '.'")
	}
	value, isText := member.(string)
	switch {
	case member == nil:
		return "", nil
	case !isText:
		return "", fmt.Errorf("must be text; put it in quotes")
	case field == "stringData":
		return value, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return "", fmt.Errorf("must be base64; plain text belongs under stringData")
	}
	return string(decoded), nil
}

// resolve looks up every Secret that a Property refers to.
func (l *propertyLoader) resolve(property *loadedProperty) {
	property.apiKeys, property.accessTokens = map[string]string{}, map[string]string{}
	for i, key := range property.Spec.APIKeys {
		l.resolveBrought(property, fmt.Sprintf("spec.apiKeys[%d].secretKeyRef", i), key.SecretKeyRef, resources.BroughtAPIKey, property.apiKeys, key.Name)
	}
	for i, token := range property.Spec.AccessTokens {
		l.resolveBrought(property, fmt.Sprintf("spec.accessTokens[%d].secretKeyRef", i), token.SecretKeyRef, resources.BroughtAccessToken, property.accessTokens, token.Name)
	}
	property.platformSecrets = map[string]map[string]string{}
	for i := range property.Spec.Platforms {
		l.resolvePlatform(property, i)
	}
	property.sourceSecrets = map[string]map[string]string{}
	for i := range property.Spec.Sources {
		l.resolveSource(property, i)
	}
	if property.Spec.Redis != nil && property.Spec.Redis.URLSecretKeyRef != nil { // one that an operator makes is weir dev's here
		l.resolveRedis(property)
	}
	l.resolveHistory(property)
}

// resolveBrought looks up a key or token that the owner brings, and notes it by its name; nil is none.
func (l *propertyLoader) resolveBrought(property *loadedProperty, field string, ref *v1alpha1.SecretKeyReference, read func(string) (string, error), into map[string]string, name string) {
	if ref == nil {
		return
	}
	value, found := l.lookUp(property, field, *ref)
	if !found {
		return
	}
	brought, err := read(value)
	if err != nil {
		l.addAt(property, field, "key %s of Secret %s/%s: %v", ref.Key, property.Namespace, ref.Name, err)
	}
	into[name] = brought
}

// resolveRedis looks up how the Property's own Redis is reached.
func (l *propertyLoader) resolveRedis(property *loadedProperty) {
	spec := property.Spec.Redis
	const field = "spec.redis.urlSecretKeyRef"
	value, found := l.lookUp(property, field, *spec.URLSecretKeyRef)
	if !found {
		return
	}
	redis := &property.redis
	redis.URL = strings.TrimSpace(value)
	if !isRedisURL(redis.URL) {
		l.addAt(property, field, "key %s of Secret %s/%s: must be a URL that begins with redis://, rediss:// or unix://",
			spec.URLSecretKeyRef.Key, property.Namespace, spec.URLSecretKeyRef.Name)
		return
	}
	for _, part := range resources.RedisCertificates(spec) {
		value, found := l.lookUp(property, part.Field, part.Ref)
		if found && value == "" {
			l.addAt(property, part.Field, "key %s of Secret %s/%s: must not be empty", part.Ref.Key, property.Namespace, part.Ref.Name)
		}
		if value == "" {
			return
		}
		*part.Of(&redis.TLS) = value
	}
	err := stream.CheckTLS(redis.URL, redis.TLS)
	if blamed := resources.RedisCertificateField(err); blamed != "" {
		l.addAt(property, blamed, "%v", err)
	}
}

// resolvePlatform looks up a platform's credentials and has them judged as the deliverer judges them.
func (l *propertyLoader) resolvePlatform(property *loadedProperty, i int) {
	spec := &property.Spec.Platforms[i]
	field := fmt.Sprintf("spec.platforms[%d].credentialsSecretRef", i)
	values := map[string]string{}
	complete := true
	if secret := spec.SecretName(); secret != "" {
		for _, key := range spec.Type.SecretKeys(spec.ForwardErasure) {
			value, found := l.lookUp(property, field, v1alpha1.SecretKeyReference{Name: secret, Key: key})
			values[key], complete = value, complete && found
		}
	}
	property.platformSecrets[spec.Name] = values
	if !complete {
		return
	}
	rendered, err := resources.PropertyConfig(property.Property, resources.Options{})
	if err == nil {
		platform := rendered.Platforms[i]
		if rule := rendered.Consent.Rule(&platform); platform.Mode == platforms.Shadow {
			_, err = adapter.OpenShadow(platform, rule)
		} else {
			_, err = adapter.Open(platform, values, rule)
		}
	}
	if errors.Is(err, adapter.ErrConfiguration) {
		field = fmt.Sprintf("spec.platforms[%d]", i)
	}
	if err != nil {
		l.addAt(property, field, "%v", err)
	}
}

// resolveSource looks up what a source's webhooks are verified with, and what its shop's orders are read with.
func (l *propertyLoader) resolveSource(property *loadedProperty, i int) {
	spec := &property.Spec.Sources[i]
	values := map[string]string{}
	look := func(field string, reference *v1alpha1.SecretReference, keys ...string) {
		field = fmt.Sprintf("spec.sources[%d].%s", i, field)
		for _, key := range keys {
			value, found := l.lookUp(property, field, v1alpha1.SecretKeyReference{Name: reference.Name, Key: key})
			if found && strings.TrimSpace(value) == "" {
				l.addAt(property, field, "key %s of Secret %s/%s: must not be empty", key, property.Namespace, reference.Name)
			}
			values[key] = value
		}
	}
	look("secretRef", &spec.SecretRef, sources.SigningSecret)
	if spec.APISecretRef != nil {
		traits, _ := spec.Type.Traits()
		look("apiSecretRef", spec.APISecretRef, traits.APICredentials...)
	}
	property.sourceSecrets[spec.Name] = values
}

// lookUp finds one key of a Secret, or notes what is missing and where it is referred to.
func (l *propertyLoader) lookUp(property *loadedProperty, field string, reference v1alpha1.SecretKeyReference) (string, bool) {
	name := objectName{property.Namespace, reference.Name}
	secret, found := l.secrets[name]
	if !found {
		l.addAt(property, field, "Secret %s, of which the key %s is needed, is in none of the files; add it to one of them", name, reference.Key)
		return "", false
	}
	value, found := secret.values[reference.Key]
	if !found {
		l.addAt(property, field, "Secret %s (%s) must have the key %s", name, secret.file, reference.Key)
	}
	return value, found
}

func isRedisURL(text string) bool {
	parsed, err := url.Parse(text)
	if err != nil {
		return false
	}
	switch parsed.Scheme {
	case "redis", "rediss":
		return parsed.Host != ""
	case "unix":
		return parsed.Path != ""
	default:
		return false
	}
}
