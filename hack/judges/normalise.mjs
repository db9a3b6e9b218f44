// Has Meta's own libraries normalise and hash a person's data.
//
//   node normalise.mjs < DATA
//
// DATA is a JSON list of {field, value}, with Meta's names for the fields. On standard output comes a list of the same length:
// {sdk, builder}, each the SHA-256, "" where the library sends nothing, or "error" where it refuses the value. NODE_JUDGES names
// the folder that hack/npm.sh printed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.NODE_JUDGES}/`);
const { UserData } = require("facebook-nodejs-business-sdk");
const { ParamBuilder } = require("capi-param-builder-nodejs");

const setters = {
  em: "setEmails", ph: "setPhones", fn: "setFirstNames", ln: "setLastNames", ct: "setCities", st: "setStates", zp: "setZips",
  country: "setCountries", db: "setDatesOfBirth", ge: "setGenders", external_id: "setExternalIds",
};
const types = {
  em: "email", ph: "phone", fn: "first_name", ln: "last_name", ct: "city", st: "state", zp: "zip_code", country: "country",
  db: "date_of_birth", ge: "gender", external_id: "external_id",
};

const attempt = (hash) => {
  try {
    return hash() ?? "";
  } catch {
    return "error";
  }
};

const builder = new ParamBuilder([]);
const judged = JSON.parse(readFileSync(0, "utf8")).map(({ field, value }) => ({
  sdk: attempt(() => [new UserData()[setters[field]]([value]).normalize()[field]].flat()[0]),
  builder: attempt(() => builder.getNormalizedAndHashedPII(value, types[field])?.split(".")[0]),
}));
console.log(JSON.stringify(judged));
