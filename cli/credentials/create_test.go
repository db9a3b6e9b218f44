package credentials_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/credentials"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/collector/auth"
)

// outcome is how a command ended.
type outcome struct {
	code           int
	stdout, stderr string
}

func weir(ctx context.Context, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	err := credentials.Command(ctx, "weir", args[0], args[1:], &stdout, &stderr)
	code := flags.ExitCode("weir", err, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// full is where nothing can be written to.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestATokenThatCannotBePrintedIsRevoked(t *testing.T) {
	t.Parallel()
	const namespace = "unprinted"
	makeNamespace(t, namespace)
	serve(t, namespace)
	cluster.Create(t, shop(namespace))
	var stderr bytes.Buffer
	err := credentials.Command(t.Context(), "weir", "token", []string{"create", "lost", "-n", namespace, "--property", "shop",
		"--kubeconfig", kubeconfig(t, namespace, "eve", "view", "edit")}, full{}, &stderr)
	if err == nil || !strings.Contains(err.Error(), "could not be printed, and is revoked") {
		t.Errorf("got %v", err)
	}
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "lost"}, &v1alpha1.AccessToken{}); !apierrors.IsNotFound(err) {
		t.Errorf("the object is still there: %v", err)
	}
	if regexp.MustCompile(`wt_[0-9A-Za-z]{33}`).MatchString(stderr.String() + fmt.Sprint(err)) {
		t.Error("the token stands where it does not belong")
	}
}

func shop(namespace string) *v1alpha1.Property {
	p := &v1alpha1.Property{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"}}
	p.Spec.Currency = "EUR"
	return p
}

func TestATokenIsMadeInTheClusterAndPrintedOnce(t *testing.T) {
	t.Parallel()
	const namespace = "made"
	makeNamespace(t, namespace)
	serve(t, namespace)
	cluster.Create(t, shop(namespace))
	ada := kubeconfig(t, namespace, "ada", "view", "edit")
	for name, c := range map[string]struct {
		args   []string
		object client.Object
		form   string
		scope  string
		// says must stand on stderr.
		says string
	}{
		"a token":                       {[]string{"token", "create", "bi", "--property", "shop"}, &v1alpha1.AccessToken{}, `^wt_[0-9A-Za-z]{33}\n$`, "read", "AccessToken bi in namespace made: in force within seconds, until it is deleted"},
		"a token of a scope, that ends": {[]string{"token", "create", "--scope=write", "ops", "--expires", "30d", "--property", "shop"}, &v1alpha1.AccessToken{}, `^wt_[0-9A-Za-z]{33}\n$`, "write", "until " + time.Now().UTC().AddDate(0, 0, 30).Format("2006-01-02")},
		"a key":                         {[]string{"key", "create", "server", "--property=shop"}, &v1alpha1.APIKey{}, `^wk_[0-9A-Za-z]{33}\n$`, "", "APIKey server in namespace made: in force"},
	} {
		t.Run(name, func(t *testing.T) {
			got := weir(t.Context(), append(slices.Clone(c.args), "-n", namespace, "--kubeconfig", ada)...)
			if got.code != 0 || !regexp.MustCompile(c.form).MatchString(got.stdout) || !strings.Contains(got.stderr, c.says) {
				t.Fatalf("got %+v, want %s and %q", got, c.form, c.says)
			}
			secret := strings.TrimSpace(got.stdout)
			if strings.Contains(got.stderr, secret) || !auth.WellFormed(secret) {
				t.Errorf("it is printed twice, or malformed: %+v", got)
			}
			object := strings.Fields(got.stderr)[1]
			if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: object}, c.object); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(c.object)
			if err != nil {
				t.Fatal(err)
			}
			hash := auth.HashOf(secret)
			for _, want := range []string{hex.EncodeToString(hash[:]), `"createdBy":"ada"`, `"name":"shop"`} {
				if !strings.Contains(string(text), want) {
					t.Errorf("the object lacks %s: %s", want, text)
				}
			}
			if strings.Contains(string(text), secret) || c.scope != "" && !strings.Contains(string(text), `"scope":"`+c.scope+`"`) {
				t.Errorf("the object is %s", text)
			}
			pods := &corev1.Secret{}
			for _, secret := range []string{"shop-access-tokens", "shop-api-keys"} {
				if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: secret}, pods); err != nil {
					t.Fatal(err)
				}
				if text := fmt.Sprintf("%s", pods.Data); strings.Contains(text, "/"+object) && strings.Contains(text, hex.EncodeToString(hash[:])) {
					return
				}
			}
			t.Error("it is said to be in force, and the pods are not told")
		})
	}
}

func TestWhatCannotBeMadeIsSaidInWordsForPeople(t *testing.T) {
	t.Parallel()
	const namespace = "refusals"
	makeNamespace(t, namespace)
	cluster.Create(t, shop(namespace))
	taken := &v1alpha1.AccessToken{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "taken"}}
	taken.Spec.PropertyRef.Name, taken.Spec.SHA256 = "shop", strings.Repeat("0a", 32)
	cluster.Create(t, taken)
	files := map[string]string{
		"editor": kubeconfig(t, namespace, "editor", "view", "edit"), "viewer": kubeconfig(t, namespace, "viewer", "view"),
		"maker": kubeconfig(t, namespace, "maker", "edit"), "nobody": kubeconfig(t, namespace, "nobody"),
	}
	for sentence, c := range map[string]struct {
		user   string
		args   []string
		stderr string
		code   int
		prints bool
	}{
		"a name that is taken":               {"editor", []string{"token", "create", "taken", "--property", "shop"}, "there is AccessToken taken in namespace refusals already; take another name, or revoke that one first: kubectl delete accesstoken taken -n refusals", 1, false},
		"a Property that there is not":       {"editor", []string{"token", "create", "a", "--property", "blog"}, "there is no Property blog in namespace refusals", 1, false},
		"more than one's own rights":         {"editor", []string{"token", "create", "a", "--property", "shop", "--scope", "admin"}, "is not yours to make: a token of scope admin takes the right to create properties/erasures of the Property shop, which editor does not have", 1, false},
		"without the right to make them":     {"viewer", []string{"key", "create", "a", "--property", "shop"}, "ask for the right to create apikeys there", 1, false},
		"without any right":                  {"nobody", []string{"token", "create", "a", "--property", "shop"}, "is not yours to make", 1, false},
		"a name that the definition forbids": {"editor", []string{"token", "create", "a.b", "--property", "shop"}, "metadata.name must be at most 63", 1, false},
		"a Property's name that it forbids":  {"maker", []string{"token", "create", "a", "--property", "Shop"}, `spec.propertyRef.name: Invalid value: "Shop": must be the name of a Property`, 1, false},
		"a namespace that there is not":      {"editor", []string{"token", "create", "a", "--property", "shop", "--namespace", "nowhere"}, "is not yours to make", 1, false},
		"no operator, after a while":         {"editor", []string{"token", "create", "waits", "--property", "shop", "--wait", "1s"}, "made; whether it is in force is not known yet, kubectl get accesstoken waits -n refusals says so", 0, true},
		"no waiting":                         {"editor", []string{"key", "create", "at-once", "--property", "shop", "--wait", "0s"}, "kubectl get apikey at-once", 0, true},
		"whoever may make and not look":      {"maker", []string{"token", "create", "unseen", "--property", "shop"}, "not known yet", 0, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			args := slices.Concat([]string{c.args[0], c.args[1], "-n", namespace}, c.args[2:], []string{"--kubeconfig", files[c.user]})
			got := weir(t.Context(), args...)
			if got.code != c.code || !strings.Contains(got.stderr, c.stderr) || (got.stdout != "") != c.prints {
				t.Errorf("got %+v, want %d, %q, printed %t", got, c.code, c.stderr, c.prints)
			}
		})
	}
}

func TestARefusalThatOnlyTheOperatorKnowsEndsTheWaiting(t *testing.T) {
	t.Parallel()
	const namespace = "late"
	makeNamespace(t, namespace)
	cluster.Create(t, shop(namespace))
	serve(t, namespace)
	got := weir(t.Context(), "token", "create", "brief", "-n", namespace, "--property", "shop", "--expires", "1s", "--wait", "20s", "--kubeconfig", kubeconfig(t, namespace, "late", "view", "edit"))
	// Within a second it is either in force for a moment, or past already.
	if !strings.HasPrefix(got.stdout, "wt_") || got.code == 1 && !strings.Contains(got.stderr, "it is not accepted (Expired)") || got.code > 1 {
		t.Errorf("got %+v", got)
	}
}

func TestTheContextSaysWhichNamespace(t *testing.T) {
	t.Parallel()
	makeNamespace(t, "of-the-context")
	file := kubeconfig(t, "of-the-context", "contextual", "view", "edit")
	got := weir(t.Context(), "token", "create", "a", "--property", "shop", "--kubeconfig", file)
	if !strings.Contains(got.stderr, "in namespace default") {
		t.Errorf("got %+v, want the context's namespace, which is default", got)
	}
	got = weir(t.Context(), "token", "create", "a", "--property", "shop", "--kubeconfig", file, "--context", "another")
	if got.code != 1 || !strings.Contains(got.stderr, `"another"`) {
		t.Errorf("got %+v, want it to miss the context", got)
	}
	got = weir(t.Context(), "token", "create", "a", "--property", "shop", "--kubeconfig", file+"x")
	if got.code != 1 || !strings.Contains(got.stderr, "find the cluster") {
		t.Errorf("got %+v, want it to miss the file", got)
	}
}

func TestWhatIsAskedWrongly(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"help lists the flags":             {[]string{"token", "create", "-h"}, 0, "-expires TIME", ""},
		"help needs no more than the word": {[]string{"key", "--help"}, 0, "weir key create NAME", ""},
		"a key has no scope":               {[]string{"key", "create", "a", "--property", "shop", "--scope", "read"}, 2, "", "flag provided but not defined: -scope"},
		"there is one command":             {[]string{"token", "list"}, 2, "", "the command is create"},
		"which has to be given":            {[]string{"token"}, 2, "", "the command is create"},
		"a name has to be given":           {[]string{"token", "create", "--property", "shop"}, 2, "", "NAME is missing"},
		"one name":                         {[]string{"token", "create", "a", "--property", "shop", "b"}, 2, "", "a b: one name only"},
		"a Property has to be given":       {[]string{"token", "create", "a"}, 2, "", "--property: must name the Property"},
		"a scope that there is":            {[]string{"token", "create", "a", "--property", "shop", "--scope", "all"}, 2, "", `--scope: "all" must be read, write or admin`},
		"an end that is to come":           {[]string{"token", "create", "a", "--property", "shop", "--expires", "2020-01-01"}, 2, "", "--expires: 2020-01-01 is past"},
		"an end that can be read":          {[]string{"token", "create", "a", "--property", "shop", "--expires", "soon"}, 2, "", `"soon" must be a time from now as in 720h or 30d`},
		"an end that is not empty":         {[]string{"token", "create", "a", "--property", "shop", "--expires", ""}, 2, "", `"" must be a time from now`},
		"no waiting into the past":         {[]string{"token", "create", "a", "--property", "shop", "--wait", "-1s"}, 2, "", "--wait"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			got := weir(t.Context(), c.args...)
			if got.code != c.code || !strings.Contains(got.stdout, c.stdout) || !strings.Contains(got.stderr, c.stderr) {
				t.Errorf("got %+v, want %d, %q and %q", got, c.code, c.stdout, c.stderr)
			}
		})
	}
}
