// Package crd holds the CustomResourceDefinition of the Property, for whoever judges Properties without an API server.
package crd

import _ "embed"

// Properties is the definition, as the API server takes it.
//
//go:embed bases/weir.dev_properties.yaml
var Properties []byte
