/**
 * What sends an event to the Property, as text. The guides have the same with repeats after failures; these are the shortest
 * that work.
 */

const EVENT = {
  event: 'purchase', event_id: 'purchase-4711', client_id: '1234.5678',
  data: { value: 49.9, currency: 'EUR', order_id: '4711' },
};

/** A key as a text that is safe in every language below: what has other characters is no key. */
const safe = (key, placeholder) => (/^w[kp]_[A-Za-z0-9_-]+$/.test(key) ? key : placeholder);

/** An address that is as safe: what a Property's pods say of themselves may be pasted into a shell. @param {any} url */
export const address = (url, placeholder) => (/^https?:\/\/[\w.:[\]-]+(\/[\w./~-]*)?$/.test(url) ? String(url).replace(/\/+$/, '') : placeholder);

const json = (currency) => JSON.stringify({ ...EVENT, data: { ...EVENT.data, currency } });

/**
 * The snippets, each with its text. Pure.
 * @param {{url?: string|null, key: string, currency: string, publishable: boolean}} options url is the collector's address; key may be
 *   empty. A publishable key is for pages, a secret one for servers.
 * @returns {{name: string, label: string, text: string, guide: string}[]}
 */
export function snippets({ url: collect, key, currency: code, publishable }) {
  const url = address(collect, 'https://COLLECT_HOST');
  const currency = /^[A-Z]{3}$/.test(code) ? code : 'EUR';
  const secret = safe(key, 'wk_YOUR_KEY');
  const target = `${url}/collect/${secret}`;
  if (publishable) {
    const web = safe(key, 'wp_YOUR_KEY');
    return [{ name: 'browser', label: 'Web page', guide: 'In the head of every page. It sends nothing before the visitor’s consent, which the third line grants.', text:
`<script>window.weir||((weir=function(){weir.q.push(arguments)}).q=[])</script>
<script async src="${url}/collect/${web}/weir.js"></script>
<script>weir('consent', 'granted')</script>` },
    { name: 'analytics.js', label: 'analytics.js', guide: 'Segment’s client for pages: @segment/analytics-next. Load it once the visitor has consented.', text:
`import { AnalyticsBrowser } from '@segment/analytics-next';

const analytics = AnalyticsBrowser.load({
  writeKey: '${web}',
  cdnURL: '${url}',
});
analytics.page();` }];
  }
  return [
    { name: 'curl', label: 'curl', guide: 'On a command line.', text:
`curl -sS '${target}' \\
  -H 'Content-Type: application/json' \\
  -d '${json(currency)}'` },
    { name: 'node', label: 'Node', guide: 'Node 18 or newer, as send.mjs.', text:
`const answer = await fetch('${target}', {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(${json(currency)}),
});
console.log(answer.status, await answer.json());` },
    { name: 'php', label: 'PHP', guide: 'With the curl extension.', text:
`<?php
$curl = curl_init('${target}');
curl_setopt_array($curl, [
    CURLOPT_POSTFIELDS => '${json(currency)}',
    CURLOPT_HTTPHEADER => ['Content-Type: application/json'],
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_TIMEOUT => 10,
]);
echo curl_exec($curl), "\\n";` },
    { name: 'python', label: 'Python', guide: 'Python 3, nothing to install.', text:
`import json
import urllib.request

event = ${json(currency)}
request = urllib.request.Request("${target}", json.dumps(event).encode(), {"Content-Type": "application/json"})
with urllib.request.urlopen(request, timeout=10) as answer:
    print(answer.status, json.load(answer))` },
    { name: 'go', label: 'Go', guide: 'The standard library alone.', text:
`package main

import (
	"fmt"
	"log"
	"net/http"
	"strings"
)

func main() {
	event := \`${json(currency)}\`
	answer, err := http.Post("${target}", "application/json", strings.NewReader(event))
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status)
}` },
    { name: 'segment', label: 'Segment', guide: 'Segment’s client for Node, @segment/analytics-node; others take the same host and write key.', text:
`import { Analytics } from '@segment/analytics-node';

const analytics = new Analytics({ writeKey: '${secret}', host: '${url}' });
analytics.track({
  anonymousId: '1234.5678',
  event: 'Order Completed',
  properties: { order_id: '4711', total: 49.9, currency: '${currency}' },
});
await analytics.closeAndFlush();` },
  ];
}
