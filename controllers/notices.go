package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/weir-dev/weir/api/v1alpha1"
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

// tellAll has every Property reconciled.
func (n notices) tellAll(ctx context.Context, properties client.Reader) error {
	var list v1alpha1.PropertyList
	if err := properties.List(ctx, &list); err != nil {
		return err
	}
	for i := range list.Items {
		n.tell(ctx, keyOf(&list.Items[i]))
	}
	return ctx.Err()
}
