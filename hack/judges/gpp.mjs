// Has IAB's own library for the Global Privacy Platform write strings of random choices, and read these and others.
//
//   node gpp.mjs < PLAN
//
// PLAN and what comes on standard output are as tcf.mjs has them. What is read are the sections by their names, with the fields
// that the library has in each. NODE_JUDGES names the folder that hack/npm.sh printed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { attempt, fibonacci, int, letters, random, restrictions, runs, vendors } from "./strings.mjs";

const require = createRequire(`${process.env.NODE_JUDGES}/`);
const { GppModel, RangeEntry, Sections, ...library } = require("@iabgpp/cmpapi");

const { seed, count } = JSON.parse(readFileSync(0, "utf8"));
const from = random(seed);
const names = Sections.SECTION_ORDER;
const american = names.filter((name) => /^us[a-z]/.test(name) && name !== "uspv1");

const vendorFields = ["VendorConsents", "VendorLegitimateInterests", "VendorsDisclosed", "VendorsAllowed", "VendorExpressConsent", "VendorImpliedConsent", "DisclosedVendors"];
const read = (text) => {
  const model = new GppModel(text);
  const sections = {};
  for (const name of names.filter((each) => model.hasSection(each))) {
    const section = model.getSection(name);
    for (const [field, value] of Object.entries(section)) {
      if (vendorFields.includes(field)) section[field] = runs(value);
      else if (value instanceof Date) section[field] = value.getTime();
      else if (value[0]?.getIds) section[field] = value.map((entry) => ({ key: entry.getKey(), type: entry.getType(), ids: runs(entry.getIds()) }));
    }
    sections[name] = section;
  }
  return sections;
};

const flags = (size) => Array.from({ length: size }, () => from.chance(0.5));
const restricted = () =>
  Array.from({ length: from.pick([0, 0, 1, 4]) }, () => new RangeEntry(from.between(1, 24), from.below(3), from.some(from.pick([5, 60, 400]), 0.3)));
const vendorsChosen = () => from.some(from.pick([0, 3, 60, 60, 300, 1500]), from.pick([0.02, 0.5, 0.98]));
const day = () => new Date(86400000 * from.below(40000));
const common = () => ({
  CmpId: from.below(4096), CmpVersion: from.below(4096), ConsentScreen: from.below(64), ConsentLanguage: from.letters(), VendorListVersion: from.below(4096),
  UseNonStandardStacks: from.chance(0.5),
});

// choices are random values for the fields of a section that are not of two bits each.
const choices = {
  tcfeuv2: () => ({
    ...common(), PolicyVersion: from.below(64), SpecialFeatureOptins: flags(12), PurposeConsents: flags(24), PurposeLegitimateInterests: flags(24),
    PurposeOneTreatment: from.chance(0.5), PublisherCountryCode: from.letters(), VendorConsents: vendorsChosen(), VendorLegitimateInterests: vendorsChosen(),
    PublisherRestrictions: restricted(), VendorsDisclosed: vendorsChosen(), PublisherConsents: flags(24), PublisherLegitimateInterests: flags(24),
    ...custom("NumCustomPurposes", "PublisherCustomConsents", "PublisherCustomLegitimateInterests"), Created: day(),
  }),
  tcfcav1: () => ({
    ...common(), TcfPolicyVersion: from.below(64), SpecialFeatureExpressConsent: flags(12), PurposesExpressConsent: flags(24), PurposesImpliedConsent: flags(24),
    VendorExpressConsent: vendorsChosen(), VendorImpliedConsent: vendorsChosen(), PubRestrictions: restricted(), DisclosedVendors: vendorsChosen(),
    PubPurposesExpressConsent: flags(24), PubPurposesImpliedConsent: flags(24),
    ...custom("NumCustomPurposes", "CustomPurposesExpressConsent", "CustomPurposesImpliedConsent"), Created: day(), LastUpdated: day(),
  }),
  uspv1: () => ({ Notice: from.pick("YN-"), OptOutSale: from.pick("YN-"), LspaCovered: from.pick("YN-") }),
};
const custom = (size, ...fields) => {
  const many = from.pick([0, 1, 7, 33, 63]);
  return Object.fromEntries([[size, many], ...fields.map((field) => [field, flags(many)])]);
};

// add adds a section of random choices to a model.
const add = (model, name) => {
  if (choices[name]) {
    for (const [field, value] of Object.entries(choices[name]())) model.setFieldValue(name, field, value);
    return;
  }
  model.setFieldValue(name, "MspaCoveredTransaction", from.between(1, 2));
  if (name === "usnat") model.setFieldValue(name, "Version", from.between(1, 2));
  for (const [field, value] of Object.entries(model.getSection(name))) {
    if (/Version|SegmentType|MspaCovered/.test(field)) continue;
    const chosen = Array.isArray(value) ? value.map(() => from.below(3)) : typeof value === "boolean" ? from.chance(0.5) : from.below(3);
    model.setFieldValue(name, field, chosen);
  }
  for (const included of ["GpcSegmentIncluded", "SensitiveDataConsentSegmentIncluded"]) {
    if (model.hasField(name, included)) model.setFieldValue(name, included, from.chance(0.7));
  }
};
const written = (sections = from.shuffled(names).slice(0, from.between(1, from.pick([1, 3, names.length])))) => {
  const model = new GppModel();
  for (const name of sections) add(model, name);
  return model.encode();
};

// whole is a string of sections by their ids, in ascending order, with a header bit by bit.
const whole = (sections, header = {}) => {
  let last = 0;
  const ids = Object.keys(sections).map((id) => {
    const offset = id - last;
    last = Number(id);
    return `0${fibonacci(offset)}`;
  });
  const head = int(header.type ?? 3, 6) + int(header.version ?? 1, 6) + int(header.count ?? ids.length, 12) + (header.ids ?? ids.join(""));
  return [letters(head), ...Object.values(sections)].join("~");
};
const sectionOf = (name) => {
  const model = new GppModel();
  add(model, name);
  return model.encode().split("~")[1];
};
const id = (name) => Sections.SECTION_NAME_ID_MAP?.get(name) ?? [...Sections.SECTION_ID_NAME_MAP].find(([, each]) => each === name)[0];
const one = (name, text, header) => whole({ [id(name)]: text }, header);

// canada is the head of a Canadian core, to which vendors are added bit by bit.
const canada = (fields = {}) =>
  int(fields.version ?? 1, 6) + int(from.below(2 ** 30), 36) + int(from.below(2 ** 30), 36) + int(from.below(4096), 12) + int(from.below(4096), 12) + int(from.below(64), 6) +
  int(from.below(26), 6) + int(from.below(26), 6) + int(from.below(4096), 12) + int(from.below(64), 6) + int(from.below(2), 1) + int(from.below(4096), 12) +
  int(from.below(2 ** 24), 24) + int(from.below(2 ** 24), 24);
const pairs = () => runs(from.some(from.pick([5, 100, 900]), 0.1)).map(([first, last]) => (first === last ? [first] : [first, last]));
const bitfield = (ids) => int(ids.at(-1) ?? 0, 16) + "0" + Array.from({ length: ids.at(-1) ?? 0 }, (_, i) => Number(ids.includes(i + 1))).join("");
const older = () => {
  const list = pairs();
  return list.length && vendors(list).length - 17 <= Math.max(...list.flat()) ? vendors(list) : bitfield(from.some(20, 0.5));
};
const olderCanada = () =>
  letters(canada() + older() + older() + restrictions(Array.from({ length: from.pick([0, 1, 3]) }, () => [from.between(2, 24), from.below(3), pairs().slice(0, 4)])));

const kinds = {
  "": () => written(),
  "bit by bit": () => whole({ 2: sectionOf("tcfeuv2"), 6: "1YNN", 8: sectionOf("usca") }),
  // A Canadian section that is cut off can keep the library busy until its memory ends.
  "cut off": () => {
    const text = written(from.shuffled(names.filter((name) => name !== "tcfcav1")).slice(0, from.between(1, 3)));
    return text.slice(0, from.between(1, text.length - 1));
  },
  "with letters that are none of base64url": () => {
    const text = written(from.shuffled(american).slice(0, 3));
    const at = from.below(text.length);
    return text.slice(0, at) + from.pick(["+", "/", "=", " ", "\n", "é", "\0"]) + text.slice(at + 1);
  },
  "of nothing": () => "",
  "of no sections": () => whole({}),
  "that is a TC string": () => sectionOf("tcfeuv2"),
  "with a header of another type": () => one("usca", sectionOf("usca"), { type: from.pick([0, 1, 2, 4, 63]) }),
  "of another version": () => one("usca", sectionOf("usca"), { version: from.pick([0, 2, 3, 63]) }),
  "with a section that the header does not list": () => `${written()}~${sectionOf("usva")}`,
  "that lacks a section that the header lists": () => one("usca", sectionOf("usca"), { count: 2, ids: `0${fibonacci(8)}0${fibonacci(from.between(1, 9))}` }),
  "with a header of more sections than there could be": () => one("usca", sectionOf("usca"), { count: 1, ids: `1${fibonacci(8)}${fibonacci(from.pick([1, 30, 9000]))}` }),
  "with sections as one range": () => one("usca", `${sectionOf("usca")}~${sectionOf("usva")}`, { count: 1, ids: `1${fibonacci(8)}${fibonacci(1)}` }),
  "with an empty section": () => whole({ 8: sectionOf("usca"), 9: from.pick(["", " "]) }),
  "with sections that have no layout": () => whole({ 1: "BOtherOld", 4: "CSignal", 8: sectionOf("usca"), 28: "Later", [from.between(29, 900)]: "Later" }),
  "with American sections of versions 0 and 3 to 63": () => {
    const name = from.pick(american.filter((each) => !/us(md|in|ky|ri)/.test(each)));
    return one(name, letters(int(from.pick([0, 3, 4, 63]), 6)) + sectionOf(name).slice(1));
  },
  "with answers of 3": () => {
    const name = from.pick(american);
    return one(name, sectionOf(name)[0] + "_" + sectionOf(name).slice(2));
  },
  "with a national section of version 1 and the later length": () => {
    const model = new GppModel();
    add(model, "usnat");
    model.setFieldValue("usnat", "Version", 2);
    return one("usnat", "B" + model.encode().split("~")[1].slice(1));
  },
  "with a national section of version 2 and the older length": () => one("usnat", `C${sectionOf("usnat").slice(1, 11)}`),
  "with a segment after a core that has none": () => {
    const name = from.pick(["usva", "usut", "usfl"]);
    return one(name, `${sectionOf(name)}.YA`);
  },
  "with two segments after the core": () => one("usca", `${sectionOf("usca").split(".")[0]}.YA.YA`),
  "with a segment of GPC that is of another type": () => one("usca", `${sectionOf("usca").split(".")[0]}.${letters(from.pick(["00", "10", "11"]) + from.pick(["0", "1"]))}`),
  "with a header before the core, as the specifications of sections 24 to 27 have it": () => {
    const name = from.pick(["usmd", "usin", "usky", "usri"]);
    return one(name, `${letters(int(id(name), 6) + int(1, 6) + int(1, 12))}.${sectionOf(name)}`);
  },
  "with a Canadian section of another version": () => one("tcfcav1", letters(canada({ version: from.pick([0, 2, 63]) }) + int(0, 60))),
  "with a Canadian section as written before 2026": () => one("tcfcav1", olderCanada()),
  "with a US Privacy section of another version": () => one("uspv1", `${from.pick(["0", "2", "x"])}YNN`),
  "with a US Privacy section of other letters": () => one("uspv1", `1${from.pick(["yNN", "Y N", "YN", "YNNN", "ABC"])}`),
  "with a European section whose segment is empty": () => one("tcfeuv2", `${sectionOf("tcfeuv2").split(".")[0]}.`),
  "with a European section that is cut off before its restrictions": () => one("tcfeuv2", `${sectionOf("tcfeuv2").slice(0, 36)}AAAAAAAA`.slice(0, 42)),
};

const judged = Object.entries(kinds).flatMap(([kind, make]) =>
  Array.from({ length: kind === "" ? count : Math.ceil(count / 30) }, () => {
    const text = make();
    return { kind, text, ...attempt(() => read(text)) };
  }),
);
console.log(JSON.stringify(judged));
