/** How events get here, and what the Property has: keys, tokens, platforms, sources. To be looked at; the Property resource changes them. */
import { html, useMemo, useState } from '../kit/html.js';
import { Choice, Copy, Empty, Field, Panel, useProperty } from '../kit/components.js';
import { Table } from '../kit/table.js';
import { snippets } from './snippets.js';

export function Settings() {
  const property = useProperty();
  return html`<div class="view">
    <div class="columns"><${Facts} property=${property} /><${Send} property=${property} /></div>
    <div class="columns">
      <${Keys} keys=${property.api_keys} /><${Tokens} tokens=${property.access_tokens} />
      <${Platforms} platforms=${property.platforms} /><${Sources} sources=${property.sources} />
    </div>
  </div>`;
}

function Facts({ property }) {
  const address = (text) => (text ? html`<code>${text}</code> <${Copy} text=${text} />` : html`<span class="muted">not published</span>`);
  return html`<${Panel} title="The Property"><dl class="pairs">
    <dt>Name</dt><dd><bdi>${property.property}</bdi></dd>
    <dt>Namespace</dt><dd><bdi>${property.namespace}</bdi></dd>
    <dt>Events go to</dt><dd>${address(property.collect_url)}</dd>
    <dt>Read API</dt><dd>${address(property.api_url && `${property.api_url.replace(/\/+$/, '')}/api/v1`)}</dd>
    <dt>Currency</dt><dd>${property.currency}</dd>
    <dt>Time zone</dt><dd>${property.time_zone}</dd>
    <dt>Events are kept</dt><dd>${property.retention_days == null ? 'without a limit' : `${property.retention_days} days`}</dd>
  </dl><//>`;
}

/** The texts that send an event. A key that somebody types stays in this page's memory and is gone with it. */
function Send({ property }) {
  const keys = property.api_keys ?? [];
  const [name, setName] = useState(keys[0]?.name ?? '');
  const [typed, setTyped] = useState({});
  const [language, setLanguage] = useState('');
  const chosen = keys.find((key) => key.name === name);
  const key = typed[name] ?? chosen?.key ?? '';
  const publishable = chosen?.type === 'Publishable';
  const url = property.collect_url;
  const texts = useMemo(() => snippets({ url, key, currency: property.currency, publishable }), [url, key, property.currency, publishable]);
  const shown = texts.find((each) => each.name === language) ?? texts[0];
  return html`<${Panel} title="Send an event">
    <div class="bar top-aligned">
      ${keys.length > 1 && html`<${Field} label="With the API key">${(id) => html`<select id=${id} value=${name}
        onChange=${(event) => setName(event.currentTarget.value)}>${keys.map((each) => html`
          <option key=${each.name} value=${each.name}>${each.name} (${each.type === 'Publishable' ? 'for pages' : 'secret'})</option>`)}</select>`}<//>`}
      <${Field} label=${name ? `API key “${name}”` : 'API key'} hint="Only fills in the text below; it is neither sent nor kept.">${(id) => html`
        <input id=${id} type="password" autocomplete="off" spellcheck="false" size="28" value=${key}
          placeholder=${publishable ? 'wp_…' : 'wk_…'} onInput=${(event) => setTyped({ ...typed, [name]: event.currentTarget.value.trim() })} />`}<//>
    </div>
    <div class="panel-head"><${Choice} label="In which language" options=${texts.map((each) => [each.name, each.label])} value=${shown.name} onChange=${setLanguage} />
      <${Copy} text=${shown.text} /></div>
    <p class="note">${shown.guide}</p>
    <pre class="wrap" tabindex="0" aria-label=${`${shown.label}: what sends an event`} data-snippet=${shown.name}><code>${shown.text}</code></pre>
  <//>`;
}

function Keys({ keys = [] }) {
  return html`<${Panel} title="API keys" note="Whoever has one can send events.">
    ${keys.length ? html`<${Table} caption="API keys" rows=${keys} rowKey=${({ name }) => name} columns=${[
      { key: 'name', label: 'Name', cell: ({ name }) => html`<bdi>${name}</bdi>` },
      { key: 'type', label: 'Type' },
      { key: 'allowed_origins', label: 'Pages that may use it', value: null, cell: ({ allowed_origins: origins }) => (origins?.length ? origins.join(', ') : 'none: for servers') },
    ]} />` : html`<${Empty} title="No API key: nobody can send events." />`}<//>`;
}

function Tokens({ tokens = [] }) {
  const { times } = useProperty();
  const [now] = useState(() => new Date().toISOString());
  return html`<${Panel} title="Access tokens" note="Whoever has one can read the numbers, and log in here.">
    ${tokens.length ? html`<${Table} caption="Access tokens" rows=${tokens} rowKey=${({ name }) => name} columns=${[
      { key: 'name', label: 'Name', cell: ({ name }) => html`<bdi>${name}</bdi>` },
      { key: 'scope', label: 'Scope' },
      { key: 'expires_at', label: 'Expires', cell: ({ expires_at: at }) => (at === null ? 'never'
        : html`${times.minute(at)} ${at <= now && html`<span class="tag bad">expired</span>`}`) },
    ]} />` : html`<${Empty} title="No access token." />`}<//>`;
}

function Platforms({ platforms = [] }) {
  return html`<${Panel} title="Platforms" note="Where events are delivered to.">
    ${platforms.length ? html`<${Table} caption="Platforms" rows=${platforms} rowKey=${({ platform }) => platform} columns=${[
      { key: 'platform', label: 'Name', cell: ({ platform }) => html`<bdi>${platform}</bdi>` },
      { key: 'type', label: 'Type' },
      { key: 'mode', label: 'Mode', cell: ({ mode, suspended }) => html`${mode} ${suspended && html`<span class="tag warn">suspended</span>`}` },
    ]} />` : html`<${Empty} title="Events are delivered nowhere.">They are counted here all the same. A platform is added in the Property’s spec.platforms.<//>`}<//>`;
}

function Sources({ sources = [] }) {
  return html`<${Panel} title="Sources" note="Shops that report their orders by themselves.">
    ${sources.length ? html`<${Table} caption="Sources" rows=${sources} rowKey=${({ name }) => name} columns=${[
      { key: 'name', label: 'Name', cell: ({ name }) => html`<bdi>${name}</bdi>` }, { key: 'type', label: 'Type' },
    ]} />` : html`<${Empty} title="No shop reports by itself." />`}<//>`;
}
