package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// LeaseName is the Lease of a namespace whose holder serves its Properties. That of a class begins with the class and a dot.
	LeaseName = "operator.weir.dev"
	// clusterNamespace has the Lease of whoever serves all namespaces. No tenant may write there.
	clusterNamespace = "kube-system"
	// LeaseDuration is how long a release that renews no longer keeps others from its namespaces.
	LeaseDuration = 90 * time.Second
	// longestLease bounds what a Lease that somebody else wrote may ask for.
	longestLease = 10 * time.Minute
)

// NamespaceLeases see to it that one release serves a namespace, so that two never undo each other's work. The holder of
// a Lease is a release rather than a process: its replicas, and the versions before and after an upgrade, share it. Who
// was there first keeps it; who comes second serves nothing there, and is not ready, until the first renews no longer.
type NamespaceLeases struct {
	// Client reads and writes past the cache.
	Client client.Client
	// Holder names the release, as NAMESPACE/NAME of its leader election.
	Holder string
	// Class is whose Properties are served: releases of different classes do not meet. "" for those without one.
	Class string
	// Namespaces are those that are served; none for all.
	Namespaces []string
	// GiveBack has the Leases be given back when [NamespaceLeases.Start] ends: for a process that is a release of its own.
	GiveBack bool
	// Duration is [LeaseDuration] but in tests.
	Duration time.Duration
	Now      func() time.Time
	Logger   *slog.Logger

	mu    sync.Mutex
	known map[string]*leaseView
}

// leaseView is what is known of a namespace's Lease.
type leaseView struct {
	mu sync.Mutex
	// until is when our holding it has to be looked at again; zero where it is not ours.
	until time.Time
	// rival holds it; version is what was seen of it, and since when. Only this machine's clock counts.
	rival, version string
	since          time.Time
}

// name is the Lease's.
func (l *NamespaceLeases) name() string {
	if l.Class == "" {
		return LeaseName
	}
	return l.Class + "." + LeaseName
}

// Rival returns the other release that serves a namespace, "" where this one does.
func (l *NamespaceLeases) Rival(ctx context.Context, namespace string) (string, error) {
	if len(l.Namespaces) == 0 {
		if rival, err := l.hold(ctx, clusterNamespace); rival != "" || err != nil {
			return rival, err
		}
	}
	return l.hold(ctx, namespace)
}

// Start takes the Leases that are known beforehand and renews all until ctx ends. Where other processes of the release go
// on with them it gives none back.
func (l *NamespaceLeases) Start(ctx context.Context) error {
	ticker := time.NewTicker(l.Duration / 3)
	defer ticker.Stop()
	for {
		l.renew(ctx)
		select {
		case <-ctx.Done():
			if l.GiveBack {
				l.giveBack(context.WithoutCancel(ctx))
			}
			return nil
		case <-ticker.C:
		}
	}
}

// giveBack takes the holder's name out of the Leases that are ours. What fails runs out.
func (l *NamespaceLeases) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for namespace := range l.views() {
		lease := &coordinationv1.Lease{}
		err := l.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: l.name()}, lease)
		if err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") == l.Holder {
			lease.Spec.HolderIdentity = nil
			err = l.Client.Update(ctx, lease)
		}
		if client.IgnoreNotFound(err) != nil {
			l.Logger.WarnContext(ctx, "give back the lease of a namespace", "namespace", namespace, "error", err)
		}
	}
}

func (l *NamespaceLeases) renew(ctx context.Context) {
	for namespace, view := range l.views() {
		view.mu.Lock()
		err := l.look(ctx, namespace, view)
		view.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			l.Logger.WarnContext(ctx, "renew the lease of a namespace", "namespace", namespace, "error", err)
		}
	}
}

// Check is a readiness check: it fails while another release serves what this one is told to serve.
func (l *NamespaceLeases) Check(*http.Request) error {
	for namespace, view := range l.views() {
		if len(l.Namespaces) == 0 && namespace != clusterNamespace {
			continue // whoever serves a namespace of its own is left alone
		}
		view.mu.Lock()
		rival := view.rival
		view.mu.Unlock()
		if rival != "" {
			return fmt.Errorf("%s: uninstall one of the two, or give them namespaces of their own with --watch-namespace, or Properties with --operator-class", servedBy(l.Namespaces, namespace, rival))
		}
	}
	return nil
}

func servedBy(namespaces []string, namespace, rival string) string {
	if len(namespaces) == 0 && namespace == clusterNamespace {
		return "all namespaces are served by the release " + rival + " already"
	}
	return "namespace " + namespace + " is served by the release " + rival + " already"
}

// views returns what is known by namespace, those that are known beforehand among them.
func (l *NamespaceLeases) views() map[string]*leaseView {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.Namespaces
	if len(first) == 0 {
		first = []string{clusterNamespace}
	}
	if l.known == nil {
		l.known = map[string]*leaseView{}
	}
	for _, namespace := range first {
		if l.known[namespace] == nil {
			l.known[namespace] = &leaseView{}
		}
	}
	return maps.Clone(l.known)
}

// hold asks the server only where the answer of before has grown old.
func (l *NamespaceLeases) hold(ctx context.Context, namespace string) (string, error) {
	view := l.views()[namespace]
	if view == nil {
		view = &leaseView{}
		l.mu.Lock()
		if already := l.known[namespace]; already != nil {
			view = already
		}
		l.known[namespace] = view
		l.mu.Unlock()
	}
	view.mu.Lock()
	defer view.mu.Unlock()
	if l.Now().Before(view.until) {
		return "", nil
	}
	err := l.look(ctx, namespace, view)
	return view.rival, err
}

// look reads a namespace's Lease and takes or renews it where it is free or ours.
func (l *NamespaceLeases) look(ctx context.Context, namespace string, view *leaseView) error {
	asked := l.Now()
	lease := &coordinationv1.Lease{}
	err := l.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: l.name()}, lease)
	if apierrors.IsNotFound(err) {
		lease, err = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: l.name()}}, nil
	}
	if err != nil {
		return err
	}
	rival := view.judge(lease, l.Holder, asked)
	if rival != "" {
		if rival != view.rival {
			l.Logger.ErrorContext(ctx, "this release leaves alone what another serves", "reason", servedBy(l.Namespaces, namespace, rival), "lease", namespace+"/"+l.name())
		}
		view.rival, view.until = rival, time.Time{}
		return nil
	}
	if ptr.Deref(lease.Spec.HolderIdentity, "") != l.Holder {
		lease.Spec.HolderIdentity, lease.Spec.AcquireTime = &l.Holder, &metav1.MicroTime{Time: asked}
		lease.Spec.LeaseTransitions = new(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: asked}
	lease.Spec.LeaseDurationSeconds = new(int32(max(1, l.Duration/time.Second)))
	// An update makes what is not there, and it is by name, to which a role can be bound. Without the version that was read
	// it changes nothing.
	err = l.Client.Update(ctx, lease)
	switch {
	case apierrors.IsNotFound(err): // the namespace itself is gone
		l.forget(namespace)
		return nil
	case err != nil:
		return err
	}
	view.rival, view.until = "", asked.Add(l.Duration*2/3)
	return nil
}

// judge returns who else holds a Lease, "" where it is free, ours or has not been renewed for as long as it says. How
// long that is goes by when this process has seen it change: the clocks of others are not relied on.
func (v *leaseView) judge(lease *coordinationv1.Lease, holder string, now time.Time) string {
	other := ptr.Deref(lease.Spec.HolderIdentity, "")
	if other == "" || other == holder {
		return ""
	}
	if v.version != lease.ResourceVersion {
		v.version, v.since = lease.ResourceVersion, now
	}
	lasts := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	if now.Sub(v.since) >= min(max(lasts, time.Second), longestLease) {
		return ""
	}
	return other
}

func (l *NamespaceLeases) forget(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, namespace)
}
