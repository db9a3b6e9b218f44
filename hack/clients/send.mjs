// Sends events by a client that is used as its maker's documentation says, with no other setting than the host.
//
//   node send.mjs CLIENT HOST WRITE_KEY EVENTS
//
// CLIENT is a package of package.json; NODE_CLIENTS names the folder that hack/npm.sh printed. It waits until the client
// is done with each event, and says on standard output how many it has given up.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(`${process.env.NODE_CLIENTS}/`);
const [client, host, writeKey, events] = process.argv.slice(2);

let [answered, failed] = [0, 0];
const done = (error) => {
  answered++;
  if (error) failed++;
};

const clients = {
  "@segment/analytics-node": () => {
    const { Analytics } = require("@segment/analytics-node");
    const analytics = new Analytics({ writeKey, host });
    return { track: (message) => analytics.track(message, done), flush: () => analytics.flush(), close: () => analytics.closeAndFlush() };
  },
  "@rudderstack/rudder-sdk-node": () => {
    const Analytics = require("@rudderstack/rudder-sdk-node");
    const analytics = new Analytics(writeKey, { dataPlaneUrl: host, logLevel: "none", errorHandler: () => {} });
    return { track: (message) => analytics.track(message, done), flush: () => analytics.flush(), close: () => {} };
  },
};

const { track, flush, close } = clients[client]();
for (let i = 0; i < Number(events); i++) {
  track({
    userId: `visitor-${i}`,
    event: "Order Completed",
    properties: { order_id: `order-${i}`, total: 12.5, currency: "EUR", products: [{ product_id: "a", price: 12.5, quantity: 1 }] },
  });
  if (i % 100 === 99) await sleep(20);
}
while (answered < Number(events)) {
  await Promise.race([flush(), sleep(100)]).catch(() => {}); // what it fails with the callbacks are told
  await sleep(10);
}
await close();
console.log(JSON.stringify({ failed }));
