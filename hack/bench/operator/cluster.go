package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/controllers"
)

// operatorNamespace is where config/default puts the operator.
const operatorNamespace = "weir-system"

// cluster is an API server and a Redis, and how the operator reaches them.
type cluster struct {
	client     client.WithWatch
	kubeconfig string // the operator's
	redisURL   string // the name of a file
	redis      *redisserver.Server
}

// startCluster starts etcd, kube-apiserver and Redis, and applies config/default.
func (b *bench) startCluster(ctx context.Context) error {
	environment := &envtest.Environment{BinaryAssetsDirectory: b.assets}
	// A Property has two Services: the default range is too small.
	environment.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16")
	if b.fsync {
		environment.ControlPlane.Etcd = &envtest.Etcd{}
		environment.ControlPlane.Etcd.Configure().Disable("unsafe-no-fsync")
	}
	config, err := environment.Start()
	if err != nil {
		return fmt.Errorf("start etcd and kube-apiserver: %w", err)
	}
	b.stops = append(b.stops, func() {
		if err := environment.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "bench: stop etcd and kube-apiserver:", err)
		}
	})
	config.QPS = -1
	scheme, err := controllers.NewScheme()
	if err != nil {
		return err
	}
	b.cluster = &cluster{}
	if b.cluster.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	admin := filepath.Join(b.directory, "admin.kubeconfig")
	if err := os.WriteFile(admin, environment.KubeConfig, 0o600); err != nil {
		return err
	}
	kubectl := exec.CommandContext(ctx, filepath.Join(b.assets, "kubectl"), "apply", "--server-side", "-k", "config/default")
	kubectl.Env = append(os.Environ(), "KUBECONFIG="+admin)
	if text, err := kubectl.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply -k config/default: %w: %s", err, text)
	}
	// The server takes a moment until it serves a kind that has just been defined.
	served := func() error { return b.cluster.client.List(ctx, &v1alpha1.PropertyList{}) }
	patient, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := poll(patient, 100*time.Millisecond, served); err != nil {
		return err
	}
	if err := b.writeKubeconfig(ctx, admin); err != nil {
		return err
	}
	return b.startRedis(ctx)
}

// writeKubeconfig makes the kubeconfig of the operator's ServiceAccount from the admin's.
func (b *bench) writeKubeconfig(ctx context.Context, admin string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "weir-operator"}}
	expiration := int64(24 * 60 * 60)
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &expiration}}
	if err := b.cluster.client.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("ask for a token of the operator's: %w", err)
	}
	config, err := clientcmd.LoadFromFile(admin)
	if err != nil {
		return err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	b.cluster.kubeconfig = filepath.Join(b.directory, "operator.kubeconfig")
	return clientcmd.WriteToFile(*config, b.cluster.kubeconfig)
}

func (b *bench) startRedis(ctx context.Context) error {
	binary, err := redisserver.Find(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	b.cluster.redis, err = redisserver.Start(ctx, binary, redisserver.Options{Dir: filepath.Join(b.directory, "redis"), Persist: true, Loopback: true})
	if err != nil {
		return err
	}
	b.stops = append(b.stops, func() { _ = b.cluster.redis.Kill() }) // its data goes with the directory
	b.cluster.redisURL = filepath.Join(b.directory, "redis-url")
	return os.WriteFile(b.cluster.redisURL, []byte(b.cluster.redis.URL()), 0o600)
}
