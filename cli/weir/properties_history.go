package main

import (
	"strings"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/controllers/resources"
)

// resolveHistory looks up how the Property's own ClickHouse is reached, where it has one.
func (l *propertyLoader) resolveHistory(property *loadedProperty) {
	spec := property.Spec.History.ClickHouse
	if !property.Spec.HasHistory() || spec == nil || spec.URLSecretKeyRef == nil {
		return
	}
	reference := *spec.URLSecretKeyRef
	value, found := l.lookUp(property, resources.HistoryURLField, reference)
	if !found {
		return
	}
	server := &property.clickHouse
	server.URL = strings.TrimSpace(value)
	for _, part := range resources.HistoryCertificates(spec) {
		value, found := l.lookUp(property, part.Field, part.Ref)
		if found && value == "" {
			l.addAt(property, part.Field, "key %s of Secret %s/%s: must not be empty", part.Ref.Key, property.Namespace, part.Ref.Name)
		}
		if value == "" {
			return
		}
		*part.Of(&server.TLS) = value
	}
	err := clickhouse.CheckURL(server.URL, server.TLS)
	switch blamed := resources.HistoryCertificateField(err); {
	case blamed != "":
		l.addAt(property, blamed, "%v", err)
	case err != nil:
		l.addAt(property, resources.HistoryURLField, "key %s of Secret %s/%s: %v", reference.Key, property.Namespace, reference.Name, err)
	}
}
