// Renders openapi.json. All text is set as text, never as markup.
'use strict';

// el makes an element with attributes and children; strings become text.
function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// prose turns `code` in a description into code.
function prose(text, name = 'p', attributes = {}) {
  const parts = String(text).split('`');
  return el(name, attributes, ...parts.map((part, i) => (i % 2 ? el('code', {}, part) : part)));
}

function start(api) {
  const resolve = (value) => (value && value.$ref
    ? { ...value.$ref.slice(2).split('/').reduce((at, key) => at[key], api), ...value, $ref: undefined }
    : value);
  const nameOf = (value) => (value && value.$ref ? value.$ref.split('/').pop() : '');

  // typeOf says in a few words what a schema allows.
  function typeOf(schema) {
    const s = resolve(schema);
    if (s.const !== undefined) return JSON.stringify(s.const);
    if (s.enum) return s.enum.map((value) => JSON.stringify(value)).join(' | ');
    if (s.type === 'array') return 'list of ' + typeOf(s.items);
    if (nameOf(schema)) return nameOf(schema);
    const types = [].concat(s.type || 'any');
    return types.join(' or ') + (s.format ? ' (' + s.format + ')' : '');
  }

  // members lists what an object holds; deeper objects unfold.
  function members(schema) {
    let s = resolve(schema);
    while (s.type === 'array') s = resolve(s.items);
    if (!s.properties) return null;
    const required = new Set(s.required || []);
    return el('div', { class: 'members' }, ...Object.entries(s.properties).map(([name, member]) => {
      const line = [el('code', {}, name), ' ', el('span', { class: 'muted' }, typeOf(member) + (required.has(name) ? '' : ', optional'))];
      const about = resolve(member).description;
      const below = members(member);
      const content = [...line, about ? prose(about, 'div', { class: 'muted' }) : null];
      return below ? el('details', {}, el('summary', {}, ...line), about ? prose(about) : null, below) : el('div', {}, ...content);
    }));
  }

  function parameters(list) {
    const rows = list.map(resolve).map((p) => {
      const bounds = [typeOf(p.schema)];
      if (p.required) bounds.push('required');
      if (p.schema.default !== undefined) bounds.push('default ' + p.schema.default);
      return el('tr', {}, el('td', {}, el('code', {}, p.name)), el('td', {}, prose(p.description || ''),
        el('p', { class: 'muted' }, bounds.join('; '))));
    });
    return el('table', {}, el('thead', {}, el('tr', {}, el('th', {}, 'Parameter'), el('th', {}, 'Meaning'))), el('tbody', {}, ...rows));
  }

  function exampleOf(content, indent) {
    if (content.example !== undefined) {
      return typeof content.example === 'string' ? content.example : JSON.stringify(content.example, null, indent);
    }
    const examples = resolve(content.schema).examples;
    return examples ? JSON.stringify(examples[0], null, indent) : '';
  }

  function answer(status, reference) {
    const response = resolve(reference);
    const parts = Object.entries(response.content || {}).flatMap(([type, content]) => {
      const example = exampleOf(content, type.includes('ndjson') ? 0 : 2);
      return [el('h3', {}, type), members(content.schema), example ? el('pre', {}, el('code', {}, example)) : null];
    });
    const headers = Object.entries(response.headers || {}).map(([name, header]) =>
      el('div', {}, el('code', {}, name), ' ', prose(resolve(header).description, 'span', { class: 'muted' })));
    const attributes = status === '200' ? { open: '' } : {};
    return el('details', attributes, el('summary', {}, el('strong', {}, status), ' ', prose(response.description, 'span')), ...headers, ...parts);
  }

  // body describes what is sent.
  function body(operation) {
    const content = operation.requestBody?.content['application/json'];
    return content ? [el('h3', {}, 'Body: application/json'), members(content.schema)] : [];
  }

  // curl is a request to paste, with the parameters that have to be there.
  function curl(path, operation) {
    const query = (operation.parameters || []).map(resolve).filter((p) => p.in === 'query' && p.required)
      .flatMap((p) => [].concat(p.example).map((value) => p.name + '=' + encodeURIComponent(value))).join('&');
    const target = location.origin + api.servers[0].url + path.replace('{property}', 'shop') + (query ? '?' + query : '');
    const content = operation.requestBody?.content['application/json'];
    const sent = content ? " -H 'Content-Type: application/json' -d '" + JSON.stringify(resolve(content.schema).examples[0]) + "'" : '';
    const token = (operation.security || api.security).length ? " -H 'Authorization: Bearer wt_…'" : '';
    return el('pre', {}, el('code', {}, 'curl -g' + token + sent + " '" + target + "'"));
  }

  const main = document.getElementById('main');
  const contents = document.getElementById('contents');
  main.replaceChildren(el('h1', {}, api.info.title), prose(api.info.summary), prose(api.info.description),
    prose(api.components.securitySchemes.bearer.description + ', in the header `Authorization: Bearer …`.'),
    el('p', {}, 'For programs: ', el('a', { href: api.servers[0].url + '/openapi.json' }, 'openapi.json'), ', OpenAPI ' + api.openapi + '.'));
  for (const [path, item] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      contents.append(el('li', {}, el('a', { href: '#' + operation.operationId }, operation.summary)));
      main.append(el('section', { id: operation.operationId },
        el('h2', {}, operation.summary),
        el('p', { class: 'call' }, el('span', { class: 'method' }, method.toUpperCase()), ' ', el('code', {}, api.servers[0].url + path)),
        operation.description ? prose(operation.description) : null,
        curl(path, operation),
        operation.parameters ? parameters(operation.parameters) : null,
        ...body(operation),
        el('h3', {}, 'Answers'),
        ...Object.entries(operation.responses).map(([status, response]) => answer(status, response))));
    }
  }
  document.title = api.info.title;
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

fetch('/api/v1/openapi.json')
  .then((response) => (response.ok ? response.json() : Promise.reject(new Error('HTTP ' + response.status))))
  .then(start)
  .catch((cause) => {
    const state = document.getElementById('state') || document.getElementById('main').appendChild(el('p'));
    state.className = 'error';
    state.textContent = 'The description could not be shown: ' + cause.message;
  });
