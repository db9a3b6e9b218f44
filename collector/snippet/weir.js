// What a shop's pages load to send events from the browser; docs/guides/browser.md has how it is used. Before the visitor
// has consented it only remembers, in the page's memory, what it is told. What is served is weir.min.js, which
// `make generate` makes of this. It has to be small, so some of this is terse.
(() => {
  const doc = document;
  const stub = window.weir || {q: []};
  if (!stub.q) return; // loaded twice
  const collect = doc.currentScript.src.replace('weir.js', 'batch');
  const prefix = 'weir.' + collect;
  const now = Date.now;
  const granted = 'granted';

  let consent = {};
  let storing, advertising; // what it says of storing for analytics and for ads
  let common = {};
  let held = []; // what is to be done once the visitor has consented
  let referrer = doc.referrer;
  let campaign = [];
  let client, session, page, level;

  // What the collector has not confirmed, the oldest first, by its key in the storage: the time, and the JSON but for its
  // first brace.
  const pending = new Map();
  let storage = {};
  try {
    storage = localStorage;
  } catch {} // The browser has none for us.
  let flying = 0;
  let timer, pause;

  const random = () => Math.random() * 2 ** 31 | 0;
  const cookie = name => (doc.cookie.match(`(^|; )${name}=([^;]*)`) || [])[2] || '';
  // write sets a cookie for the broadest domain that the browser allows, whose level, as Meta counts, is 0 for the top.
  const write = (name, value, seconds) => {
    location.hostname.split('.').some((_, i, labels) => {
      level = i;
      doc.cookie = `${name}=${value};path=/;samesite=lax;secure;max-age=${seconds};domain=` + labels.slice(~i).join('.');
      return cookie(name) == value;
    });
    return value;
  };
  const forget = name => write(name, '', 0);

  const drop = key => {
    pending.delete(key);
    delete storage[key];
  };
  // batch returns some of what is pending, and a request's body with it. The collector's clock is right and the visitor's may
  // not be: only what comes late says when it happened.
  const batch = from => {
    const events = [...pending].slice(from, from + 25);
    return [events, `{"events":[${events.map(([, [time, json]]) => '{' + (now() - time > 6e4 ? `"timestamp":"${new Date(time).toJSON()}",` : '') + json)}]}`];
  };
  const flush = async () => {
    const [events, body] = batch(0);
    if (timer || flying || !events[0]) return;
    flying = events.length;
    try {
      const answer = await fetch(collect, {method: 'POST', body, keepalive: !body[2e4]});
      if (/408|429|5../.test(answer.status)) throw answer.headers.get('retry-after');
      // Where the clock is wrong it happened when it arrives.
      const wrong = /"timestamp"/.test(await answer.text());
      events.map(([key, event]) => wrong && event[0] ? event[0] = NaN : drop(key));
      pause = flying = 0;
      flush();
    } catch (seconds) {
      flying = 0;
      if (!(pause > 300)) pause = pause * 2 || 2;
      timer = setTimeout(retry, (seconds > pause ? seconds : pause) * 1e3 * (1 + Math.random()));
    }
  };
  const retry = () => {
    timer = clearTimeout(timer);
    flush();
  };
  const release = () => {
    if (storing) held.splice(0).map(send => storing == granted && send());
  };

  const commands = {
    event(name, members = {}) {
      const time = now();
      const seconds = (time / 1e3).toFixed();
      const context = {page_url: location.href, referrer, page_title: doc.title};
      held.push(() => {
        client = cookie('_weir') || write('_weir', client || random() + '.' + seconds, 34128e3);
        const [visit, , ...kept] = cookie('_weir_s').split('&');
        if (session && !visit) campaign = []; // the visit is over
        session = visit || seconds;
        const query = (campaign[0] ? campaign : kept).filter(parameter => advertising == granted || parameter[0] == 'u').join('&');
        write('_weir_s', session + '&' + now() + '&' + query, 1800);
        const click_ids = {};
        new URLSearchParams(query).forEach((value, name) => {
          (name[0] == 'u' ? context : click_ids)[name] = value; // utm_…
        });
        if (advertising == granted) {
          const meta = (name, value) => value && !cookie(name).includes(value) ? write(name, `fb.${level}.${time}.` + escape(value), 90 * 86400) : cookie(name);
          click_ids.fbc = meta('_fbc', click_ids.fbclid);
          click_ids.fbp = cookie('_fbp') || meta('_fbp', random());
        }
        const event = {event: name, event_id: crypto.randomUUID(), client_id: client, session_id: session, ...common, ...members, timestamp: undefined, context: {...context, click_ids, ...members.context}, consent};
        const key = prefix + event.event_id;
        const json = () => JSON.stringify(event).slice(1);
        pending.set(key, [time, json()]);
        if (pending.size > 500) drop([...pending.keys()][0]);
        delete event.user; // who somebody is stays out of the storage
        try {
          storage[key] = time + json();
        } catch {} // It is full.
        flush();
      });
      release();
    },
    set(members) {
      common = {...common, ...members};
    },
    consent(all = {}) {
      consent = {...consent, ...all.big ? {ad_storage: all, ad_user_data: all, ad_personalization: all, analytics_storage: all} : all};
      ({analytics_storage: storing, ad_storage: advertising} = consent);
      if (advertising && advertising != granted) ['_fbp', '_fbc'].map(forget);
      if (storing) {
        if (storing != granted) ['_weir', '_weir_s'].map(forget), pending.clear();
        // What earlier pages could not send, or were closed before it was confirmed.
        Object.keys(storage).map(key => {
          const time = parseInt(storage[key]); // of 13 digits, until 2286
          if (key.indexOf('weir.')) return;
          if (storing != granted || now() - time > 5e8) delete storage[key];
          else key.indexOf(prefix) || pending.has(key) || pending.set(key, [time, storage[key].slice(13)]);
        });
      }
      release();
    },
  };
  const view = () => {
    const [here] = location.href.split('#');
    const found = here.split(/[?&]/).filter(parameter => /^(utm_\w+|\w+c(lk?)?id|.braid|epik|li_fat_id|oppref)=[^;]{1,255}$/i.test(parameter));
    if (here == page) return;
    referrer = page || referrer;
    page = here;
    if (found[0]) campaign = found;
    weir('event', 'pageview');
  };

  const weir = window.weir = (command, first, second) => commands[command](first, second);
  ['pushState', 'replaceState'].map(name => {
    const original = history[name];
    history[name] = (...state) => {
      original.apply(history, state);
      setTimeout(view);
    };
  });
  const on = addEventListener;
  on('popstate', view);
  on('pageshow', event => event.persisted && weir('event', 'pageview'));
  on('online', retry);
  on('visibilitychange', () => doc.hidden && pending.size > flying && navigator.sendBeacon(collect, batch(flying)[1]));

  // Google's consent mode: what the visitor decides, and not what holds before.
  const layer = window.dataLayer ||= [];
  const push = layer.push;
  const listen = entry => entry && entry[0] + entry[1] == 'consentupdate' && weir('consent', entry[2]);
  layer.push = (...entries) => {
    entries.map(listen);
    return push.apply(layer, entries);
  };
  view();
  stub.q.map(call => weir(...call));
  layer.map(listen);
})();
