package resources

import (
	"path"
	"strconv"

	applycore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
)

// LedgerKey is the key of a Secret with a part of a ledger of erasures.
const LedgerKey = "ledger"

// ErasuresSecretName is the Secret with a part of a Property's ledger of erasures, from 0 to [config.MaxLedgerParts] less one.
func ErasuresSecretName(property *v1alpha1.Property, part int) string {
	return property.Name + "-erasures" + partSuffix(part)
}

// partSuffix ends the names of what belongs to a part, but for the first one.
func partSuffix(part int) string {
	if part == 0 {
		return ""
	}
	return "-" + strconv.Itoa(part)
}

// ledgerVolume shows all parts of a ledger of erasures as files of one directory. A pod waits until they are there: it must not
// serve what an older backup of Redis has brought back.
func ledgerVolume(property *v1alpha1.Property, parts int) *applycore.VolumeApplyConfiguration {
	projected := applycore.ProjectedVolumeSource().WithDefaultMode(0o440)
	for part := range max(1, parts) {
		projected.WithSources(applycore.VolumeProjection().WithSecret(applycore.SecretProjection().
			WithName(ErasuresSecretName(property, part)).
			WithItems(applycore.KeyToPath().WithKey(LedgerKey).WithPath(path.Base(config.LedgerFile) + partSuffix(part)))))
	}
	return applycore.Volume().WithName(volumeErasures).WithProjected(projected)
}
