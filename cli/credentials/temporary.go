package credentials

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/cluster"
	"github.com/weir-dev/weir/collector/auth"
)

const (
	// temporaryWait is how long at most a token that a command makes for itself is waited for.
	temporaryWait = 30 * time.Second
	// releaseWithin is how long its deletion may take. It expires by itself, too.
	releaseWithin = 10 * time.Second
)

// Temporary makes an access token for a Property that lasts so long at most, for a command that asks the read API in the caller's name, as
// `weir token create` makes one. Pods know it some seconds later. release deletes it, also where ctx has ended; nobody else has it.
func Temporary(ctx context.Context, reached *cluster.Cluster, property string, scope auth.Scope, lasts time.Duration) (token string, release func() error, err error) {
	made := kinds()[0]
	end := time.Now().Add(lasts).UTC().Truncate(time.Second)
	asked := request{
		kind: made, name: "weir-cli-" + strings.ToLower(rand.Text()[:10]), namespace: reached.Namespace, property: property,
		scope: v1alpha1.AccessTokenScope(scope), expires: &end, wait: temporaryWait,
	}
	token = made.generate()
	object := objectOf(asked, token, whoAmI(ctx, reached))
	release = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
		defer cancel()
		if err := reached.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("the token that this command has made for itself is not deleted, and expires at %s: kubectl delete accesstoken %s -n %s: %s",
				end.Format(time.RFC3339), asked.name, asked.namespace, cluster.Words(err))
		}
		return nil
	}
	if err := reached.Create(ctx, object); err != nil {
		if ctx.Err() != nil { // it may be there all the same
			_ = release()
		}
		return "", nil, explain(asked, err)
	}
	if _, err := inForce(ctx, reached, asked, object); err != nil {
		_ = release() // what is wrong with the token says more
		return "", nil, err
	}
	return token, release, nil
}
