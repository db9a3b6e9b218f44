package operator

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/controllers/resources"
)

// everyOperatorFlag gives each flag a value other than its default.
func everyOperatorFlag(redisURLFile, clickHouseURLFile string, certificates stream.TLSFiles) []string {
	return []string{
		"--clickhouse-url-file=" + clickHouseURLFile, "--clickhouse-ca-file=" + certificates.CA, "--clickhouse-client-cert-file=" + certificates.Certificate,
		"--clickhouse-client-key-file=" + certificates.Key, "--clickhouse-allow-cidr=10.112.0.1/12",
		"--console-keys-secret=weir-system/weir-console-keys",
		"--image=weir:1", "--redis-image=redis:1", "--redis-url-file=" + redisURLFile, "--redis-ca-file=" + certificates.CA,
		"--redis-client-cert-file=" + certificates.Certificate, "--redis-client-key-file=" + certificates.Key, "--redis-reload-certificates", "--watch-namespace=b", "--watch-namespace=a", "--watch-namespace=b", "--operator-class=blue",
		"--leader-elect", "--leader-elect-resource-namespace=weir-system", "--leader-elect-resource-name=weir", "--leader-elect-lease-duration=30s",
		"--leader-elect-renew-deadline=20s", "--leader-elect-retry-period=5s", "--sync-period=1h",
		"--metrics-listen=0", "--health-listen=127.0.0.1:9", "--egress-allow-cidr=10.0.0.0/8", "--redis-allow-cidr=10.96.0.1/12", "--trusted-proxy-cidr=10.244.0.0/16", "--consent-when-absent=Withhold",
		"--platform-endpoint=Meta=https://meta.example.com", "--allow-host=shops=*.shop.example.com", "--allow-host=*=example.com",
		"--allow-ingress-annotation=example.com/*",
		"--allow-ingress-class=nginx", "--allow-gateway=edge/*", "--allow-pod-annotation=example.org/*", "--allow-toleration=dedicated", "--host-template={name}.{namespace}.example.com", "--network-policies=false",
		`--ingress-from={"podSelector":{"matchLabels":{"app":"ingress"}}}`, `--metrics-from={"podSelector":{"matchLabels":{"app":"prometheus"}}}`,
		`--dns-to={"ipBlock":{"cidr":"10.0.0.10/32"}}`, `--redis-from={"podSelector":{"matchLabels":{"app":"operator"}}}`,
	}
}

func TestEveryFlagOfTheOperatorIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("rediss://weir:password@redis:6379\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	certificates := certificateFiles(t)
	clickHouse := filepath.Join(t.TempDir(), "clickhouse")
	if err := os.WriteFile(clickHouse, []byte("https://weir:password@clickhouse:8443\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	podDefaults := filepath.Join(t.TempDir(), "defaults.yaml")
	if err := os.WriteFile(podDefaults, []byte("priorityClassName: tenants\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	logLevel := filepath.Join(t.TempDir(), "level")
	if err := os.WriteFile(logLevel, []byte("debug\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	proxy := filepath.Join(t.TempDir(), "proxy")
	if err := os.WriteFile(proxy, []byte("https://weir:password@proxy\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	authorities, err := os.ReadFile(certificates.CA)
	if err != nil {
		t.Fatal(err)
	}
	args := append(everyOperatorFlag(file, clickHouse, certificates), "--pod-defaults-file="+podDefaults,
		"--delivery-proxy-url-file="+proxy, "--delivery-proxy-ca-file="+certificates.CA, "--delivery-proxy-connect-to=Name",
		"--log-level-file="+logLevel, "--any-user", "--tracing-endpoint=http://otel:4318", "--tracing-sample-ratio=0.25", `--tracing-to={"podSelector":{"matchLabels":{"app":"otel"}}}`,
		`--egress-to={"podSelector":{"matchLabels":{"app":"istiod"}}}`)
	got, err := parseFlags(args, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	pods := func(app string) []networkingv1.NetworkPolicyPeer {
		return []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
	}
	want := options{
		Options: controllers.Options{
			RedisURL: "rediss://weir:password@redis:6379", RedisTLS: certificates, Image: "weir:1", RedisImage: "redis:1", OperatorClass: "blue",
			ClickHouseURL: "https://weir:password@clickhouse:8443", ClickHouseTLS: certificates,
			ClickHouseAllowCIDRs: []netip.Prefix{netip.MustParsePrefix("10.112.0.0/12")},
			EgressAllowCIDRs:     []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
			TrustedProxyCIDRs:    []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")},
			WithholdUnsaid:       true,
			AnyUser:              true,
			DeliveryProxy:        config.DeliveryProxy{URL: "https://weir:password@proxy", CA: string(authorities), ByName: true},
			Tracing:              resources.Tracing{Endpoint: "http://otel:4318", SampleRatio: 0.25, To: pods("otel")},
			PodDefaults:          resources.PodDefaults{PriorityClassName: "tenants"},
			RedisAllowCIDRs:      []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")},
			PlatformEndpoints:    map[platforms.Type]string{platforms.TypeMeta: "https://meta.example.com"},
			Exposure: controllers.ExposureRules{
				AllowedHosts:       map[string][]string{"shops": {"*.shop.example.com"}, "*": {"example.com"}},
				AllowedAnnotations: []string{"example.com/*"}, AllowedIngressClasses: []string{"nginx"}, AllowedGateways: []string{"edge/*"},
				HostTemplate: "{name}.{namespace}.example.com",
			},
			SyncPeriod: time.Hour,
			Pods:       controllers.PodRules{AllowedAnnotations: []string{"example.org/*"}, AllowedTolerations: []string{"dedicated"}},
			Network: resources.NetworkRules{
				Disabled: true, IngressFrom: pods("ingress"), MetricsFrom: pods("prometheus"), EgressTo: pods("istiod"),
				RedisFrom: pods("operator"),
				DNSTo:     []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.10/32"}}},
			},
		},
		watchNamespaces: []string{"a", "b"}, metricsListen: "0", healthListen: "127.0.0.1:9", logLevelFile: logLevel,
		redisCertificates: redisCertificates{reload: true}, consoleKeys: types.NamespacedName{Namespace: "weir-system", Name: "weir-console-keys"},
		leaderElection: leaderElection{true, "weir-system", "weir", 30 * time.Second, 20 * time.Second, 5 * time.Second},
	}
	compare := cmp.Options{
		cmp.AllowUnexported(options{}, leaderElection{}, redisCertificates{}),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}

	// Who makes the certificates trusts no others, so this goes without three of the flags above.
	made := []string{"--image=weir:1", "--redis-url-file=" + file, "--redis-certificate-secret=weir-system/weir-redis-tls"}
	if got, err = parseFlags(made, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if want := (types.NamespacedName{Namespace: "weir-system", Name: "weir-redis-tls"}); got.redisCertificates != (redisCertificates{secret: want}) {
		t.Errorf("certificates are made as %v, want them in %s", got.redisCertificates, want)
	}

	var help bytes.Buffer
	if _, err := parseFlags([]string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("-h: got error %v", err)
	}
	given, known := map[string]bool{}, map[string]bool{}
	for _, arg := range slices.Concat(args, made) {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		given[name] = true
	}
	for _, match := range regexp.MustCompile(`(?m)^  -(\S+)`).FindAllStringSubmatch(help.String(), -1) {
		known[match[1]] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(given))); diff != "" {
		t.Errorf("flags that this test gives a value (-all +given):\n%s", diff)
	}
}

// certificateFiles are files with an authority, and a certificate and key from it.
func certificateFiles(t *testing.T) stream.TLSFiles {
	t.Helper()
	authority := redistest.NewAuthority(t)
	certificate, key := authority.Sign(t, nil)
	directory := t.TempDir()
	files := stream.TLSFiles{
		CA: filepath.Join(directory, "ca.crt"), Certificate: filepath.Join(directory, "tls.crt"), Key: filepath.Join(directory, "tls.key"),
	}
	for path, content := range map[string]string{files.CA: authority.PEM, files.Certificate: certificate, files.Key: key} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestAWrongFlagOfTheOperatorIsNamed(t *testing.T) {
	directory, certificates := t.TempDir(), certificateFiles(t)
	plain, secure := filepath.Join(directory, "plain"), filepath.Join(directory, "secure")
	for path, address := range map[string]string{plain: "redis://u:hunter2@redis", secure: "rediss://u:hunter2@redis"} {
		if err := os.WriteFile(path, []byte(address), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	noURL := filepath.Join(directory, "no-url")
	if err := os.WriteFile(noURL, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEIR_IMAGE", "")
	tests := map[string]struct {
		args []string
		want []string
	}{
		"no image":                                        {nil, []string{"--image"}},
		"a flag that there is not":                        {[]string{"--image=x", "--replicas=2"}, []string{"replicas", `"weir-operator -h"`}},
		"an argument without a flag":                      {[]string{"--image=x", "start"}, []string{`"start" is no flag`}},
		"a file that there is not":                        {[]string{"--image=x", "--redis-url-file=/nowhere"}, []string{"--redis-url-file", "/nowhere"}},
		"a file without a URL, which is not shown":        {[]string{"--image=x", "--redis-url-file=" + noURL}, []string{"--redis-url-file", "redis://"}},
		"a range for Redis that is none":                  {[]string{"--image=x", "--redis-allow-cidr=any"}, []string{"--redis-allow-cidr", "any"}},
		"an authority without a Redis":                    {[]string{"--image=x", "--redis-ca-file=" + certificates.CA}, []string{"--redis-ca-file", "--redis-url-file"}},
		"an authority that there is not":                  {[]string{"--image=x", "--redis-url-file=" + secure, "--redis-ca-file=/nowhere"}, []string{"--redis-ca-file", "/nowhere"}},
		"an authority that is none":                       {[]string{"--image=x", "--redis-url-file=" + secure, "--redis-ca-file=" + secure}, []string{"--redis-ca-file", "in PEM"}},
		"an authority for a Redis without TLS":            {[]string{"--image=x", "--redis-url-file=" + plain, "--redis-ca-file=" + certificates.CA}, []string{"--redis-ca-file", "rediss://"}},
		"a client certificate without its key":            {[]string{"--image=x", "--redis-url-file=" + secure, "--redis-client-cert-file=" + certificates.Certificate}, []string{"--redis-client-cert-file and --redis-client-key-file"}},
		"a client certificate as its own key":             {[]string{"--image=x", "--redis-url-file=" + secure, "--redis-client-cert-file=" + certificates.Certificate, "--redis-client-key-file=" + certificates.Certificate}, []string{"--redis-client-cert-file: ", "private key"}},
		"a Secret for certificates without its namespace": {[]string{"--image=x", "--redis-url-file=" + secure, "--redis-certificate-secret=weir-redis-tls"}, []string{"-redis-certificate-secret", "NAMESPACE/NAME"}},
		"certificates for no Redis":                       {[]string{"--image=x", "--redis-certificate-secret=a/b"}, []string{"--redis-certificate-secret", "rediss://"}},
		"certificates for a Redis without TLS":            {[]string{"--image=x", "--redis-url-file=" + plain, "--redis-certificate-secret=a/b"}, []string{"--redis-certificate-secret", "rediss://"}},
		"certificates to read again, without TLS":         {[]string{"--image=x", "--redis-url-file=" + plain, "--redis-reload-certificates"}, []string{"--redis-reload-certificates", "rediss://"}},
		"certificates that both make":                     {[]string{"--image=x", "--redis-url-file=" + secure, "--redis-certificate-secret=a/b", "--redis-ca-file=" + certificates.CA}, []string{"--redis-certificate-secret: goes without --redis-ca-file"}},
		"certificates to read again twice":                {[]string{"--image=x", "--redis-url-file=" + secure, "--redis-certificate-secret=a/b", "--redis-reload-certificates"}, []string{"--redis-reload-certificates: goes without"}},
		"a range that is none":                            {[]string{"--image=x", "--egress-allow-cidr=10.0.0.0"}, []string{"--egress-allow-cidr", "10.0.0.0"}},
		"a proxy that is no range":                        {[]string{"--image=x", "--trusted-proxy-cidr=ingress-nginx"}, []string{"--trusted-proxy-cidr", "ingress-nginx"}},
		"another word for what is absent":                 {[]string{"--image=x", "--consent-when-absent=Drop"}, []string{"--consent-when-absent", "must be Send or Withhold"}},
		"proxies that are everybody":                      {[]string{"--image=x", "--trusted-proxy-cidr=0.0.0.0/0"}, []string{"--trusted-proxy-cidr", "would believe anybody"}},
		"an endpoint of no platform":                      {[]string{"--image=x", "--platform-endpoint=Nobody=https://x.example.com"}, []string{"--platform-endpoint", "Nobody"}},
		"a proxy that is none, which is not shown":        {[]string{"--image=x", "--delivery-proxy-url-file=" + noURL}, []string{"--delivery-proxy-url-file", "http://user:password@proxy:3128"}},
		"a proxy of Redis's, which is not shown":          {[]string{"--image=x", "--delivery-proxy-url-file=" + plain}, []string{"--delivery-proxy-url-file", "must be a URL"}},
		"a proxy that there is not":                       {[]string{"--image=x", "--delivery-proxy-url-file=/nowhere"}, []string{"--delivery-proxy-url-file", "/nowhere"}},
		"an authority of no proxy's":                      {[]string{"--image=x", "--delivery-proxy-ca-file=" + certificates.CA}, []string{"--delivery-proxy-ca-file and", "--delivery-proxy-url-file alone"}},
		"a receiver of spans that is no URL":              {[]string{"--image=x", "--tracing-endpoint=otel:4318"}, []string{"--tracing-endpoint", "http or https URL"}},
		"a receiver of spans with a password":             {[]string{"--image=x", "--tracing-endpoint=http://u:hunter2@otel:4318"}, []string{"--tracing-endpoint", "without user"}},
		"a receiver of spans at no port":                  {[]string{"--image=x", "--tracing-endpoint=http://otel:99999"}, []string{"--tracing-endpoint"}},
		"more spans than there are":                       {[]string{"--image=x", "--tracing-endpoint=http://otel", "--tracing-sample-ratio=2"}, []string{"--tracing-sample-ratio", "from 0 to 1"}},
		"a share of no spans":                             {[]string{"--image=x", "--tracing-sample-ratio=0.5"}, []string{"--tracing-endpoint alone"}},
		"a level of the log that there is not":            {[]string{"--image=x", "--log-level-file=" + noURL}, []string{"--log-level-file", "debug, info, warn or error"}},
		"another thing to connect to":                     {[]string{"--image=x", "--delivery-proxy-connect-to=Host"}, []string{"--delivery-proxy-connect-to", "Address or Name"}},
		"a host without a namespace":                      {[]string{"--image=x", "--allow-host=example.com"}, []string{"--allow-host", "NAMESPACE=HOST"}},
		"a host template for one Property alone":          {[]string{"--image=x", "--host-template=collect.example.com"}, []string{"--host-template", "{name}"}},
		"a host template for one namespace alone":         {[]string{"--image=x", "--host-template={name}.example.com"}, []string{"--host-template", "{namespace}"}},
		"a host template for one name alone":              {[]string{"--image=x", "--host-template={namespace}.example.com"}, []string{"--host-template", "{name}"}},
		"a host template that a-b/c and a/b-c share":      {[]string{"--image=x", "--host-template={name}-{namespace}.example.com"}, []string{"--host-template", "dot between"}},
		"a host template that runs them together":         {[]string{"--image=x", "--host-template={namespace}{name}.example.com"}, []string{"--host-template", "dot between"}},
		"a host template that ends in a variable":         {[]string{"--image=x", "--host-template={name}.{namespace}"}, []string{"--host-template", "must be a host"}},
		"a host template that is a URL":                   {[]string{"--image=x", "--host-template=https://{name}.example.com"}, []string{"--host-template", "https://"}},
		"a peer that is none":                             {[]string{"--image=x", "--ingress-from=everybody"}, []string{"--ingress-from", "everybody"}},
		"an address without a port":                       {[]string{"--image=x", "--metrics-listen=localhost"}, []string{"--metrics-listen", "HOST:PORT"}},
		"a health port that is switched off":              {[]string{"--image=x", "--health-listen=0"}, []string{"--health-listen", "HOST:PORT"}},
		"a period that would never let it rest":           {[]string{"--image=x", "--sync-period=1ms"}, []string{"--sync-period", "1s"}},
		"a duration without a unit":                       {[]string{"--image=x", "--sync-period=60"}, []string{"sync-period", "60"}},
		"a lease that ends before it can be renewed":      {[]string{"--image=x", "--leader-elect-lease-duration=5s"}, []string{"--leader-elect-lease-duration", "--leader-elect-renew-deadline, 10s"}},
		"renewing that is tried too rarely":               {[]string{"--image=x", "--leader-elect-retry-period=9s"}, []string{"--leader-elect-renew-deadline", "--leader-elect-retry-period, 9s"}},
		"renewing without a pause":                        {[]string{"--image=x", "--leader-elect-retry-period=0s"}, []string{"--leader-elect-retry-period"}},
		"several at once, each on a line of its own":      {[]string{"--allow-host=x", "--egress-allow-cidr=x"}, []string{"weir-operator: --image", "\nweir-operator: --egress-allow-cidr", "\nweir-operator: --allow-host"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out, words bytes.Buffer
			if code := Run(t.Context(), "v0.0.0", test.args, &out, &words); code != 2 {
				t.Errorf("the exit code is %d, want 2", code)
			}
			for _, want := range test.want {
				if !strings.Contains(words.String(), want) {
					t.Errorf("the message lacks %q: %s", want, words.String())
				}
			}
			if strings.Contains(words.String(), "hunter2") {
				t.Errorf("the message shows what a file holds: %s", words.String())
			}
		})
	}
}

// TestAnOperatorOfAClassAgreesWithItsOwn has operators of different classes in one namespace: of each class one works.
func TestAnOperatorOfAClassAgreesWithItsOwn(t *testing.T) {
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"without a class":              {nil, "weir-operator.weir.dev"},
		"with one":                     {[]string{"--operator-class=blue"}, "blue.weir-operator.weir.dev"},
		"with one and a Lease of ours": {[]string{"--operator-class=blue", "--leader-elect-resource-name=weir"}, "weir"},
	} {
		o, err := parseFlags(append([]string{"--image=weir:test"}, test.args...), &bytes.Buffer{})
		if err != nil || o.leaderElection.name != test.want {
			t.Errorf("%s: the Lease is %s, want %s, error %v", sentence, o.leaderElection.name, test.want, err)
		}
	}
	if _, err := parseFlags([]string{"--image=weir:test", "--operator-class=Blue"}, &bytes.Buffer{}); err == nil {
		t.Error("a class that no Property can have is taken")
	}
}
