// Package e2e uses Weir as its users do, in a cluster: the chart is installed, Properties are applied, events come in from outside
// and inside, platforms get them, and the read API is asked. Then things are killed, changed and upgraded under load. hack/e2e.sh
// makes the cluster and the images; the cluster holds all state, so a single step can be run again where the chart is installed.
package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// settings are what hack/e2e.sh tells.
var settings struct {
	kubeconfig  string
	chart       string
	image       string
	redisImage  string
	peerImage   string
	beforeChart string
	beforeImage string
	ingress     string
	node        string
}

// figures are what the steps measured, in order.
var figures struct {
	sync.Mutex
	rows [][3]string
}

func TestMain(m *testing.M) {
	flag.StringVar(&settings.kubeconfig, "cluster", "", "`FILE`, a kubeconfig: the cluster to use")
	flag.StringVar(&settings.chart, "chart", "../../charts/weir", "`FOLDER` of the chart")
	flag.StringVar(&settings.image, "image", "", "the `IMAGE` of Weir")
	flag.StringVar(&settings.redisImage, "redis-image", "", "the `IMAGE` of the bundled Redis; the chart's where it is empty")
	flag.StringVar(&settings.node, "node", "", "`FILE`, hack/cluster.sh, where the cluster is its node; that has an ingress and can be hurt. Needs the flags below")
	flag.StringVar(&settings.ingress, "ingress", "", "`URL` of the node's ingress")
	flag.StringVar(&settings.peerImage, "peer-image", "", "the `IMAGE` of ./peer")
	flag.StringVar(&settings.beforeChart, "before-chart", "", "`FILE`, the chart to upgrade from")
	flag.StringVar(&settings.beforeImage, "before-image", "", "the `IMAGE` to upgrade from")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	if err := checkSettings(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(2)
	}
	code := m.Run()
	printFigures()
	os.Exit(code)
}

func checkSettings() error {
	if settings.kubeconfig == "" || settings.image == "" {
		return errors.New("-cluster and -image are needed; make e2e gives them")
	}
	if settings.node != "" && (settings.ingress == "" || settings.peerImage == "" || settings.beforeChart == "" || settings.beforeImage == "") {
		return errors.New("with -node, -ingress, -peer-image, -before-chart and -before-image are needed; make e2e gives them")
	}
	return nil
}

// step is one of the suite's.
type step struct {
	name string
	run  func(*testing.T, *suite)
	// node says that it needs the node: its ingress, its images, or leave to hurt it.
	node bool
}

// TestWeir runs the steps one after the other. What follows a step that failed is not run: it would fail for the same reason.
func TestWeir(t *testing.T) {
	s := connect(t)
	begin := time.Now()
	for _, one := range steps {
		if one.node && settings.node == "" {
			continue
		}
		passed := t.Run(one.name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					s.explain(t)
				}
			})
			one.run(t, s)
		})
		if !passed {
			break
		}
	}
	s.figure(t, "all", "%.0f s", time.Since(begin).Seconds())
}

// figure notes something measured, and logs it.
func (s *suite) figure(t *testing.T, what, format string, values ...any) {
	t.Helper()
	value := fmt.Sprintf(format, values...)
	t.Logf("%s: %s", what, value)
	figures.Lock()
	defer figures.Unlock()
	figures.rows = append(figures.rows, [3]string{t.Name(), what, value})
}

func printFigures() {
	figures.Lock()
	defer figures.Unlock()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	last := ""
	for _, row := range figures.rows {
		if row[0] != last {
			fmt.Fprintf(table, "\n%s\n", row[0])
			last = row[0]
		}
		fmt.Fprintf(table, "    %s\t%s\n", row[1], row[2])
	}
	table.Flush()
}
