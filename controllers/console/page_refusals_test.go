package console

import (
	"testing"

	"github.com/chromedp/chromedp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// tampered has the page send another end than the one chosen, as a clock that is wrong would, and lost has answers get lost.
const (
	tampered = `(() => {
	const sent = fetch;
	window.fetch = (path, options) => sent(path, options.body ? {...options, body: options.body.replace(/"expires_at":"[^"]*"/, '"expires_at":"2020-01-01T00:00:00Z"')} : options);
})()`
	lost = `(() => {
	const sent = fetch;
	window.fetch = async (path, options) => {
		const answer = await sent(path, options);
		if (options.method === 'POST') throw new TypeError('the network is gone');
		return answer;
	};
})()`
)

// TestWhatIsRefusedIsSaidWhereItIsWrong holds for the answers of the console that a form can lead to.
func TestWhatIsRefusedIsSaidWhereItIsWrong(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := newProperty(t, newNamespace(t), "shop")
	name := "maker in " + p.Namespace
	grant(t, "User", name, p.Namespace, viewer...)
	create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "makers"}, Rules: rules("create,delete accesstokens,apikeys")})
	rights := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "makers"}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "makers"}}
	create(t, rights)
	s := c.seat(t, name, below(p)+"?view=access")
	if offered := s.Texts(tokensPanel + " .actions button"); len(offered) > 0 {
		t.Errorf("whose scope is none is offered %q", offered)
	}

	s.Do(chromedp.Evaluate[chromedp.Void](tampered))
	s.fillIn(keysPanel, "past")
	s.Press(keysPanel, "Make the API key")
	s.Await("the end is wrong", `document.activeElement.matches('.make select[aria-invalid=true]')`)
	s.Appears(".make .field [role=alert]", "must be a time to come")

	s.show(below(p) + "?view=access")
	s.Do(chromedp.Evaluate[chromedp.Void](lost))
	s.fillIn(keysPanel, "lost")
	s.Press(keysPanel, "Make the API key")
	s.Appears(".make > [role=alert]", "It is not known whether it was made")
	object(t, &v1alpha1.APIKey{}, p.Namespace, "lost")

	s.show(below(p) + "?view=access")
	s.fillIn(keysPanel, "late")
	if err := cluster.admin.Delete(t.Context(), rights); err != nil {
		t.Fatal(err)
	}
	c.clock.forward(2 * decisionAge)
	eventually(t, "the API server knows that the right is gone", func() bool {
		c.clock.forward(2 * decisionAge)
		allowed, err := c.authoriser.may(t.Context(), newUser(name, nil), apiKeys.right("create", p.Namespace, ""))
		return err == nil && !allowed
	})
	c.clock.forward(2 * decisionAge)
	s.Press(keysPanel, "Make the API key")
	s.Appears(".make > [role=alert]", "You may not make an API key here")
}
