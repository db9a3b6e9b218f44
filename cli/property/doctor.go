package property

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/cluster"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/cli/terminal"
)

// verdict is what a check has found.
type verdict string

const (
	fine    verdict = "ok"
	warning verdict = "warning"
	failed  verdict = "failed"
	// unseen is what the caller may not look at, or cannot from here.
	unseen verdict = "not_seen"
)

// check is one thing that was looked at.
type check struct {
	Check   string  `json:"check"`
	Verdict verdict `json:"verdict"`
	Seen    string  `json:"seen"`
	// Advice is "" where nothing has to be done.
	Advice string `json:"advice"`
}

// examination gathers checks about one Property.
type examination struct {
	*call
	reached  *cluster.Cluster
	property *v1alpha1.Property
	// standing is how the Property and its pods stand.
	standing standing
	found    []check
}

func (e *examination) add(what string, v verdict, advice, format string, values ...any) {
	e.found = append(e.found, check{what, v, fmt.Sprintf(format, values...), advice})
}

// judge adds a check that is fine, or of another verdict with advice.
func (e *examination) judge(what string, isFine bool, otherwise verdict, advice, format string, values ...any) {
	if isFine {
		otherwise, advice = fine, ""
	}
	e.add(what, otherwise, advice, format, values...)
}

// cannot adds what could not be looked at.
func (e *examination) cannot(what string, err error) { e.add(what, unseen, "", "%v", err) }

func examine(ctx context.Context, c *call) error {
	c.api.Add(c.set)
	c.addOutput()
	platform := c.set.String("platform", "", "send a made-up event to the platform of this `NAME`, in its own test mode and with the real credentials, and show its verdict; nothing else is looked at")
	code := c.set.String("test-event-code", "", "the platform's own `CODE` for test events, which Meta, TikTok and Reddit need; default: that of the Property's settings")
	if err := c.parse("Looks for what is wrong with a Property: your own rights, the operator, its objects, its hosts as this machine sees them, and Redis, ClickHouse and platforms as its pods see them. "+
		"The exit code is 1 where a check has failed.", true); err != nil {
		return err
	}
	switch {
	case *platform != "":
		return c.askPlatform(ctx, *platform, *code)
	case *code != "":
		return flags.Errors{"--test-event-code: is for a platform; name it by --platform"}
	}
	reached, err := c.connect()
	if err != nil {
		return err
	}
	property, err := reached.Property(ctx, c.name)
	if err != nil {
		return err
	}
	e := &examination{call: c, reached: reached, property: property, standing: standingOf(property)}
	for _, look := range []func(context.Context){e.rights, e.definitions, e.conditions, e.workloads, e.services, e.exposure, e.policies, e.secrets, e.insidePods, e.numbers} {
		look(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return e.report()
}

// report writes what was found, and fails where a check has.
func (e *examination) report() error {
	count := map[verdict]int{}
	for _, one := range e.found {
		count[one.Verdict]++
	}
	if e.output == outputJSON {
		if err := e.printJSON(struct {
			Data     []check `json:"data"`
			Failed   int     `json:"failed"`
			Warnings int     `json:"warnings"`
			NotSeen  int     `json:"not_seen"`
		}{e.found, count[failed], count[warning], count[unseen]}); err != nil {
			return err
		}
	} else {
		for _, one := range e.found {
			e.say("%s  %s: %s", signs(one.Verdict), terminal.Clean(one.Check), terminal.Clean(one.Seen))
			if one.Advice != "" {
				e.say("         > %s", terminal.Clean(one.Advice))
			}
		}
		e.say("\n%d ok, %d warnings, %d failed, %d not seen", count[fine], count[warning], count[failed], count[unseen])
	}
	if count[failed] > 0 {
		return fmt.Errorf("%d of %d checks have failed", count[failed], len(e.found))
	}
	return nil
}

func signs(v verdict) string {
	return map[verdict]string{fine: "ok     ", warning: "WARNING", failed: "FAILED ", unseen: "?      "}[v]
}

// rights says what the caller may not, so that what is not seen below has its reason.
func (e *examination) rights(ctx context.Context) {
	var missing []string
	namespace := e.property.Namespace
	asked := []cluster.Right{
		{Verb: "list", Resource: "pods", Namespace: namespace},
		{Verb: "list", Group: "apps", Resource: "deployments", Namespace: namespace},
		{Verb: "list", Resource: "services", Namespace: namespace},
		{Verb: "list", Group: "discovery.k8s.io", Resource: "endpointslices", Namespace: namespace},
		{Verb: "list", Group: "networking.k8s.io", Resource: "networkpolicies", Namespace: namespace},
		{Verb: "get", Group: "networking.k8s.io", Resource: "ingresses", Namespace: namespace},
		{Verb: "create", Resource: "pods", Subresource: "portforward", Namespace: namespace},
		{Verb: "create", Group: v1alpha1.GroupVersion.Group, Resource: "accesstokens", Namespace: namespace},
		{Verb: "get", Group: v1alpha1.GroupVersion.Group, Resource: "properties", Subresource: "events", Namespace: namespace, Name: e.property.Name},
	}
	for _, right := range asked {
		may, err := e.reached.May(ctx, right)
		if err != nil {
			e.cannot("your rights", err)
			return
		}
		if !may {
			missing = append(missing, right.String())
		}
	}
	seen := "all that this takes"
	if len(missing) > 0 {
		seen = "missing: " + strings.Join(missing, ", ")
	}
	e.judge("your rights", len(missing) == 0, warning, "Ask for them, or for the role edit of the namespace, to see what is not seen below.", "%s", seen)
}

// definitions looks whether the cluster knows the kinds that this command does.
func (e *examination) definitions(ctx context.Context) {
	var missing, unknown []string
	for kind, list := range map[string]func() error{
		"AccessToken": func() error { return e.reached.List(ctx, &v1alpha1.AccessTokenList{}, inNamespace(e), one()) },
		"APIKey":      func() error { return e.reached.List(ctx, &v1alpha1.APIKeyList{}, inNamespace(e), one()) },
	} {
		switch err := list(); {
		case err == nil:
		case cluster.DefinitionMissing(err):
			missing = append(missing, kind)
		default:
			unknown = append(unknown, kind)
		}
	}
	slices.Sort(missing)
	slices.Sort(unknown)
	if len(missing) == 0 && len(unknown) > 0 {
		e.add("definitions", unseen, "", "the cluster has Property; you may not look for %s", strings.Join(unknown, ", "))
		return
	}
	seen := "the cluster has Property, AccessToken and APIKey"
	if len(missing) > 0 {
		seen = "the cluster does not have " + strings.Join(missing, ", ")
	}
	e.judge("definitions", len(missing) == 0, failed, "Apply the definitions of this version of Weir: docs/operate/upgrade.md.", "%s", seen)
}

// conditions are what the operator says. Those that stand apart from Ready are warnings where they only announce something.
func (e *examination) conditions(context.Context) {
	for _, own := range e.standing.Conditions {
		v, what := fine, "condition "+own.Type
		switch {
		case own.Status == "False" && own.Type == v1alpha1.ConditionVersionsSupported && own.Reason == v1alpha1.ReasonVersionEnding:
			v = warning
		case own.Status == "False":
			v = failed
		case own.Status == "Unknown" && own.Reason == noOperator:
			v, what = failed, "operator"
		case own.Status == "Unknown":
			v = warning
		}
		seen := own.Reason
		if text := short(own); text != "" {
			seen += ": " + text
		}
		advice := own.Advice
		if v == fine {
			advice = ""
		}
		e.add(what, v, advice, "%s", seen)
	}
}

// workloads looks at the pods and at which versions they are.
func (e *examination) workloads(ctx context.Context) {
	e.standing.look(ctx, e.reached, e.property)
	for _, why := range e.standing.NotSeen {
		e.add("pods", unseen, "", "%s", why)
	}
	if len(e.standing.NotSeen) > 0 {
		return
	}
	images := map[string][]string{}
	for _, w := range e.standing.Workloads {
		seen := fmt.Sprintf("%d of %d ready", w.Ready, w.Desired)
		if text := w.trouble(); text != "" {
			seen += ": " + text
		}
		v, advice := fine, ""
		switch {
		case w.Ready == 0:
			v, advice = failed, "kubectl describe pod says more: an image that cannot be pulled, no room, a volume, memory, a readiness that the checks below explain."
		case w.Ready < w.Desired || slices.ContainsFunc(w.Pods, func(p pod) bool { return p.Restarts > 2 }):
			v, advice = warning, "kubectl describe pod says why a pod is not ready or was restarted."
		}
		e.add("pods of the "+w.Role, v, advice, "%s", seen)
		if w.Image != "" {
			images[w.Image] = append(images[w.Image], w.Role)
		}
	}
	e.versions(images)
}

// versions compares the images of the roles with each other and with this command.
func (e *examination) versions(images map[string][]string) {
	if len(images) == 0 {
		return
	}
	names := make([]string, 0, len(images))
	for name := range images {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) > 1 {
		e.add("versions", warning, "Wait until the operator has rolled the new image out; if it stays, look at WorkloadsAvailable.", "the roles have different images: %s", strings.Join(names, ", "))
		return
	}
	own, theirs := strings.TrimPrefix(e.Version, "v"), tagOf(names[0])
	released := func(version string) bool { return strings.Count(version, ".") == 2 && !strings.Contains(version, "-") }
	skewed := released(own) && released(theirs) && own[:strings.LastIndexByte(own, '.')] != theirs[:strings.LastIndexByte(theirs, '.')]
	e.judge("versions", !skewed, warning, "Use a weir of the version that the cluster has.", "pods are %s, this command is %s", names[0], e.Version)
}

// tagOf is an image's tag, "" where it has none.
func tagOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	name = name[strings.LastIndexByte(name, '/')+1:]
	_, tag, _ := strings.Cut(name, ":")
	return strings.TrimPrefix(tag, "v")
}
