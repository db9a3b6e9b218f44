/** The console: all Properties that somebody may see, and the way to each one's page. */
import { html, render, useMemo, useState } from './kit/html.js';
import { Unauthenticated } from './kit/api.js';
import { Announcer, Empty, Property } from './kit/components.js';
import { times } from './kit/format.js';
import { useSession } from './kit/session.js';
import { LocationProvider } from './kit/state.js';
import { Properties } from './console/properties.js';
import { View as SignIn } from './views/signin.js';

function App() {
  const { session, look, leave } = useSession();
  const [said, setSaid] = useState('');
  const own = useMemo(() => ({ times: times() }), []); // of many Properties there is no one time zone: it is the reader's
  return html`<${LocationProvider} fallback="">
    <${Announcer.Provider} value=${setSaid}><${Unauthenticated.Provider} value=${look}><${Property.Provider} value=${own}>
      ${session.state === 'open' ? html`<${Shell} session=${session} onLeave=${leave} />`
        : session.state === 'closed' ? html`<${SignIn} session=${session} />`
        : session.state === 'failed' ? html`<main class="alone"><h1>Weir</h1><${Empty} title=${session.error.message}>
            <button type="button" onClick=${() => look()}>Try again</button><//></main>`
        : html`<p class="start" role="status">Loading…</p>`}
    <//><//><//>
    <div class="hidden" role="status" aria-live="polite">${said}</div>
  <//>`;
}

function Shell({ session, onLeave }) {
  document.title = 'Properties – Weir';
  return html`<header class="top">
      <a class="brand" href="./"><img src="static/icon.svg" alt="" width="24" height="24" /> Weir</a>
      <span class="who"><span class="muted" title=${`Signed in as ${session.user}`}><bdi>${session.user}</bdi></span>
        <button type="button" class="small" onClick=${onLeave}>Log out</button></span>
    </header>
    <main id="main"><h1>Properties</h1><${Properties} user=${session.user} /></main>`;
}

render(html`<${App} />`, document.getElementById('app'));
