/** The dashboard: whether somebody may see it, which Property it is of, and the view that the address names. */
import { html, render, useCallback, useEffect, useMemo, useRef, useState } from './kit/html.js';
import { ApiError, Unauthenticated, ask, useApi } from './kit/api.js';
import { Announcer, Answer, Empty, Property } from './kit/components.js';
import { times } from './kit/format.js';
import { Link, LocationProvider, SHARED, unknown, useLocation } from './kit/state.js';
import { FIRST, VIEWS } from './views.js';
import { Login } from './views/login.js';

const SCOPES = ['read', 'write', 'admin'];

/** Asks who may see the page, and shows it or the way in; the wanted address stays where it is. */
function App() {
  const [session, setSession] = useState({ state: 'asked' });
  const [said, setSaid] = useState('');
  const look = useCallback(async ({ entered = false, left = false } = {}) => {
    try {
      const { data } = await (await ask('session')).json();
      setSession({ state: 'open', entered, ...data });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const closed = error.status === 401;
      setSession((before) => ({ state: closed ? 'closed' : 'failed', error, ended: closed && !left && (before.state === 'open' || before.ended === true) }));
    }
  }, []);
  const ended = useCallback(() => { look(); }, [look]);
  useEffect(ended, [ended]);
  return html`<${LocationProvider} fallback=${FIRST}>
    <${Announcer.Provider} value=${setSaid}><${Unauthenticated.Provider} value=${ended}>
      ${session.state === 'open' ? html`<${Shell} session=${session} onLeave=${() => look({ left: true })} />`
        : session.state === 'closed' ? html`<${Login} loopback=${session.error.body?.loopback === true} ended=${session.ended}
            onEnter=${() => look({ entered: true })} />`
        : session.state === 'failed' ? html`<main class="alone"><h1>Weir</h1><${Empty} title=${session.error.message}>
            <button type="button" onClick=${ended}>Try again</button><//></main>`
        : html`<p class="start" role="status">Loading…</p>`}
    <//><//>
    <div class="hidden" role="status" aria-live="polite">${said}</div>
  <//>`;
}

/** The header, the navigation and the view. */
function Shell({ session, onLeave }) {
  const settings = useApi('settings');
  const { view, viewHref } = useLocation();
  const named = Object.hasOwn(VIEWS, view) ? VIEWS[view] : undefined;
  const heading = useRef();
  const nav = useRef();
  const first = useRef(!session.entered); // whoever opens the page is at its beginning; whoever has logged in, at the view
  const title = named?.title ?? 'No such view';
  const property = useMemo(() => settings.data && {
    ...settings.data.data, session, times: times(settings.data.data.time_zone), scope: session.scope,
    can: (scope) => SCOPES.indexOf(session.scope) >= SCOPES.indexOf(scope),
  }, [settings.data, session]);
  useEffect(() => {
    document.title = `${title} – ${session.property} – Weir`;
    if (!first.current) heading.current?.focus();
    first.current = false;
    nav.current.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }); // a narrow screen shows a few
  }, [view, title, session.property]);
  const leave = async () => {
    await ask('session', { method: 'DELETE' }).catch(() => {});
    onLeave();
  };
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); heading.current?.focus(); }}>To the content</a>
    <header class="top">
      <${Link} class="brand" href="?"><img src="static/icon.svg" alt="" width="24" height="24" /> Weir<//>
      <span class="property" title="The Property"><bdi>${session.property}</bdi></span>
      <nav aria-label="Views" ref=${nav}><ul>${Object.entries(VIEWS).map(([name, { title: text }]) => html`<li key=${name}>
        <${Link} href=${viewHref(name)} aria-current=${name === view ? 'page' : null}>${text}<//></li>`)}</ul></nav>
      <span class="who"><span class="muted" title=${`Logged in with the token ${session.token}, of scope ${session.scope}`}><bdi>${session.token}</bdi></span>
        <button type="button" class="small" onClick=${leave}>Log out</button></span>
    </header>
    <main id="main"><h1 tabindex="-1" ref=${heading}>${title}</h1>
      ${named && html`<${Misread} knows=${named.knows} />`}
      ${named ? html`<${Answer} of=${settings} height=${30}>${() => html`
          <${Property.Provider} value=${property}><${named.show} key=${view} /><//>`}<//>`
        : html`<${Empty} title="There is no such view."><${Link} href="?">To the overview<//><//>`}
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
