// Says where Segment's destination for Meta puts the token: the URL and the header of its request.
//
//   node token.mjs < TOKEN
//
// NODE_JUDGES names the folder that hack/npm.sh printed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

process.env.ACTIONS_FB_CAPI_SYSTEM_USER_TOKEN = readFileSync(0, "utf8"); // as Segment's own servers give it to the destination
const require = createRequire(`${process.env.NODE_JUDGES}/`);
const { actions, extendRequest } = require("@segment/action-destinations/dist/destinations/facebook-conversions-api").default;

let url;
const request = async (address) => {
  url = address;
  return { data: {}, status: 200 };
};
const payload = { action_source: "other", event_time: "1795176000", user_data: { email: "ada@example.com" }, value: 1, currency: "EUR" };
await actions.purchase2.perform(request, {
  settings: { pixelId: "1" },
  payload,
  features: { FB_CAPI_REFACTOR_PURCHASE_EVENT: true },
  syncMode: "add",
});
console.log(JSON.stringify({ url, headers: extendRequest({}).headers }));
