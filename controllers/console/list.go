package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

const (
	// listTimeout is how long the API server may take to say what of all Properties somebody may see.
	listTimeout = 20 * time.Second
	// maxAsked is how many Properties are asked about at a time.
	maxAsked = 16
)

type listAnswer struct {
	Data   []listed    `json:"data"`
	Totals []total     `json:"totals"`
	Period periodShown `json:"period"`
}

// periodShown is a period that ends now, in days of UTC: each Property has days of its own.
type periodShown struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
}

// listed is a Property in the list.
type listed struct {
	Namespace string      `json:"namespace"`
	Property  string      `json:"property"`
	Ready     string      `json:"ready"`
	Reason    string      `json:"reason"`
	Message   string      `json:"message"`
	TimeZone  string      `json:"time_zone"`
	Currency  string      `json:"currency"`
	Scope     *auth.Scope `json:"scope"`
	Figures   *figures    `json:"figures"`
	// Problem says why there are no figures, where there should be some.
	Problem *string `json:"problem"`
}

// total are the sums over the Properties of a currency whose figures are there.
type total struct {
	Currency   string         `json:"currency"`
	Properties int            `json:"properties"`
	Revenue    jsontext.Value `json:"revenue"`
	Purchases  int64          `json:"purchases"`
	Pageviews  int64          `json:"pageviews"`
	AddToCarts int64          `json:"add_to_carts"`
}

// periods are the values of the parameter period, as the read API has them.
var periods = map[string]time.Duration{"24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour}

// defaultPeriod is that of a list for which nobody names one.
const defaultPeriod = "7d"

// list answers GET /api/properties: the Properties that somebody is to know of, with their figures where they may see these.
func (c *Console) list(w http.ResponseWriter, r *http.Request, s *session) {
	name := cmp.Or(r.URL.Query().Get("period"), defaultPeriod)
	length, known := periods[name]
	if !known {
		server.Invalid(w, event.Errors{{Field: "period", Message: "The selected period is invalid."}})
		return
	}
	visible, err := c.visible(r.Context(), s.user)
	if err != nil {
		c.unavailable(w, r, err)
		return
	}
	c.addFigures(r.Context(), s.user, visible, name)
	now := c.now().UTC()
	answer := listAnswer{
		Data:   make([]listed, 0, len(visible)),
		Totals: totals(visible),
		Period: periodShown{name, now.Add(-length).Format(time.DateOnly), now.Format(time.DateOnly)},
	}
	for _, one := range visible {
		answer.Data = append(answer.Data, one.listed)
	}
	server.JSON(w, http.StatusOK, answer)
}

// seen is a Property that somebody is to know of.
type seen struct {
	listed
	property *v1alpha1.Property
}

// visible returns the Properties that somebody is to know of, by namespace and name.
func (c *Console) visible(ctx context.Context, u *user) ([]*seen, error) {
	all := &v1alpha1.PropertyList{}
	if err := c.cached.List(ctx, all); err != nil {
		return nil, err
	}
	all.Items = slices.DeleteFunc(all.Items, func(property v1alpha1.Property) bool { return property.Spec.OperatorClass != c.class })
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	found := make([]*seen, len(all.Items))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(maxAsked)
	for i := range all.Items {
		asking.Go(func() error {
			property := &all.Items[i]
			scoped, visible, err := view(ctx, c.authoriser.mayWidely, u, property.Namespace, property.Name)
			if visible && err == nil {
				found[i] = &seen{listedOf(property, scoped), property}
			}
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(one *seen) bool { return one == nil })
	slices.SortFunc(found, func(a, b *seen) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Property, b.Property))
	})
	return found, nil
}

// listedOf is what a Property says of itself.
func listedOf(p *v1alpha1.Property, scoped auth.Scope) listed {
	one := listed{
		Namespace: p.Namespace, Property: p.Name, TimeZone: p.Spec.TimeZone, Currency: p.Spec.Currency,
		Ready: string(metav1.ConditionUnknown), Scope: scopeOrNull(scoped),
	}
	if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		one.Ready, one.Reason, one.Message = string(ready.Status), ready.Reason, ready.Message
	}
	return one
}
