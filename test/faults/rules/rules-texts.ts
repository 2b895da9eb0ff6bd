// Random rules files. Every file drops the events `never`, and every second file has a rule that
// puts orders into quarantine. Most files stamp their own number on the events, so that a record
// shows which file has changed it.

import { parseRules } from "../../../src/rules/parse.ts";
import type { RulesFile } from "../../../src/rules/rules-file.ts";
import type { Random } from "../random.ts";

/** The event with which the load asks whether the gateway uses the last version. */
export const probeEvent = "last";
export const probeId = "probe";

const stamped = ["heartbeat", "ping*", "scroll", "order", "signed up", "registered", "viewed"];

export function randomRules(random: Random, number: number): string {
  const chance = (share: number): boolean => random() < share;
  const oneOf = <One>(...all: readonly One[]): One => all[Math.floor(random() * all.length)]!;
  const rules: object[] = [
    { name: "never-stored", match: { event: "never" }, drop: true },
    ...(chance(0.5)
      ? [
          {
            name: "noise",
            match: { event: oneOf(["heartbeat"], ["ping*"], ["heartbeat", "ping*"]) },
            drop: true,
          },
        ]
      : []),
    ...(chance(0.6)
      ? [{ name: "few-scrolls", match: { event: "scroll" }, sample: oneOf(0.1, 0.5, 0.9) }]
      : []),
    ...(number % 2 === 1
      ? [
          {
            name: "orders-without-total",
            match: { event: "order", properties: { total: { absent: true } } },
            quarantine: true,
          },
        ]
      : []),
    ...(chance(0.5) ? [{ name: "no-emails", remove: ["email", "$set.email"] }] : []),
    ...(chance(0.3) ? [{ name: "plans", hash: ["plan"] }] : []),
    ...(chance(0.3) ? [{ name: "short-titles", cut: { title: oneOf(5, 8, 12, 20) } }] : []),
    ...(chance(0.2)
      ? [{ name: "few-properties", match: { event: "viewed" }, keep_only: ["number", "plan"] }]
      : []),
    ...(chance(0.3)
      ? [{ name: "history", match: { lane: "historical" }, set: { imported: true } }]
      : []),
    ...(chance(0.3)
      ? [{ name: "sign-ups", match: { event: "signed up" }, rename: "registered" }]
      : []),
    ...(chance(0.8)
      ? [{ name: "stamp", match: { event: stamped }, set: { stamp: `text ${number}` } }]
      : []),
    ...(chance(0.2)
      ? [{ name: "watched", mode: "observe", match: { event: "order" }, drop: true }]
      : []),
  ];
  const total = { type: "number", minimum: 0 };
  const schema = { event: "order", version: number, mode: oneOf("quarantine", "stamp", "observe") };
  const schemas = chance(0.5) ? [{ ...schema, properties: { properties: { total } } }] : [];
  const privacy = {
    ip: oneOf("keep", "keep", "truncate", "drop"),
    ...oneOf({}, { cut_query: ["email"] }, { cut_query: ["*"] }),
    cut_fragment: chance(0.3),
  };
  return textOf({ privacy, rules, schemas });
}

/** The last rules of a run. They drop the event of the probe. */
export function lastRules(): string {
  return textOf({
    rules: [
      { name: "probe", match: { event: probeEvent }, drop: true },
      { name: "never-stored", match: { event: "never" }, drop: true },
      { name: "stamp", match: { event: stamped }, set: { stamp: "last text" } },
    ],
  });
}

/** JSON is YAML. */
function textOf(file: object): string {
  const text = JSON.stringify(file, undefined, 1);
  fileOf(text);
  return text;
}

/** Throws if the text has an error. */
export function fileOf(text: string): RulesFile {
  const parsed = parseRules(text);
  if ("errors" in parsed) throw new Error(`${JSON.stringify(parsed.errors)} in\n${text}`);
  return parsed.rules;
}
