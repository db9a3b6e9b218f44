package property

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/cluster"
	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/cli/terminal"
)

// standing is how a Property stands, as programs are told of it.
type standing struct {
	Namespace  string      `json:"namespace"`
	Property   string      `json:"property"`
	Ready      string      `json:"ready"`
	Reason     string      `json:"reason"`
	Message    string      `json:"message"`
	Conditions []condition `json:"conditions"`
	URLs       urls        `json:"urls"`
	Workloads  []workload  `json:"workloads"`
	// Numbers is null where the read API could not be asked.
	Numbers *numbers `json:"numbers"`
	// NotSeen says what could not be looked at, and why.
	NotSeen []string `json:"not_seen"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Advice is "" where nothing has to be done.
	Advice string `json:"advice"`
	Since  string `json:"since"`
}

type urls struct {
	Collect   string `json:"collect"`
	API       string `json:"api"`
	Dashboard string `json:"dashboard"`
}

// summary is a Property in the list of all.
type summary struct {
	Namespace string `json:"namespace"`
	Property  string `json:"property"`
	Ready     string `json:"ready"`
	Reason    string `json:"reason"`
	Platforms string `json:"platforms"`
	Collect   string `json:"collect_url"`
	Message   string `json:"message"`
}

func status(ctx context.Context, c *call) error {
	c.api.Add(c.set)
	c.addOutput()
	var everywhere, quick bool
	c.set.BoolVar(&everywhere, "all-namespaces", false, "list the Properties of all namespaces")
	c.set.BoolVar(&everywhere, "A", false, "as --all-namespaces")
	c.set.BoolVar(&quick, "no-numbers", false, "do not ask the read API")
	if err := c.parse("Says how a Property stands: its conditions with what to do, its pods, what comes in, and how far its platforms are behind. Without PROPERTY it lists those of the namespace.", false); err != nil {
		return err
	}
	if everywhere && c.name != "" {
		return flags.Errors{"--all-namespaces: lists Properties, and goes with no name; --namespace says where one is"}
	}
	reached, err := c.connect()
	if err != nil {
		return err
	}
	if c.name == "" {
		return c.list(ctx, reached, everywhere)
	}
	property, err := reached.Property(ctx, c.name)
	if err != nil {
		return err
	}
	found := standingOf(property)
	found.look(ctx, reached, property)
	if !quick {
		found.count(ctx, c)
	}
	if c.output == outputJSON {
		return c.printJSON(struct {
			Data standing `json:"data"`
		}{found})
	}
	return c.show(&found)
}

// list writes a table of Properties.
func (c *call) list(ctx context.Context, reached *cluster.Cluster, everywhere bool) error {
	var properties v1alpha1.PropertyList
	where, in := client.InNamespace(reached.Namespace), "in namespace "+reached.Namespace
	if everywhere {
		where, in = "", "in any namespace"
	}
	if err := reached.List(ctx, &properties, where); err != nil {
		return cluster.Explain("list the Properties "+in, err)
	}
	rows := make([]summary, 0, len(properties.Items))
	for i := range properties.Items {
		rows = append(rows, summaryOf(&properties.Items[i]))
	}
	if c.output == outputJSON {
		return c.printJSON(struct {
			Data []summary `json:"data"`
		}{rows})
	}
	if len(rows) == 0 {
		c.say("There is no Property %s.", in)
		return nil
	}
	table := c.table("", "NAMESPACE", "PROPERTY", "READY", "REASON", "PLATFORMS", "COLLECT URL")
	for _, row := range rows {
		table.Row(row.Namespace, row.Property, row.Ready, row.Reason, row.Platforms, cmp.Or(row.Collect, "-"))
	}
	return table.Flush()
}

func summaryOf(property *v1alpha1.Property) summary {
	ready, platforms := conditionOf(property, v1alpha1.ConditionReady), conditionOf(property, v1alpha1.ConditionPlatformsReady)
	return summary{
		property.Namespace, property.Name, ready.Status, ready.Reason, platforms.Reason, property.Status.CollectURL, ready.Message,
	}
}

// noOperator is what is said of a Property that no operator has looked at.
const noOperator = "NotSeen"

// conditionOf is one of a Property's conditions; one that speaks of an older spec is not known.
func conditionOf(property *v1alpha1.Property, kind string) condition {
	found := meta.FindStatusCondition(property.Status.Conditions, kind)
	switch {
	case found == nil:
		return condition{
			Type: kind, Status: string(metav1.ConditionUnknown), Reason: noOperator, Message: "no operator has looked at the Property yet",
			Advice: "Look whether an operator runs and serves this namespace (watchNamespaces).",
		}
	case found.ObservedGeneration != 0 && found.ObservedGeneration < property.Generation:
		return condition{
			Type: kind, Status: string(metav1.ConditionUnknown), Reason: found.Reason, Since: found.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z"),
			Message: "the operator has not looked at the latest spec yet; of the one before: " + found.Message,
			Advice:  "Wait some seconds; if it stays, look whether the operator runs.",
		}
	}
	told := condition{
		Type: found.Type, Status: string(found.Status), Reason: found.Reason, Message: found.Message,
		Since: found.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z"),
	}
	if found.Status != metav1.ConditionTrue || adviceOf(found.Reason) != "" && found.Reason != v1alpha1.ReasonNotExposed && found.Reason != v1alpha1.ReasonSharedUser {
		told.Advice = wordsFor(found.Reason)
	}
	return told
}

// standingOf is what the Property says of itself.
func standingOf(property *v1alpha1.Property) standing {
	ready := conditionOf(property, v1alpha1.ConditionReady)
	found := standing{
		Namespace: property.Namespace, Property: property.Name, Ready: ready.Status, Reason: ready.Reason, Message: ready.Message,
		URLs:       urls{property.Status.CollectURL, property.Status.APIURL, property.Status.DashboardURL},
		Conditions: []condition{}, Workloads: []workload{}, NotSeen: []string{},
	}
	for _, own := range property.Status.Conditions {
		if own.Type != v1alpha1.ConditionReady {
			found.Conditions = append(found.Conditions, conditionOf(property, own.Type))
		}
	}
	if len(property.Status.Conditions) == 0 {
		found.Conditions = append(found.Conditions, ready)
	}
	return found
}

// missed notes what could not be looked at.
func (s *standing) missed(err error) { s.NotSeen = append(s.NotSeen, err.Error()) }

// show writes the screen for people.
func (c *call) show(s *standing) error {
	c.say("%s/%s  %s", s.Namespace, s.Property, headline(s))
	c.say("")
	table := c.table("  ")
	for _, link := range [][2]string{{"events go to", s.URLs.Collect}, {"read API", s.URLs.API}, {"dashboard", s.URLs.Dashboard}} {
		if link[1] != "" {
			table.Row(link[0], link[1])
		}
	}
	for _, own := range s.Conditions {
		table.Row(mark(own.Status)+" "+own.Type, own.Reason, short(own))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, own := range s.Conditions {
		if own.Advice != "" {
			c.say("  > %s: %s", terminal.Clean(own.Reason), own.Advice)
		}
	}
	if err := c.showWorkloads(s.Workloads); err != nil {
		return err
	}
	if s.Numbers != nil {
		if err := c.showNumbers(s.Numbers); err != nil {
			return err
		}
	}
	if len(s.NotSeen) > 0 {
		c.say("\nNot seen")
		for _, why := range s.NotSeen {
			c.say("  ? %s", terminal.Clean(why))
		}
	}
	return nil
}

func headline(s *standing) string {
	switch metav1.ConditionStatus(s.Ready) {
	case metav1.ConditionTrue:
		return "is ready: events can be sent and read."
	case metav1.ConditionFalse:
		return fmt.Sprintf("is not ready (%s).", terminal.Clean(s.Reason))
	}
	return fmt.Sprintf("may be ready or not (%s).", terminal.Clean(s.Reason))
}

// mark tells conditions apart without colours.
func mark(status string) string {
	switch metav1.ConditionStatus(status) {
	case metav1.ConditionTrue:
		return "ok"
	case metav1.ConditionFalse:
		return "NO"
	}
	return "??"
}

// short leaves out messages that say no more than the condition.
func short(own condition) string {
	if own.Status == string(metav1.ConditionTrue) && own.Reason == v1alpha1.ReasonReady {
		return ""
	}
	return strings.TrimSpace(own.Message)
}
