package ingress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options say which Ingresses are served, and where.
type Options struct {
	// Class is the IngressClass.
	Class string
	// Address is what the Ingresses' status says that they are reached at.
	Address string
	// HTTP, HTTPS and Health are the addresses to listen on.
	HTTP, HTTPS, Health string
}

// Run serves until ctx is done, and then finishes the requests that it has begun.
func Run(ctx context.Context, config *rest.Config, options Options, logger *slog.Logger) error {
	mgr, err := ctrl.NewManager(config, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: options.Health,
	})
	if err != nil {
		return err
	}
	a := &agent{Client: mgr.GetClient(), options: options, proxy: NewProxy(logger), logger: logger, first: make(chan struct{})}
	// Every change leads to the one table.
	table := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})
	err = ctrl.NewControllerManagedBy(mgr).Named("ingress").
		Watches(&networkingv1.Ingress{}, table).
		Watches(&corev1.Service{}, table).
		Watches(&corev1.Secret{}, table).
		Watches(&discoveryv1.EndpointSlice{}, table).
		Complete(a)
	if err != nil {
		return err
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("routes", a.ready)); err != nil {
		return err
	}
	plain := &http.Server{Addr: options.HTTP, Handler: a.proxy, ReadHeaderTimeout: 10 * time.Second}
	encrypted := &http.Server{Addr: options.HTTPS, Handler: a.proxy, ReadHeaderTimeout: 10 * time.Second, TLSConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: a.proxy.Certificate,
	}}
	for _, server := range []*http.Server{plain, encrypted} {
		if err := mgr.Add(serving(server)); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}

// serving makes a server one of the manager's runnables.
func serving(server *http.Server) manager.RunnableFunc {
	return func(ctx context.Context) error {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", server.Addr)
		if err != nil {
			return err
		}
		failed := make(chan error, 1)
		go func() {
			if server.TLSConfig == nil {
				failed <- server.Serve(listener)
			} else {
				failed <- server.ServeTLS(listener, "", "")
			}
		}()
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
		}
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		return server.Shutdown(grace)
	}
}

// agent keeps the proxy's table as the Ingresses want it.
type agent struct {
	client.Client
	options Options
	proxy   *Proxy
	logger  *slog.Logger
	first   chan struct{} // closed when there is a table
	said    string
}

// ready says whether the routes are known.
func (a *agent) ready(*http.Request) error {
	select {
	case <-a.first:
		return nil
	default:
		return errors.New("the Ingresses have not been read yet")
	}
}

// Reconcile makes the table anew.
func (a *agent) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var ingresses networkingv1.IngressList
	var services corev1.ServiceList
	var endpointSlices discoveryv1.EndpointSliceList
	var secrets corev1.SecretList
	for _, list := range []client.ObjectList{&ingresses, &services, &endpointSlices, &secrets} {
		if err := a.List(ctx, list); err != nil {
			return reconcile.Result{}, err
		}
	}
	state := State{Services: services.Items, Slices: endpointSlices.Items, Secrets: secrets.Items}
	for _, one := range ingresses.Items {
		if one.Spec.IngressClassName != nil && *one.Spec.IngressClassName == a.options.Class {
			state.Ingresses = append(state.Ingresses, one)
		}
	}
	table, complaints := NewTable(state)
	a.proxy.Use(table)
	if said := fmt.Sprint(complaints); said != a.said {
		a.said = said
		for _, complaint := range complaints {
			a.logger.WarnContext(ctx, "a certificate is missing", "reason", complaint)
		}
	}
	select {
	case <-a.first:
	default:
		close(a.first)
	}
	return reconcile.Result{}, a.publish(ctx, state.Ingresses)
}

// publish writes into the Ingresses' status where they are reached.
func (a *agent) publish(ctx context.Context, ingresses []networkingv1.Ingress) error {
	for i := range ingresses {
		one := &ingresses[i]
		if at := one.Status.LoadBalancer.Ingress; len(at) == 1 && at[0].IP == a.options.Address {
			continue
		}
		before := one.DeepCopy()
		one.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: a.options.Address}}
		if err := client.IgnoreNotFound(a.Status().Patch(ctx, one, client.MergeFrom(before))); err != nil {
			return err
		}
	}
	return nil
}
