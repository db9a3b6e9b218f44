// Has clients make requests of messages, each as it would send them to its platform, and sends none.
//
//   node requests.mjs < MESSAGES
//
// MESSAGES is an object with a list of messages for each package of package.json that is asked, in the form that the platform gets
// them in. On standard output comes an object with each client's requests. NODE_CLIENTS names the folder that hack/npm.sh printed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.NODE_CLIENTS}/`);

// keep returns what stands in place of fetch, and the requests that it was asked for.
const keep = (answer) => {
  const requests = [];
  const fetch = async (url, { method, headers, body }) => {
    requests.push({ url: String(url), method, headers: Object.fromEntries(new Headers(headers)), body: String(body) });
    return new Response(answer, { status: 200, headers: { "Content-Type": "application/json" } });
  };
  return { fetch, requests };
};

const clients = {
  "@segment/analytics-node": async (messages) => {
    const { Analytics } = require("@segment/analytics-node");
    const { fetch, requests } = keep('{"success":true}');
    const analytics = new Analytics({ writeKey: "write-key-for-tests", flushAt: messages.length, httpClient: fetch });
    const refused = [];
    analytics.on("error", (error) => refused.push(String(error.reason ?? error.message)));
    for (const { type, timestamp, ...message } of messages) analytics[type]({ ...message, timestamp: new Date(timestamp) });
    await analytics.closeAndFlush();
    if (refused.length) throw new Error(refused.join("; "));
    return requests;
  },
  "posthog-node": async (messages) => {
    const { PostHog } = require("posthog-node");
    const { fetch, requests } = keep('{"status":"Ok"}');
    // disableGeoip is set by each message here, and the body is to be read.
    const client = new PostHog("phc_project-token-for-tests", { flushAt: messages.length + 1, fetch, disableGeoip: false, disableCompression: true });
    for (const { event, distinct_id, uuid, timestamp, properties } of messages) {
      client.capture({ event, distinctId: distinct_id, uuid, timestamp: new Date(timestamp), properties });
    }
    await client.shutdown();
    return requests;
  },
};

const asked = JSON.parse(readFileSync(0, "utf8"));
const made = {};
for (const [client, messages] of Object.entries(asked)) made[client] = await clients[client](messages);
console.log(JSON.stringify(made));
