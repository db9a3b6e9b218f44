package controllers

import (
	"fmt"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// versionNotice is how long before the end of a version its Property says so.
const versionNotice = 60 * 24 * time.Hour

// versions looks which of the versions that are spoken to platforms end soon, or have ended, and has the Property looked at
// again on the day on which that changes.
func (s *scope) versions() {
	for i, platform := range s.property.Spec.Platforms {
		version := platform.Type.Version(platform.APIVersion)
		if version.Ends.IsZero() {
			continue
		}
		field := fmt.Sprintf("spec.platforms[%d] (%s)", i, platform.Name)
		remedy := "upgrade Weir, or name a newer one as apiVersion where the platform's page says that one can be chosen"
		if platform.APIVersion != "" {
			remedy = "name a newer one as apiVersion, or remove that"
		}
		said := version.Ends.Add(-versionNotice)
		switch day := version.Ends.Format(time.DateOnly); {
		case s.now.Before(said):
			s.again(said.Sub(s.now))
		case s.now.Before(version.Ends):
			s.again(version.Ends.Sub(s.now))
			s.versionProblems = append(s.versionProblems, *reasonf(v1alpha1.ReasonVersionEnding, "%s: %s ends version %s of its interface on %s; %s", field, platform.Type, version.Name, day, remedy))
		default:
			s.versionProblems = append(s.versionProblems, *reasonf(v1alpha1.ReasonVersionEnded, "%s: %s has ended version %s of its interface on %s; %s", field, platform.Type, version.Name, day, remedy))
		}
	}
}

// versionsLast is the check of the condition VersionsSupported: what has ended comes first, as its reason sorts so.
func versionsLast(s *scope) *conditionReason { return inOne(s.versionProblems) }
