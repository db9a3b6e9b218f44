package v1alpha1

// History is where events are kept beyond what Redis retains.
//
// +kubebuilder:validation:XValidation:rule="!has(self.clickHouse) || self.type == 'ClickHouse'",fieldPath=".clickHouse",message="must be absent unless type is ClickHouse",reason=FieldValueForbidden
type History struct {
	// Memory: nowhere; the query pods answer from memory, for what Redis retains. ClickHouse: in a database of the
	// Property's own; the query pods ask that.
	// +optional
	// +kubebuilder:default=Memory
	Type HistoryType `json:"type,omitempty"`

	// How events are kept in ClickHouse. Default: in the operator's server.
	// +optional
	ClickHouse *ClickHouse `json:"clickHouse,omitempty"`
}

// HistoryType is where events are kept.
//
// +kubebuilder:validation:Enum=Memory;ClickHouse
type HistoryType string

// The types of histories.
const (
	HistoryMemory     HistoryType = "Memory"
	HistoryClickHouse HistoryType = "ClickHouse"
)

// ClickHouse is how events are kept in ClickHouse.
//
// +kubebuilder:validation:XValidation:rule="has(self.urlSecretKeyRef) || !(has(self.caSecretRef) || has(self.clientCertificateSecretRef))",fieldPath=".urlSecretKeyRef",message="must be set where caSecretRef or clientCertificateSecretRef is: these are for a server of the Property's own"
type ClickHouse struct {
	// The key of a Secret in the Property's namespace that holds the URL of a server of the Property's own: https:// or
	// http://, with the name and password of a user who may administer. Default: the operator's server. Immutable.
	// +optional
	URLSecretKeyRef *SecretKeyReference `json:"urlSecretKeyRef,omitempty"`

	// The certificates of the authorities, in PEM, that the server's own may come from. Default: the system's. For URLs
	// that begin with https://.
	// +optional
	CASecretRef *CASecretReference `json:"caSecretRef,omitempty"`

	// A Secret of type kubernetes.io/tls with the certificate that is shown to the server: tls.crt and tls.key, in PEM.
	// Default: none. For URLs that begin with https://.
	// +optional
	ClientCertificateSecretRef *SecretReference `json:"clientCertificateSecretRef,omitempty"`

	// The cluster of ClickHouse's own configuration over which users and rights are made. Default: none, for a single
	// server. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_-]*$')",message="must be the name of a cluster: letters, digits, '_' and '-', with a letter or '_' first, such as analytics"
	Cluster string `json:"cluster,omitempty"`

	// For how many days events are kept there, at least as many as retention.days.
	// +optional
	// +kubebuilder:default=1095
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3653
	RetentionDays int32 `json:"retentionDays,omitempty"`
}

// DefaultHistoryDays is for how many days a history keeps events whose Property does not say.
const DefaultHistoryDays = 1095

// Days is for how many days a history keeps events.
func (h *History) Days() int32 {
	if h.ClickHouse == nil || h.ClickHouse.RetentionDays == 0 {
		return DefaultHistoryDays
	}
	return h.ClickHouse.RetentionDays
}

// Cluster is the name of ClickHouse's cluster, "" for a single server.
func (h *History) Cluster() string {
	if h.ClickHouse == nil {
		return ""
	}
	return h.ClickHouse.Cluster
}

// HasHistory says whether events are kept beyond what Redis retains.
func (s *PropertySpec) HasHistory() bool { return s.History.Type == HistoryClickHouse }
