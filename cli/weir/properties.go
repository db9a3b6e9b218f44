package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/api/validation"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/config/crd"
	"github.com/weir-dev/weir/controllers/resources"
)

// defaultNamespace is where an object belongs that names no namespace, as with kubectl.
const defaultNamespace = "default"

// loadedProperty is a Property from a file, with its defaults and with what its Secrets hold.
type loadedProperty struct {
	*v1alpha1.Property
	file string
	// apiKeys are the keys that the owner brings, by their names in the spec.
	apiKeys map[string]string
	// accessTokens are likewise the tokens.
	accessTokens map[string]string
	// platformSecrets are the values that the platforms need, by the platform's name and the Secret's key.
	platformSecrets map[string]map[string]string
	// sourceSecrets are those that the sources need, in the same way.
	sourceSecrets map[string]map[string]string
	// redis has no URL where the spec names no Redis.
	redis config.Redis
	// clickHouse has no URL where the spec names no ClickHouse of its own.
	clickHouse config.ClickHouse
}

// propertyLoader gathers the objects of all files before it looks at what refers to what.
type propertyLoader struct {
	validator  *validation.Validator
	properties []*loadedProperty
	secrets    map[objectName]*loadedSecret
	errs       flags.Errors
}

// objectName is what tells the objects of one kind apart.
type objectName struct{ namespace, name string }

func (n objectName) String() string { return n.namespace + "/" + n.name }

// loadProperties reads the Properties and Secrets of files and of the *.yaml, *.yml and *.json files of folders,
// in that order, and does to the Properties what the API server and the operator do. The error is a [flags.Errors]
// with everything that is wrong; nothing in it repeats a Secret's value.
func loadProperties(ctx context.Context, paths []string) ([]*loadedProperty, error) {
	validator, err := validation.New(crd.Properties)
	if err != nil {
		return nil, err
	}
	return newPropertyLoader(validator).load(ctx, paths)
}

func newPropertyLoader(validator *validation.Validator) *propertyLoader {
	return &propertyLoader{validator: validator, secrets: map[objectName]*loadedSecret{}}
}

func (l *propertyLoader) load(ctx context.Context, paths []string) ([]*loadedProperty, error) {
	for _, path := range paths {
		files, err := manifestFiles(path)
		if err != nil {
			l.errs.Add("%v", err)
		}
		for _, file := range files {
			l.readFile(ctx, file)
		}
	}
	for _, property := range l.properties {
		l.resolve(property)
	}
	l.checkUnique()
	if len(l.properties) == 0 && len(l.errs) == 0 {
		l.errs.Add("%s: there is no Property in it; config/samples has one to start from", strings.Join(paths, ", "))
	}
	if len(l.errs) > 0 {
		return nil, l.errs
	}
	return l.properties, nil
}

// addAt notes what is wrong with a field of a Property that has been accepted as such.
func (l *propertyLoader) addAt(property *loadedProperty, field, format string, args ...any) {
	l.errs.Add("%s: Property %s: %s: %s", property.file, property.id(), field, fmt.Sprintf(format, args...))
}

func (p *loadedProperty) id() objectName { return objectName{p.Namespace, p.Name} }

func (l *propertyLoader) readFile(ctx context.Context, file string) {
	manifests, errs := readManifests(file)
	for _, err := range errs {
		l.errs.Add("%v", err)
	}
	for _, manifest := range manifests {
		apiVersion := v1alpha1.GroupVersion.String()
		read := func() { l.readProperty(ctx, file, manifest) }
		switch manifest.kind() {
		case v1alpha1.Kind:
		case "Secret":
			apiVersion = "v1"
			read = func() { l.readSecret(file, manifest) }
		case "":
			l.errs.Add("%s: %s: kind: is required; it must be %s or Secret", file, manifest, v1alpha1.Kind)
			continue
		default:
			l.errs.Add("%s: %s: kind: must be %s or Secret; nothing else is served", file, manifest, v1alpha1.Kind)
			continue
		}
		if got, _ := manifest.object["apiVersion"].(string); got != apiVersion {
			l.errs.Add("%s: %s: apiVersion: must be %s", file, manifest, apiVersion)
			continue
		}
		read()
	}
}

// readProperty does what the API server does with a Property, and then what a pod does with its configuration:
// it knows, for one, which currencies there are.
func (l *propertyLoader) readProperty(ctx context.Context, file string, manifest manifest) {
	label := manifest.String()
	property, errs := l.validator.Create(ctx, manifest.object)
	for _, wrong := range validation.Describe(errs) {
		if wrong.Field == "" {
			l.errs.Add("%s: %s: %s", file, label, wrong.Detail)
		} else {
			l.errs.Add("%s: %s: %s: %s", file, label, wrong.Field, wrong.Detail)
		}
	}
	if property == nil {
		return
	}
	if _, err := resources.PropertyConfig(property, resources.Options{}); err != nil {
		for line := range strings.Lines(err.Error()) {
			l.errs.Add("%s: %s: spec.%s", file, label, strings.TrimSpace(line))
		}
		return
	}
	l.properties = append(l.properties, &loadedProperty{Property: property, file: file})
}

// checkUnique sees to what only one Property may have: a name in its namespace and on its API host, a collectHost, an API
// key. In a cluster the older Property keeps it; in files the first one does.
func (l *propertyLoader) checkUnique() {
	for i, younger := range l.properties {
		for _, older := range l.properties[:i] {
			l.checkUniqueOf(younger, older)
		}
	}
}

func (l *propertyLoader) checkUniqueOf(younger, older *loadedProperty) {
	if younger.id() == older.id() {
		l.addAt(younger, "metadata.name", "must be unique, but stands in %s already", older.file)
		return // and so does all the rest
	}
	mine, theirs := younger.Spec.Exposure, older.Spec.Exposure
	if mine.CollectHost != "" && (mine.CollectHost == theirs.CollectHost || mine.CollectHost == theirs.APIHost) {
		l.addAt(younger, "spec.exposure.collectHost", "must belong to one Property, but is a host of %s (%s) already", older.id(), older.file)
	}
	if mine.APIHost != "" && mine.APIHost == theirs.CollectHost {
		l.addAt(younger, "spec.exposure.apiHost", "must not be the collectHost of another Property, but is that of %s (%s)", older.id(), older.file)
	}
	if mine.APIHost != "" && mine.APIHost == theirs.APIHost && younger.Name == older.Name {
		l.addAt(younger, "spec.exposure.apiHost", "must be another, because on this one the name is that of %s (%s) already", older.id(), older.file)
	}
	for i, key := range younger.Spec.APIKeys {
		secret, brought := younger.apiKeys[key.Name]
		if brought && slices.ContainsFunc(older.Spec.APIKeys, func(other v1alpha1.PropertyAPIKey) bool { return older.apiKeys[other.Name] == secret }) {
			l.addAt(younger, fmt.Sprintf("spec.apiKeys[%d].secretKeyRef", i), "must bring a key of its own, but %s (%s) has the same one", older.id(), older.file)
		}
	}
	for i, token := range younger.Spec.AccessTokens {
		secret, brought := younger.accessTokens[token.Name]
		if brought && slices.ContainsFunc(older.Spec.AccessTokens, func(other v1alpha1.PropertyAccessToken) bool { return older.accessTokens[other.Name] == secret }) {
			l.addAt(younger, fmt.Sprintf("spec.accessTokens[%d].secretKeyRef", i), "must bring a token of its own, but %s (%s) has the same one", older.id(), older.file)
		}
	}
}
