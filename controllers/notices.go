package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// notices are of Properties that somebody has found in another state than before: they are reconciled.
type notices chan event.TypedGenericEvent[types.NamespacedName]

// mostNotices is how many may wait before whoever has another one does.
const mostNotices = 1024

// tell has Properties reconciled.
func (n notices) tell(ctx context.Context, properties ...types.NamespacedName) {
	for _, property := range properties {
		select {
		case n <- event.TypedGenericEvent[types.NamespacedName]{Object: property}:
		case <-ctx.Done():
			return
		}
	}
}
