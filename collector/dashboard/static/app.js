/** The dashboard: whether somebody may see it, which Property it is of, and the view that the address names. */
import { html, render, useEffect, useMemo, useRef, useState } from './kit/html.js';
import { Unauthenticated, useApi } from './kit/api.js';
import { Announcer, Answer, Empty, Property, later } from './kit/components.js';
import { times } from './kit/format.js';
import { useSession } from './kit/session.js';
import { Link, LocationProvider, SHARED, unknown, useLocation } from './kit/state.js';
import { FIRST, VIEWS } from './views.js';
import { Login } from './views/login.js';

/** The console's way in. */
const SignIn = later(() => import('./views/signin.js'));

const SCOPES = ['read', 'write', 'admin'];

/** The console's list of all Properties, from the page of one. */
const ALL = '../../../../';

/** Asks who may see the page, and shows it or the way in; the wanted address stays where it is. */
function App() {
  const { session, look, leave } = useSession();
  const [said, setSaid] = useState('');
  return html`<${LocationProvider} fallback=${FIRST}>
    <${Announcer.Provider} value=${setSaid}><${Unauthenticated.Provider} value=${look}>
      ${session.state === 'open' ? html`<${Shell} session=${session} onLeave=${leave} />`
        : session.state === 'closed' ? (session.error.body?.sign_in ? html`<${SignIn} session=${session} />`
          : html`<${Login} loopback=${session.error.body?.loopback === true} ended=${session.ended} onEnter=${() => look({ entered: true })} />`)
        : session.state === 'failed' ? html`<main class="alone"><h1>Weir</h1><${Empty} title=${session.error.message}>
            <button type="button" onClick=${() => look()}>Try again</button>
            ${location.pathname.startsWith('/namespaces/') && html` <a href=${ALL}>All Properties</a>`}<//></main>`
        : html`<p class="start" role="status">Loading…</p>`}
    <//><//>
    <div class="hidden" role="status" aria-live="polite">${said}</div>
  <//>`;
}

/** A Property's time zone and its times; the reader's, where the browser does not know such a zone. */
function clock(zone) {
  try {
    return { time_zone: zone, times: times(zone) };
  } catch {
    return { time_zone: undefined, times: times() };
  }
}

/** The header, the navigation and the view. */
function Shell({ session, onLeave }) {
  const { console: amongAll, scope } = session;
  const settings = useApi(scope ? 'settings' : null);
  const { view, viewHref } = useLocation();
  const shown = Object.entries(VIEWS).filter(([, each]) => amongAll || !each.console);
  const named = shown.find(([name]) => name === view)?.[1];
  const heading = useRef();
  const nav = useRef();
  const first = useRef(!session.entered); // whoever opens the page is at its beginning; whoever has logged in, at the view
  const title = named?.title ?? 'No such view';
  const known = settings.data?.data;
  const property = useMemo(() => ({
    ...known, property: session.property, namespace: session.namespace ?? known?.namespace, session, ...clock(known?.time_zone), scope,
    can: (needed) => SCOPES.indexOf(scope) >= SCOPES.indexOf(needed),
  }), [known, session, scope]);
  useEffect(() => {
    document.title = `${title} – ${session.property} – Weir`;
    if (!first.current) heading.current?.focus();
    first.current = false;
    nav.current.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }); // a narrow screen shows a few
  }, [view, title, session.property]);
  const content = () => html`<${Property.Provider} value=${property}><${named.show} key=${view} /><//>`;
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); heading.current?.focus(); }}>To the content</a>
    <header class="top">
      ${amongAll ? html`<a class="brand" href=${ALL}><img src="static/icon.svg" alt="" width="24" height="24" /> All Properties</a>`
        : html`<${Link} class="brand" href="?"><img src="static/icon.svg" alt="" width="24" height="24" /> Weir<//>`}
      <span class="property" title="The Property">${amongAll && html`<bdi class="muted">${session.namespace}</bdi> / `}<bdi>${session.property}</bdi></span>
      <nav aria-label="Views" ref=${nav}><ul>${shown.map(([name, { title: text }]) => html`<li key=${name}>
        <${Link} href=${viewHref(name)} aria-current=${name === view ? 'page' : null}>${text}<//></li>`)}</ul></nav>
      <span class="who"><span class="muted" title=${`${amongAll ? 'Signed in as' : 'Logged in with the token'} ${session.token}, of scope ${scope}`}><bdi>${session.token}</bdi></span>
        <button type="button" class="small" onClick=${onLeave}>Log out</button></span>
    </header>
    <main id="main"><h1 tabindex="-1" ref=${heading}>${title}</h1>
      ${named && html`<${Misread} knows=${named.knows} />`}
      ${!named ? html`<${Empty} title="There is no such view."><${Link} href="?">To the overview<//><//>`
        : named.console ? content()
        : !scope ? html`<${Empty} title="You may not read this Property’s numbers.">Ask for the role edit in its namespace, or another that
            may get properties/events.<//>`
        : html`<${Answer} of=${settings} height=${30}>${content}<//>`}
    </main>`;
}

/** What of the address the view makes nothing of, which would be passed over in silence; and the way to leave it out. */
function Misread({ knows }) {
  const { view, views, params, href } = useLocation();
  const strange = unknown(params, knows);
  const known = [...SHARED, ...knows].join(', ');
  return html`${views.length > 1 && html`<p class="notice warn" role="status">The address names ${views.length} views: ${views.join(', ')}.
      The first is shown. <${Link} href=${href({})}>Leave the others out<//></p>`}
    ${strange.length > 0 && html`<p class="notice warn" role="status">The address has ${strange.length > 1 ? 'parameters' : 'a parameter'} that this view
      does not know: <bdi>${strange.join(', ')}</bdi>. Known are view, ${known}.
      ${' '}<${Link} href=${href(Object.fromEntries(strange.map((name) => [name, null])))}>Leave ${strange.length > 1 ? 'them' : 'it'} out<//></p>`}`;
}

render(html`<${App} />`, document.getElementById('app'));
