// The events of the project whose rules change, and what a version of its rules makes of them,
// according to the independent model. The same number gives the same event.

import { randomBytes } from "node:crypto";
import { sampleHash } from "../../../src/records/sample-hash.ts";
import { isKnownBot } from "../../../src/rules/bots.ts";
import type { RulesFile } from "../../../src/rules/rules-file.ts";
import { canonical } from "../../kit/canonical-json.ts";
import {
  applyModel,
  type Json,
  type ModelEvent,
  membersOf,
  plain,
} from "../../rules/rules-model.ts";

export const ruledProject = "ruled";
/** The forms of the requests. Each batch of the form `v1` gets a result for each event. */
export const forms = ["capture", "batch", "v1", "history", "large"] as const;
export type Form = (typeof forms)[number];

export interface Expected {
  readonly outcome: "stored" | "dropped" | "quarantined";
  /** Whether the record must have the version of the rules. */
  readonly isChanged: boolean;
  /** The record as a text that does not depend on the order of members. */
  readonly record: string;
}

const names = [
  "heartbeat",
  "ping a",
  "scroll",
  "scroll",
  "order",
  "order",
  "signed up",
  "never",
  "plain",
  "viewed",
];
const totals: readonly (Json | undefined)[] = [12.5, "12", -1, undefined, 7];
const people = 997;
const timestamp = "2026-01-02T03:04:05.678Z";
const uuidPrefix = `${randomBytes(4).toString("hex")}-0009-8000-8000-`;
const paddings = { capture: 20, batch: 20, v1: 20, history: 20, large: 300 };

export function uuidOf(number: number): string {
  return uuidPrefix + number.toString(16).padStart(12, "0");
}

/** Returns the number of an event of this run; undefined for other uuids. */
export function numberOf(uuid: string): number | undefined {
  return uuid.startsWith(uuidPrefix)
    ? Number.parseInt(uuid.slice(uuidPrefix.length), 16)
    : undefined;
}

function eventOf(number: number, form: Form): { readonly [name: string]: Json } {
  const name = names[number % names.length]!;
  const total =
    name === "order" ? totals[Math.floor(number / names.length) % totals.length] : undefined;
  const email = `p${number}@example.com`;
  return {
    event: name,
    distinct_id: `person-${number % people}`,
    uuid: uuidOf(number),
    timestamp,
    properties: {
      number,
      email,
      plan: number % 3 === 0 ? "pro" : "free",
      title: `${number} é€😀 a title that is cut`,
      ...(total === undefined ? {} : { total }),
      $current_url: `https://shop.example/p?email=${email}&n=${number}#token`,
      padding: "x".repeat(paddings[form]),
      $set: { email, plan: "free" },
    },
  };
}

export function textOf(number: number, form: Form): string {
  return JSON.stringify(eventOf(number, form));
}

/** Returns what must happen to an event under the rules of a file. */
export function expectedOf(
  file: RulesFile,
  secret: Uint8Array,
  { number, form }: { readonly number: number; readonly form: Form },
): Expected {
  const sent = eventOf(number, form);
  const event: ModelEvent = {
    name: sent["event"] as string,
    distinctId: sent["distinct_id"],
    properties: membersOf(sent["properties"]),
    set: undefined,
    setOnce: undefined,
    unset: undefined,
  };
  const before = membersText(event);
  const lane = form === "history" ? ("historical" as const) : ("live" as const);
  const request = {
    lane,
    isBot: false,
    secret,
    isKnownBot,
    sampleOf,
    address: "",
    visitorHashOf(): string {
      throw new Error("the rules have no cookieless");
    },
  };
  const outcome = applyModel(file, event, request);
  const schema = file.schemas.find((one) => one.event === event.name);
  const isValid = schema === undefined || hasValidTotal(event);
  const isWrong = outcome === "stored" && schema?.mode === "quarantine" && !isValid;
  const stamp = schema?.mode === "stamp" ? { version: schema.version, ok: isValid } : undefined;
  const { ip } = file.privacy;
  const after = membersText(event);
  return {
    outcome: isWrong ? "quarantined" : outcome,
    isChanged: before !== after || ip !== "keep",
    record: `${after} ${JSON.stringify({ ip: addressForms[ip], ...stamp })}`,
  };
}

/** Returns a stored record in the form of `Expected.record`. */
export function recordText(record: Readonly<Record<string, unknown>>): string {
  const schema = record["schema"] as { version?: number; ok?: boolean } | undefined;
  const ip = String(record["ip"] ?? "")
    .replace(/.*\.0$/, "network")
    .replace(/^\d.*/, "whole");
  const stamp = schema === undefined ? {} : { version: schema.version, ok: schema.ok };
  const members = {
    name: record["event"],
    properties: record["properties"],
    set: record["$set"] ?? {},
    setOnce: record["$set_once"] ?? {},
  };
  return `${canonical(members)} ${JSON.stringify({ ip, ...stamp })}`;
}

/** Returns whether the members that no rule changes are those of the event. */
export function hasFixedMembers(
  record: Readonly<Record<string, unknown>>,
  { number, form }: { readonly number: number; readonly form: Form },
): boolean {
  return (
    record["distinct_id"] === `person-${number % people}` &&
    record["timestamp"] === timestamp &&
    record["historical"] === (form === "history")
  );
}

/** What a record has of the client's IPv4 address, which is not the same in all networks. */
const addressForms = { keep: "whole", truncate: "network", drop: "", hash: "not used" };

function sampleOf(id: string): number {
  const bytes = Buffer.from(id);
  return sampleHash(bytes, 0, bytes.length) / 2 ** 32;
}

/** The schema of the load: `total` is absent, or a number of at least 0. */
function hasValidTotal({ properties }: ModelEvent): boolean {
  const total = properties?.get("total");
  return total === undefined || (typeof total === "number" && total >= 0);
}

function membersText({ name, properties, set, setOnce }: ModelEvent): string {
  const inner = properties?.get("$set");
  const merged = new Map([...(inner instanceof Map ? inner : []), ...(set ?? [])]);
  return canonical({
    name,
    properties: plain(properties ?? new Map()),
    set: plain(merged),
    setOnce: plain(setOnce ?? new Map()),
  });
}
