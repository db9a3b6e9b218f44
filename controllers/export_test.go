package controllers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/controllers/resources"
)

// Index makes the lookups of a reconciler that a test drives by hand, those of the optional kinds too.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := index(ctx, indexer, ExposureRules{}); err != nil {
		return err
	}
	for _, kind := range resources.OptionalKinds() {
		if err := indexer.IndexField(ctx, partial(kind), indexOwner, ownerOf); err != nil {
			return err
		}
	}
	return nil
}

// RedisOverlap is for how long a role's old password holds beside a new one.
const RedisOverlap = redisOverlap
