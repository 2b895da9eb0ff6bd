// Measures the CPU time of an event from its scan to its line, with different rules, in one process
// that alternates between them. Without HTTP and NATS, because their noise exceeds the difference.

import { type CompiledRules, compileRules } from "../../src/rules/compile.ts";
import {
  type Action,
  type Match,
  noPrivacy,
  type Rule,
  type SchemaMode,
} from "../../src/rules/rules-file.ts";
import { batchBody } from "../harness/bodies.ts";
import { createBodyTaker } from "./body-taker.ts";

const secondsEach = Number(process.argv[2]);
const rounds = Number(process.argv[3]);

function rule(name: string, match: Match, ...actions: Action[]): Rule {
  return { name, mode: "enforce", match, actions };
}

function compiled(rules: readonly Rule[], ip: "keep" | "truncate" = "keep"): CompiledRules {
  const file = { privacy: { ...noPrivacy, ip }, rules, schemas: [] };
  return compileRules(file, { version: 1, secret: Buffer.alloc(32, 7) });
}

/** Returns rules without any rule, and with one schema for the events of the bodies. */
function compiledSchema(mode: SchemaMode, properties: object): CompiledRules {
  const schemas = ["$pageview", "button clicked"].map((event) => ({
    event,
    version: 1,
    mode,
    properties,
  }));
  const file = { privacy: noPrivacy, rules: [], schemas };
  return compileRules(file, { version: 1, secret: Buffer.alloc(32, 7) });
}

const fiveProperties = {
  type: "object",
  required: ["plan"],
  properties: {
    plan: { enum: ["free", "pro"] },
    duration_seconds: { type: "number", minimum: 0 },
    $screen_width: { type: "integer" },
    $current_url: { type: "string", pattern: "^https?://", maxLength: 200 },
    title: { type: ["string", "null"] },
  },
};

/** The rules of each variant. Every variant stores all events, so that all do the same work. */
const variants: Readonly<Record<string, CompiledRules | undefined>> = {
  none: undefined,
  "names, IP, sample": compiled(
    [
      rule("heartbeats", { event: ["heartbeat", "ping*"] }, { kind: "drop" }),
      rule("scrolls", { event: ["scroll"] }, { kind: "sample", share: 0.1 }),
      rule("clicks", { event: ["button clicked"] }, { kind: "sample", share: 1 }),
    ],
    "truncate",
  ),
  "properties, absent": compiled([
    rule("no-emails", {}, { kind: "remove", paths: ["email", "$set.email"] }),
    rule("phones", {}, { kind: "hash", paths: ["phone"] }),
    rule("titles", {}, { kind: "cut", bytes: new Map([["title", 200]]) }),
  ]),
  "properties, only removals": compiled([
    rule("no-width", {}, { kind: "remove", paths: ["$screen_width", "$set.email"] }),
    rule("no-phones", {}, { kind: "remove", paths: ["phone"] }),
  ]),
  "properties, one removed": compiled([
    rule("no-width", {}, { kind: "remove", paths: ["$screen_width", "$set.email"] }),
    rule("titles", {}, { kind: "cut", bytes: new Map([["title", 200]]) }),
  ]),
  "properties, one removed and one set": compiled([
    rule("no-width", {}, { kind: "remove", paths: ["$screen_width", "$set.email"] }),
    rule("source", {}, { kind: "set", values: new Map([["source", "web"]]) }),
  ]),
  "properties, one hashed": compiled([
    rule("sessions", {}, { kind: "hash", paths: ["$session_id"] }),
  ]),
  "schema of 5 properties, observe": compiledSchema("observe", fiveProperties),
  "schema of 5 properties, stamp": compiledSchema("stamp", fiveProperties),
  "schema without other properties": compiledSchema("observe", {
    ...fiveProperties,
    additionalProperties: false,
  }),
  "schema, wrong events, stamp": compiledSchema("stamp", { required: ["total"] }),
};

const { take } = createBodyTaker(512);

/** Returns the nanoseconds of CPU time per event. */
function measure(body: Buffer, events: number, rules: CompiledRules | undefined): number {
  const endMs = performance.now() + secondsEach * 1_000;
  let count = 0;
  const began = process.threadCpuUsage();
  do {
    for (let run = 0; run < 64; run++) count += take(body, rules);
  } while (performance.now() < endMs);
  const { user, system } = process.threadCpuUsage(began);
  if (count % events !== 0) throw new Error("the rules did not store every event");
  return ((user + system) * 1_000) / count;
}


const body = batchBody(100);
const which = process.argv[4] === "none" ? undefined : variants[process.argv[4]!]!;
for (let i = 0; i < rounds; i++) console.log(measure(body, 100, which).toFixed(0));
