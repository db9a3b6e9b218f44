package netpol

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// repair is how often the table is written although nothing changed, in case that someone else removed it.
const repair = time.Minute

// Run enforces policies until ctx is done.
func Run(ctx context.Context, config *rest.Config) error {
	mgr, err := ctrl.NewManager(config, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	// Every change leads to the one table.
	table := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})
	err = ctrl.NewControllerManagedBy(mgr).Named("netpol").
		Watches(&networkingv1.NetworkPolicy{}, table).
		Watches(&corev1.Pod{}, table).
		Watches(&corev1.Namespace{}, table).
		Complete(&agent{Client: mgr.GetClient()})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// agent keeps the kernel's table as the policies want it.
type agent struct {
	client.Client
	loaded string    // the script that was loaded last
	at     time.Time // when
}

// Reconcile loads the table where it has changed.
func (a *agent) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var pods corev1.PodList
	var namespaces corev1.NamespaceList
	var policies networkingv1.NetworkPolicyList
	for _, list := range []client.ObjectList{&pods, &namespaces, &policies} {
		if err := a.List(ctx, list); err != nil {
			return reconcile.Result{}, err
		}
	}
	script, err := Ruleset(State{Pods: pods.Items, Namespaces: namespaces.Items, Policies: policies.Items})
	if err != nil {
		return reconcile.Result{}, err
	}
	if script == a.loaded && time.Since(a.at) < repair {
		return reconcile.Result{RequeueAfter: repair}, nil
	}
	var said bytes.Buffer
	command := exec.CommandContext(ctx, "nft", "--file", "-")
	command.Stdin, command.Stderr = strings.NewReader(script), &said
	if err := command.Run(); err != nil {
		return reconcile.Result{}, fmt.Errorf("nft: %w: %s\n%s", err, bytes.TrimSpace(said.Bytes()), script)
	}
	if script != a.loaded {
		log.FromContext(ctx).Info("rules loaded", "policies", len(policies.Items), "pods", len(pods.Items), "bytes", len(script))
	}
	a.loaded, a.at = script, time.Now()
	return reconcile.Result{RequeueAfter: repair}, nil
}
