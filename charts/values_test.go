package charts_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// schema is as much of JSON Schema as the chart's needs.
type schema struct {
	Type                 any                `json:"type"`
	Ref                  string             `json:"$ref"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties any                `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	Definitions          map[string]*schema `json:"$defs"`
}

func readSchema(t *testing.T) *schema {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	root := &schema{}
	if err := json.Unmarshal(content, root); err != nil {
		t.Fatal(err)
	}
	return root
}

func readValues(t *testing.T) ([]byte, map[string]any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(content, &values); err != nil {
		t.Fatal(err)
	}
	return content, values
}

// paths lists the properties of a schema that is closed, and reports an object that takes any.
func (s *schema) paths(t *testing.T, root *schema, prefix string) []string {
	t.Helper()
	if name, found := strings.CutPrefix(s.Ref, "#/$defs/"); found {
		return root.Definitions[name].paths(t, root, prefix)
	}
	if len(s.Properties) == 0 {
		return nil
	}
	if s.AdditionalProperties != false {
		t.Errorf("%s: the schema takes names that it does not list", prefix)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if prefix == "" && name == "global" { // helm's own
			continue
		}
		list = append(list, prefix+name)
		list = append(list, s.Properties[name].paths(t, root, prefix+name+".")...)
	}
	return list
}

// openMaps are values whose names are the user's to choose: their defaults are examples.
var openMaps = []string{"operator.resources.requests", "operator.resources.limits", "console.resources.requests", "console.resources.limits", "redis.resources.requests", "redis.resources.limits", "backup.resources.requests", "backup.resources.limits", "metrics.dashboards.labels"}

func valuePaths(values map[string]any, prefix string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, prefix+name)
		if below, ok := values[name].(map[string]any); ok && !slices.Contains(openMaps, prefix+name) {
			list = append(list, valuePaths(below, prefix+name+".")...)
		}
	}
	return list
}

func TestTheSchemaListsEveryValueAndNoOthers(t *testing.T) {
	_, values := readValues(t)
	root := readSchema(t)
	if diff := cmp.Diff(valuePaths(values, ""), root.paths(t, root, "")); diff != "" {
		t.Errorf("values.yaml and the schema (-values +schema):\n%s", diff)
	}
}

func TestEveryValueHasAComment(t *testing.T) {
	content, _ := readValues(t)
	key := regexp.MustCompile(`^ *[A-Za-z_]+:`)
	before := ""
	for line := range bytes.Lines(content) {
		text := strings.TrimRight(string(line), "\n")
		if (key.MatchString(text) || strings.HasPrefix(strings.TrimSpace(text), "- ")) && !strings.HasPrefix(strings.TrimSpace(before), "# ") {
			t.Errorf("%q has no comment above it", text)
		}
		before = text
	}
}

func TestWrongValuesAreRefusedByName(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"a value that does not exist":                {[]string{"--set", "operator.replica=3"}, "replica"},
		"a group that does not exist":                {[]string{"--set", "postgres.enabled=true"}, "postgres"},
		"a number of the wrong kind":                 {[]string{"--set", "operator.replicas=two"}, "/operator/replicas"},
		"proxies that are everybody":                 {[]string{"--set", "tenants.trustedProxyCIDRs={0.0.0.0/0}"}, "/tenants/trustedProxyCIDRs/0"},
		"another word for what is absent":            {[]string{"--set", "tenants.consentWhenAbsent=Drop"}, "/tenants/consentWhenAbsent"},
		"a range that is none":                       {[]string{"--set", "tenants.egressAllowCIDRs={10.0.0.0}"}, "/tenants/egressAllowCIDRs/0"},
		"a host template that a-b/c and a/b-c share": {[]string{"--set", `tenants.hostTemplate=\{name\}-\{namespace\}.example.com`}, "/tenants/hostTemplate"},
		"a host template without namespace":          {[]string{"--set", `tenants.hostTemplate=\{name\}.example.com`}, "/tenants/hostTemplate"},
		"hosts that are no list":                     {[]string{"--set", "tenants.allowedHosts.shops=shop.example.com"}, "/tenants/allowedHosts/shops"},
		"a platform's endpoint without scheme":       {[]string{"--set", "tenants.platformEndpoints.Meta=proxy.example.com"}, "/tenants/platformEndpoints/Meta"},
		"a peer of a NetworkPolicy's that is none": {
			[]string{"--set-json", `networkPolicy.ingressFrom=[{"namespace": "edge"}]`}, "/networkPolicy/ingressFrom/0",
		},
		"an fsync policy that Weir does not document": {[]string{"--set", "redis.appendfsync=no"}, "/redis/appendfsync"},
		"a namespace that cannot be":                  {[]string{"--set", "watchNamespaces={Shops}"}, "/watchNamespaces/0"},
		"a namespace of the cluster's own":            {[]string{"--set", "watchNamespaces={kube-system}"}, "/watchNamespaces/0"},
		"a Gateway without a namespace":               {[]string{"--set", "tenants.allowedGateways={public}"}, "/tenants/allowedGateways/0"},
		"a default for pods that there is not":        {[]string{"--set", "tenants.podDefaults.volumes={a}"}, "volumes"},
		"a proxy that is asked for something else":    {[]string{"--set", "tenants.deliveryProxy.connectTo=Host"}, "/tenants/deliveryProxy/connectTo"},
		"a receiver of spans without a scheme":        {[]string{"--set", "tenants.tracing.endpoint=otel:4318"}, "/tenants/tracing/endpoint"},
		"a receiver of spans with a password":         {[]string{"--set", "tenants.tracing.endpoint=http://u:p@otel:4318"}, "/tenants/tracing/endpoint"},
		"more spans than there are":                   {[]string{"--set", "tenants.tracing.sampleRatio=2"}, "/tenants/tracing/sampleRatio"},
		"another word for OpenShift":                  {[]string{"--set", "openshift=maybe"}, "/openshift"},
		"a further flag that is none":                 {[]string{"--set", "operator.extraArgs={sync-period}"}, "/operator/extraArgs/0"},
		"a further variable without a name":           {[]string{"--set-json", `console.extraEnv=[{"value": "a"}]`}, "/console/extraEnv/0"},
		"a level of the log that there is not":        {[]string{"--set", "operator.logLevel=loud"}, "/operator/logLevel"},
		"a way to no proxy":                           {[]string{"--set", "clusterWide=true,tenants.deliveryProxy.connectTo=Name"}, "tenants.deliveryProxy: caSecret and connectTo are for a proxy"},
		"a variable without a name":                   {[]string{"--set-json", `tenants.podDefaults.env=[{"value": "a"}]`}, "/tenants/podDefaults/env/0"},
		"neither some namespaces nor all": {
			nil, "watchNamespaces: must name the namespaces whose Properties are served, as in --set watchNamespaces={shops,blogs}; or set clusterWide=true",
		},
		"some namespaces and all": {
			[]string{"--set", "watchNamespaces={shops},clusterWide=true"}, "watchNamespaces: must be empty where clusterWide is true",
		},
		"two Redises": {
			[]string{"--set", "clusterWide=true,redis.url=redis://a:b@c:6379"}, "redis.url: names your own Redis, so set redis.enabled to false",
		},
		"two URLs": {
			[]string{"--set", "clusterWide=true,redis.enabled=false,redis.url=redis://a:b@c:6379,redis.existingSecret=d"}, "redis.url: must be empty where redis.existingSecret is set",
		},
		"an authority for the bundled Redis": {
			[]string{"--set", "clusterWide=true,redis.tls.caSecret=a"}, "redis.tls: caSecret and clientCertificateSecret are for your own Redis, so set redis.enabled to false",
		},
		"an authority for no Redis": {
			[]string{"--set", "clusterWide=true,redis.enabled=false,redis.tls.caSecret=a"}, "redis.tls: caSecret and clientCertificateSecret are for your own Redis, so name it",
		},
		"an authority for no ClickHouse": {
			[]string{"--set", "clusterWide=true,clickhouse.tls.caSecret=a"}, "clickhouse.tls: caSecret and clientCertificateSecret are for a ClickHouse, so name it by clickhouse.existingSecret",
		},
		"a server's certificate for your own Redis": {
			[]string{"--set", "clusterWide=true,redis.enabled=false,redis.url=rediss://a:b@c:6379,redis.tls.existingSecret=a"}, "redis.tls.existingSecret: is for the bundled Redis",
		},
		"a console over http on another host": {[]string{"--set", "console.url=http://console.example.com"}, "/console/url"},
		"a console below a path":              {[]string{"--set", "console.url=https://example.com/console"}, "/console/url"},
		"a session without a unit":            {[]string{"--set-string", "console.sessionMaxAge=60"}, "/console/sessionMaxAge"},
		"a console without an address": {
			[]string{"--set", "clusterWide=true,console.enabled=true,console.oidc.issuerURL=https://id.example.com,console.oidc.clientID=weir"},
			"console.url: must be the address at which people reach the console",
		},
		"backups that may take a moment":  {[]string{"--set", "backup.activeDeadlineSeconds=1"}, "/backup/activeDeadlineSeconds"},
		"backups of what is no Property":  {[]string{"--set", "backup.properties={shop}"}, "/backup/properties/0"},
		"backups to a server with a path": {[]string{"--set", "backup.s3.endpoint=https://minio.example.com/backups"}, "/backup/s3/endpoint"},
		"backups to no bucket":            {[]string{"--set", "clusterWide=true,backup.enabled=true,backup.s3.existingSecret=keys"}, "backup.s3.bucket: must name"},
		"backups without keys":            {[]string{"--set", "clusterWide=true,backup.enabled=true,backup.s3.bucket=b"}, "backup.s3.existingSecret: must name"},
		"backups of no Redis":             {[]string{"--set", "clusterWide=true,redis.enabled=false,backup.enabled=true,backup.s3.bucket=b,backup.s3.existingSecret=keys"}, "backup: needs the operators Redis"},
		"a console without a provider": {
			[]string{"--set", "clusterWide=true,console.enabled=true,console.url=https://c.example.com,console.oidc.clientID=weir"}, "console.oidc.issuerURL: must be",
		},
		"a console that the provider does not know": {
			[]string{"--set", "clusterWide=true,console.enabled=true,console.url=https://c.example.com,console.oidc.issuerURL=https://id.example.com"},
			"console.oidc.clientID: must be",
		},
		"an account that nobody names": {
			[]string{"--set", "clusterWide=true,operator.serviceAccount.create=false"}, "operator.serviceAccount.name: must name the ServiceAccount",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, err := tryHelm(t, append([]string{"template", release, chart}, tt.args...)...)
			if err == nil {
				t.Fatalf("it was accepted:\n%s", output)
			}
			if !strings.Contains(strings.ReplaceAll(err.Error(), "'", ""), tt.want) {
				t.Errorf("%v; want it to say %q", err, tt.want)
			}
		})
	}
}
