// Has IAB's own library for TC strings write strings of random choices, and read these and others.
//
//   node tcf.mjs < PLAN
//
// PLAN is {seed, count}: which strings, and how many of each kind. On standard output comes a list of {kind, text, read}: a kind
// in a few words, "" for what the library writes, a string, and what the library reads in it, which is absent where it refuses
// the string. NODE_JUDGES names the folder that hack/npm.sh printed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { alphabet, attempt, int, letters, random, ranges, restrictions, runs, vendors } from "./strings.mjs";

const require = createRequire(`${process.env.NODE_JUDGES}/`);
const { PurposeRestriction, Segment, SegmentEncoder, TCModel, TCString } = require("@iabtcf/core");

const { seed, count } = JSON.parse(readFileSync(0, "utf8"));
const from = random(seed);
const ids = (vector) => [...vector.values()].sort((a, b) => a - b);

const read = (text) => {
  const model = TCString.decode(text);
  const restricted = {};
  for (const restriction of model.publisherRestrictions.getRestrictions()) {
    restricted[`${restriction.purposeId} ${restriction.restrictionType}`] = runs(model.publisherRestrictions.getVendors(restriction));
  }
  return {
    Created: model.created.getTime(),
    LastUpdated: model.lastUpdated.getTime(),
    CMPID: model.cmpId,
    CMPVersion: model.cmpVersion,
    ConsentScreen: model.consentScreen,
    ConsentLanguage: model.consentLanguage,
    VendorListVersion: model.vendorListVersion,
    PolicyVersion: model.policyVersion,
    IsServiceSpecific: model.isServiceSpecific,
    UseNonStandardTexts: model.useNonStandardStacks,
    PurposeOneTreatment: model.purposeOneTreatment,
    PublisherCountry: model.publisherCountryCode,
    CustomPurposes: model.numCustomPurposes,
    IDs: {
      SpecialFeatureOptIns: ids(model.specialFeatureOptins),
      PurposeConsents: ids(model.purposeConsents),
      PurposeLegitimateInterests: ids(model.purposeLegitimateInterests),
      PublisherConsents: ids(model.publisherConsents),
      PublisherLegitimateInterests: ids(model.publisherLegitimateInterests),
      CustomConsents: ids(model.publisherCustomConsents),
      CustomLegitimateInterests: ids(model.publisherCustomLegitimateInterests),
    },
    Vendors: {
      VendorConsents: runs(ids(model.vendorConsents)),
      VendorLegitimateInterests: runs(ids(model.vendorLegitimateInterests)),
      DisclosedVendors: runs(ids(model.vendorsDisclosed)),
      AllowedVendors: runs(ids(model.vendorsAllowed)),
    },
    Restrictions: restricted,
  };
};

// choice is a model of a random choice.
const choice = () => {
  const highest = from.pick([0, 3, 60, 60, 60, 200, 1500]);
  const model = new TCModel();
  model.created = new Date(100 * from.below(2 ** 34));
  model.lastUpdated = new Date(100 * from.below(2 ** 34));
  model.cmpId = from.between(2, 4095);
  model.cmpVersion = from.below(4096);
  model.consentScreen = from.below(64);
  model.consentLanguage = from.letters();
  model.vendorListVersion = from.below(4096);
  model.policyVersion = from.below(64);
  model.isServiceSpecific = from.chance(0.8);
  model.useNonStandardStacks = from.chance(0.5);
  model.purposeOneTreatment = from.chance(0.5);
  model.publisherCountryCode = from.letters();
  model.specialFeatureOptins.set(from.some(12, 0.5));
  model.purposeConsents.set(from.some(24, 0.5));
  model.purposeLegitimateInterests.set(from.some(24, 0.5));
  for (const vector of [model.vendorConsents, model.vendorLegitimateInterests, model.vendorsDisclosed, model.vendorsAllowed]) {
    vector.set(from.some(highest, from.pick([0.02, 0.5, 0.98])));
    if (from.chance(0.005)) vector.set(from.between(1, 65535));
  }
  // The library joins what no vendor of the list parts: here each number is a vendor.
  model.publisherRestrictions.gvl = { vendorIds: { has: () => true } };
  for (let left = from.pick([0, 0, 1, 3, 8]); left > 0; left--) {
    const restriction = new PurposeRestriction(from.between(1, 24), from.below(3));
    for (const vendor of from.some(from.pick([5, 60, 200]), 0.3)) model.publisherRestrictions.add(vendor, restriction);
  }
  model.numCustomPurposes = from.pick([0, 1, 7, 32, 33, 63]);
  model.publisherConsents.set(from.some(24, 0.5));
  model.publisherLegitimateInterests.set(from.some(24, 0.5));
  model.publisherCustomConsents.set(from.some(model.numCustomPurposes, 0.5));
  model.publisherCustomLegitimateInterests.set(from.some(model.numCustomPurposes, 0.5));
  return model;
};

const others = [Segment.VENDORS_DISCLOSED, Segment.VENDORS_ALLOWED, Segment.PUBLISHER_TC];
const written = (model = choice()) =>
  [Segment.CORE, ...from.shuffled(others).slice(0, from.below(4))].map((segment) => SegmentEncoder.encode(model, segment)).join(".");

// core is a core segment bit by bit, of fields that are valid but for those that are given.
const core = (fields = {}) => {
  const field = (name, bits, valid = from.below(2 ** bits)) => int(fields[name] ?? valid, bits);
  const head =
    field("version", 6, 2) + int(from.below(2 ** 30), 36) + int(from.below(2 ** 30), 36) + field("cmpId", 12, from.between(2, 4095)) + field("cmpVersion", 12) +
    field("screen", 6) + field("language1", 6, from.below(26)) + field("language2", 6, from.below(26)) + field("vendorList", 12) + field("policy", 6) +
    field("specific", 1) + field("texts", 1) + field("features", 12) + field("consents", 24) + field("interests", 24) + field("treatment", 1) +
    field("country1", 6, from.below(26)) + field("country2", 6, from.below(26));
  const pairs = () => from.some(100, 0.1).map((id) => [id, id + 1]);
  const sections = (fields.vendorConsents ?? vendors(pairs())) + (fields.vendorInterests ?? vendors(pairs()));
  return letters(head + sections + (fields.restrictions ?? restrictions([[from.between(1, 24), from.below(3), pairs()]])));
};
const segment = (type) => letters(int(type, 3) + int(from.below(2 ** 20), 20) + int(0, 100));
const replaced = (text, letter) => {
  const at = from.below(text.length);
  return text.slice(0, at) + letter + text.slice(at + 1);
};

const kinds = {
  "": () => written(),
  "bit by bit": () => core(),
  "cut off": () => {
    const text = written();
    return text.slice(0, from.between(1, text.length - 1));
  },
  "with letters that are none of base64url": () => replaced(written(), from.pick(["+", "/", "=", " ", "\n", "é", "~", "\0"])),
  "with other letters at the end": () => core() + from.pick([...alphabet]),
  "of version 1": () => {
    const model = choice();
    model.version = 1;
    return SegmentEncoder.encode(model, Segment.CORE);
  },
  "of versions 0 and 3 to 7": () => core({ version: from.pick([0, 3, 4, 5, 6, 7]) }),
  "with a version that is another segment's type": () => core({ version: from.between(8, 63) }),
  "with CmpId 0 or 1": () => core({ cmpId: from.below(2) }),
  "with a language of other signs than A to Z": () => core({ [from.pick(["language1", "language2"])]: from.between(26, 63) }),
  "with a country of other signs than A to Z": () => core({ [from.pick(["country1", "country2"])]: from.between(26, 63) }),
  "with ranges in no order that overlap": () => {
    const pairs = Array.from({ length: from.between(2, 9) }, () => [from.between(1, 300)]).map(([id]) => (from.chance(0.3) ? [id] : [id, id + from.below(99)]));
    return core({ vendorConsents: vendors(pairs), vendorInterests: vendors(from.shuffled(pairs)), restrictions: restrictions([[2, 0, pairs], [2, 0, [[7]]]]) });
  },
  "with ranges of all vendors": () => core({ vendorConsents: vendors(Array(from.between(1, 9)).fill([1, 65535])) }),
  "with vendors above the highest": () => core({ vendorConsents: vendors([[5, 90]], from.below(90)) }),
  "with ranges of vendors that go down": () => core({ vendorConsents: vendors([[from.between(50, 99), from.between(1, 49)]]) }),
  "with vendor 0": () => core({ vendorConsents: vendors([[0], [3, 9]]) }),
  "with more ranges than there are": () => core({ restrictions: int(1, 12) + int(2, 6) + int(1, 2) + int(from.between(9, 4095), 12) + ranges([[7]]) }),
  "with restrictions of ranges that go down": () => core({ restrictions: restrictions([[2, 1, [[from.between(50, 99), from.between(1, 49)]]]]) }),
  "with restrictions of vendor 0": () => core({ restrictions: restrictions([[2, 1, [[0], [3, 9]]]]) }),
  "with restrictions of purpose 0": () => core({ restrictions: restrictions([[0, 1, [[3, 9]]]]) }),
  "with restrictions of type 3": () => core({ restrictions: restrictions([[2, 3, [[3, 9]]]]) }),
  "with restrictions of purpose 0 or type 3, and no vendors": () => core({ restrictions: restrictions([from.pick([[0, 1, []], [2, 3, []]])]) }),
  "with restrictions of purposes above 24": () => core({ restrictions: restrictions([[from.between(25, 63), from.below(3), [[3, 9]]]]) }),
  "with restrictions for nobody": () => core({ restrictions: restrictions([[from.between(1, 24), from.below(3), []]]) }),
  "with a segment twice": () => {
    const type = from.pick(others);
    return [Segment.CORE, type, type].map((each) => SegmentEncoder.encode(choice(), each)).join(".");
  },
  "with two cores": () => `${core()}.${core()}`,
  "with another segment first": () => `${SegmentEncoder.encode(choice(), from.pick(others))}.${core()}`,
  "with segments of types 4 to 7": () => `${core()}.${segment(from.between(4, 7))}`,
  "with an empty segment": () => core() + from.pick([".", "..", `.${segment(1)}.`]),
};

const judged = Object.entries(kinds).flatMap(([kind, make]) =>
  Array.from({ length: kind === "" ? count : Math.ceil(count / 30) }, () => {
    const text = make();
    return { kind, text, ...attempt(() => read(text)) };
  }),
);
console.log(JSON.stringify(judged));
