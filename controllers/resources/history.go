package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/connect"
	"github.com/weir-dev/weir/collector/history/access"
)

// The fields that say how a Property's own ClickHouse is reached.
const (
	HistoryURLField         = "spec.history.clickHouse.urlSecretKeyRef"
	historyCAField          = "spec.history.clickHouse.caSecretRef"
	historyCertificateField = "spec.history.clickHouse.clientCertificateSecretRef"
)

// HistorySecretName is the Secret with a role's user of the history.
func HistorySecretName(property *v1alpha1.Property, role access.Role) string {
	return property.Name + "-history-" + string(role)
}

// HistoryCertificates are those that the spec names of a Property's own ClickHouse.
func HistoryCertificates(spec *v1alpha1.ClickHouse) []Certificate {
	if spec == nil {
		return nil
	}
	return certificates(historyCAField, spec.CASecretRef, historyCertificateField, spec.ClientCertificateSecretRef)
}

// HistoryCertificateField names the field that an error of [connect.TLS] is about; "" for another error.
func HistoryCertificateField(err error) string {
	switch {
	case errors.Is(err, connect.ErrCA):
		return historyCAField
	case errors.Is(err, connect.ErrClientCertificate):
		return historyCertificateField
	default:
		return ""
	}
}

// HistorySecretData is what a role's Secret holds of how the history is reached. Its pods mount all of it.
func HistorySecretData(history config.ClickHouse) map[string][]byte {
	data := map[string][]byte{}
	for file, content := range history.Files() {
		data[path.Base(file)] = content
	}
	return data
}

// historyConfig says how events are kept beyond what Redis retains; nil where they are not, or not yet.
func historyConfig(spec *v1alpha1.PropertySpec, pending bool) *config.History {
	if !spec.HasHistory() || pending {
		return nil
	}
	return &config.History{Cluster: spec.History.Cluster(), RetentionDays: int(spec.History.Days())}
}

// Certificate is one part of what is trusted and shown in a server of a Property's own: where the spec says that it stands,
// and where it belongs.
type Certificate struct {
	Field string
	Ref   v1alpha1.SecretKeyReference
	Of    func(*connect.TLS) *string
}

// certificates are those that two fields of the spec name.
func certificates(caField string, ca *v1alpha1.CASecretReference, shownField string, shown *v1alpha1.SecretReference) []Certificate {
	var list []Certificate
	if ca != nil {
		list = append(list, Certificate{caField, v1alpha1.SecretKeyReference(*ca), func(t *connect.TLS) *string { return &t.CA }})
	}
	if shown != nil {
		list = append(list,
			Certificate{shownField, v1alpha1.SecretKeyReference{Name: shown.Name, Key: corev1.TLSCertKey}, func(t *connect.TLS) *string { return &t.Certificate }},
			Certificate{shownField, v1alpha1.SecretKeyReference{Name: shown.Name, Key: corev1.TLSPrivateKeyKey}, func(t *connect.TLS) *string { return &t.Key }})
	}
	return list
}

// placeHash tells places of servers apart. User, password and certificates are read again when they change, so that a pod need
// not be replaced for these.
func placeHash(address string) string {
	if parsed, err := url.Parse(address); err == nil {
		parsed.User = nil
		address = parsed.String()
	}
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:8])
}
