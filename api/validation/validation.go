// Package validation does to a Property what the API server does on its way in, without a server: unknown
// fields, defaults, the schema, unique lists, CEL rules and transition rules, by the API server's own code and
// the generated CustomResourceDefinition. A Property that it accepts, a cluster accepts.
package validation

import (
	"context"
	"errors"
	"fmt"
	_ "time/tzdata" // for the rule about time zones, as in the API server

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	crvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// Validator accepts and refuses Properties. It is safe for concurrent use.
type Validator struct {
	structural *structuralschema.Structural
	schema     crvalidation.SchemaValidator
	rules      *cel.Validator
}

// New reads the CustomResourceDefinition of Properties, as YAML, and compiles its rules.
func New(definition []byte) (*Validator, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(definition, &crd); err != nil {
		return nil, fmt.Errorf("read CustomResourceDefinition: %w", err)
	}
	for _, version := range crd.Spec.Versions {
		if version.Name == v1alpha1.GroupVersion.Version && version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
			return compile(version.Schema.OpenAPIV3Schema)
		}
	}
	return nil, fmt.Errorf("CustomResourceDefinition %s has no schema for version %s", crd.Name, v1alpha1.GroupVersion.Version)
}

func compile(openapi *apiextensionsv1.JSONSchemaProps) (*Validator, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(openapi, &internal, nil); err != nil {
		return nil, fmt.Errorf("convert schema: %w", err)
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, fmt.Errorf("make schema structural: %w", err)
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, fmt.Errorf("prune defaults: %w", err)
	}
	schema, _, err := crvalidation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return &Validator{structural: structural, schema: schema, rules: rules}, nil
}

// Create does what the API server does with a new Property: it removes the status, fills in the defaults and
// checks the rest. object is changed in place; its numbers are int64 or float64, as
// k8s.io/apimachinery/pkg/util/json reads them. The Property is nil where there are errors.
func (v *Validator) Create(ctx context.Context, object map[string]any) (*v1alpha1.Property, field.ErrorList) {
	delete(object, "status")
	meta, errs := v.decode(object)
	if meta == nil {
		return nil, errs
	}
	errs = append(errs, metavalidation.ValidateObjectMeta(meta, true, anyName, field.NewPath("metadata"))...)
	errs = append(errs, crvalidation.ValidateCustomResource(nil, object, v.schema)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	if !blocksRules(errs) {
		ruleErrs, _ := v.rules.Validate(ctx, nil, v.structural, object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, ruleErrs...)
	}
	return convert(object, errs)
}

// anyName leaves the name to the Property's own rule, which is narrower than the API server's for all objects.
func anyName(string, bool) []string { return nil }

// decode takes out what the schema does not know, as an error each, and fills in the defaults. The metadata is
// nil where it cannot be read; nothing else is worth checking then.
func (v *Validator) decode(object map[string]any) (*metav1.ObjectMeta, field.ErrorList) {
	meta, errs := decodeMetadata(object)
	unknown := pruning.PruneWithOptions(object, v.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		errs = append(errs, field.Invalid(field.NewPath(path), field.OmitValueType{}, v.unknownField(path)))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	defaulting.Default(object, v.structural)
	return meta, errs
}

func decodeMetadata(object map[string]any) (*metav1.ObjectMeta, field.ErrorList) {
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if !found {
		return nil, field.ErrorList{field.Required(field.NewPath("metadata", "name"), "")}
	}
	if err != nil {
		// The decoder's message may repeat a value.
		return nil, field.ErrorList{field.Invalid(field.NewPath("metadata"), field.OmitValueType{}, "must be object metadata: name, namespace, labels and annotations, all of them text")}
	}
	var errs field.ErrorList
	for _, path := range unknown {
		errs = append(errs, field.Invalid(field.NewPath(path), field.OmitValueType{}, "is no field of object metadata"))
	}
	return meta, errs
}

// blocksRules says whether errs are such that CEL rules cannot be evaluated sensibly; the API server leaves
// them out for the same ones.
func blocksRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

func convert(object map[string]any, errs field.ErrorList) (*v1alpha1.Property, field.ErrorList) {
	if len(errs) > 0 {
		return nil, errs
	}
	property := &v1alpha1.Property{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, property); err != nil {
		return nil, field.ErrorList{field.InternalError(nil, errors.New("the schema accepts what the Go type cannot hold"))}
	}
	return property, nil
}
