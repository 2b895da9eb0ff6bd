// An independent model of the rules: plain JavaScript over the parsed event. It shares only the
// types of a rules file with the code, and two hashes that a test checks on their own.

import { createHmac } from "node:crypto";
import type {
  Action,
  Match,
  PropertyPath,
  Rule,
  RulesFile,
  Scalar,
} from "../../src/rules/rules-file.ts";

export type Json = Scalar | readonly Json[] | { readonly [name: string]: Json };
type Members = Map<string, Json>;

/** An event with members as maps, because `__proto__` is a name like any other. */
export interface ModelEvent {
  name: string;
  distinctId: Json | undefined;
  /** The User-Agent of a cookieless event. */
  agent?: string;
  /** The hashes that rules have written. They are not hashed again. */
  hashes?: Set<string>;
  properties: Members | undefined;
  set: Members | undefined;
  setOnce: Members | undefined;
  unset: Json | undefined;
}

interface ModelRequest {
  readonly lane: "live" | "historical";
  readonly isBot: boolean;
  readonly secret: Uint8Array;
  /** Returns whether a text is the User-Agent of a bot. */
  readonly isKnownBot: (agent: string) => boolean;
  /** Returns a number from 0 to 1 for the text of a distinct id. */
  readonly sampleOf: (id: string) => number;
  /** The client's address. */
  readonly address: string;
  /** Returns the hash of a cookieless visitor, in base64 without padding. */
  readonly visitorHashOf: (address: string, host: string, agent: string) => string;
}

type ModelOutcome = "stored" | "dropped" | "quarantined";

const read = new Set([
  "$set",
  "$set_once",
  "$unset",
  "$groups",
  "$group_set",
  "$group_unset",
  "$group_type",
  "$group_key",
  "alias",
  "distinct_id",
  "$distinct_id",
  "$anon_distinct_id",
  "$lib",
  "$process_person_profile",
  "$ignore_sent_at",
  "$survey_id",
  "$current_url",
  "$screen_name",
  "$exception_list",
  "$ai_trace_id",
  "$lib_version",
]);

/** Returns the members of an object, with the objects among them as maps too. */
export function membersOf(value: Json | undefined): Members | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const members = Object.entries(value as { readonly [name: string]: Json });
  return new Map(
    members.map(([name, one]) => [name, (membersOf(one) as unknown as Json | undefined) ?? one]),
  );
}

/** Applies the rules, changes the event, and returns the outcome. */
export function applyModel(
  { rules, privacy }: RulesFile,
  event: ModelEvent,
  request: ModelRequest,
): ModelOutcome {
  const isCookieless = privacy.cookieless && isTruthy(valueAt(event, "$cookieless_mode"));
  if (isCookieless && !setCookielessIds(event, request)) return "dropped";
  if (privacy.cutFragment || privacy.cutQuery.length > 0) cutUrls(event, privacy);
  for (const rule of rules) {
    if (!matches(rule.match, event, request)) continue;
    const outcome = applyRule(rule, event, request);
    if (outcome !== "stored") return outcome;
  }
  return "stored";
}

function isTruthy(value: Json | undefined): boolean {
  return Boolean(value);
}

/** Returns false if the event cannot have an id. */
function setCookielessIds(event: ModelEvent, request: ModelRequest): boolean {
  const textAt = (path: PropertyPath): string => {
    const value = valueAt(event, path);
    return typeof value === "string" ? value : "";
  };
  const agent = textAt("$raw_user_agent");
  const page = textAt("$current_url");
  const host = textAt("$host") || (URL.canParse(page) ? new URL(page).host : "");
  if (agent === "" || host === "") return false;
  const hash = request.visitorHashOf(textAt("$ip") || request.address, host, agent);
  const properties = event.properties!;
  event.agent = agent;
  if (event.distinctId !== undefined) event.distinctId = `cookieless_${hash}`;
  if (properties.has("distinct_id")) properties.set("distinct_id", `cookieless_${hash}`);
  properties.set("$distinct_id", `cookieless_${hash}`);
  properties.set("$device_id", `cookielessd_${hash}`);
  properties.set("$session_id", "a session id");
  properties.set("$process_person_profile", false);
  for (const name of ["$cookieless_mode", "$ip", "$raw_user_agent"]) properties.delete(name);
  return true;
}

function applyRule(
  { mode, actions }: Rule,
  event: ModelEvent,
  request: ModelRequest,
): ModelOutcome {
  if (mode === "observe") return "stored";
  for (const action of actions) {
    if (action.kind === "drop") return "dropped";
    if (action.kind === "quarantine") return "quarantined";
    if (action.kind === "sample") {
      const id = idOf(event);
      if (id !== "" && request.sampleOf(id) >= action.share) return "dropped";
    } else change(action, event, request);
  }
  return "stored";
}

function idOf({ distinctId, properties }: ModelEvent): string {
  const ids = [distinctId, properties?.get("distinct_id"), properties?.get("$distinct_id")];
  const id = ids.find((value) => value !== undefined && value !== null);
  return id === undefined ? "" : typeof id === "string" ? id : JSON.stringify(id);
}

function matches(match: Match, event: ModelEvent, request: ModelRequest): boolean {
  const { event: names, sdk, sdkVersion, lane, properties, bot } = match;
  const lib = valueAt(event, "$lib");
  const version = valueAt(event, "$lib_version");
  const sdks = sdk?.flatMap((name) => (name === "posthog-js" ? [name, "web"] : [name]));
  if (names !== undefined && !names.some((name) => isLike(name, event.name))) return false;
  if (sdks !== undefined && !sdks.some((name) => isLike(name, lib))) return false;
  if (sdkVersion !== undefined && !sdkVersion.some((one) => isLike(one, version))) return false;
  if (lane !== undefined && lane !== request.lane) return false;
  for (const [path, wanted] of properties ?? []) {
    const value = valueAt(event, path);
    if (wanted.kind === "exists" && value === undefined) return false;
    if (wanted.kind === "absent" && value !== undefined) return false;
    if (wanted.kind === "like" && !wanted.patterns.some((one) => isLike(one, value))) return false;
    if (wanted.kind === "equals" && !wanted.values.some((one) => one === value)) return false;
  }
  const agent = event.agent ?? valueAt(event, "$raw_user_agent");
  const isBot =
    typeof agent === "string" && agent !== "" ? request.isKnownBot(agent) : request.isBot;
  return bot === undefined || bot === isBot;
}

function isLike(pattern: string, text: Json | undefined): boolean {
  if (typeof text !== "string") return false;
  const parts = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join("[^]*")}$`).test(text);
}

/** Returns `$set` or `$set_once` if the path is in it, and the name of the member. */
function namesIn(path: PropertyPath): [object: string | undefined, name: string] {
  const object = ["$set", "$set_once"].find((one) => path.startsWith(`${one}.`));
  const written = object === undefined ? path : path.slice(object.length + 1);
  return [object, written.replaceAll(/\\(.)/gs, "$1")];
}

/** The objects that may have the member of a path. The value in the last one counts. */
function objectsOf(event: ModelEvent, path: PropertyPath): [Members[], string] {
  const { properties, set, setOnce } = event;
  const [object, name] = namesIn(path);
  if (object === undefined) return [properties === undefined ? [] : [properties], name];
  const inner = properties?.get(object);
  const top = object === "$set" ? set : object === "$set_once" ? setOnce : undefined;
  return [[inner, top].filter((one) => one instanceof Map) as Members[], name];
}

function valueAt(event: ModelEvent, path: PropertyPath): Json | undefined {
  const [objects, name] = objectsOf(event, path);
  const tops: ReadonlyMap<string, unknown> = new Map<string, unknown>([
    ["$set", event.set],
    ["$set_once", event.setOnce],
    ["$unset", event.unset],
  ]);
  const values = objects.filter((one) => one.has(name)).map((one) => one.get(name)!);
  return values.length > 0 ? values.at(-1) : (tops.get(path) as Json | undefined);
}

function change(
  action: Exclude<Action, { kind: "drop" | "quarantine" | "sample" }>,
  event: ModelEvent,
  { secret }: ModelRequest,
): void {
  switch (action.kind) {
    case "remove":
      for (const path of action.paths) {
        const [objects, name] = objectsOf(event, path);
        for (const object of objects) object.delete(name);
        if (path === "$set") event.set = undefined;
        if (path === "$set_once") event.setOnce = undefined;
        if (path === "$unset") event.unset = undefined;
      }
      return;
    case "keepOnly": {
      const kept = action.paths.map(namesIn).flatMap(([object, name]) => (object ? [] : [name]));
      for (const name of event.properties?.keys() ?? [])
        if (!kept.includes(name) && !read.has(name)) event.properties!.delete(name);
      return;
    }
    case "hash": {
      event.hashes ??= new Set();
      const { hashes } = event;
      for (const path of action.paths)
        replaceEach(event, path, (value) => {
          if (value === null || typeof value === "boolean") return value;
          const text = typeof value === "string" ? value : textOf(value);
          if (hashes.has(text)) return value;
          const hash = createHmac("sha256", secret).update(text).digest("hex");
          hashes.add(hash);
          return hash;
        });
      return;
    }
    case "cut":
      for (const [path, bytes] of action.bytes)
        replaceEach(event, path, (value) =>
          typeof value === "string" ? firstBytes(value, bytes) : value,
        );
      return;
    case "set":
      for (const [path, value] of action.values) setAt(event, path, value);
      return;
    case "rename":
      event.name = action.event;
  }
}

function replaceEach(event: ModelEvent, path: PropertyPath, by: (value: Json) => Json): void {
  const [objects, name] = objectsOf(event, path);
  for (const object of objects) if (object.has(name)) object.set(name, by(object.get(name)!));
}

function setAt(event: ModelEvent, path: PropertyPath, value: Scalar): void {
  const [objects, name] = objectsOf(event, path);
  const having = objects.filter((object) => object.has(name));
  if (having.length > 0) for (const object of having) object.set(name, value);
  else if (objects.length > 0) objects.at(-1)!.set(name, value);
  else {
    const added = new Map([[name, value as Json]]);
    const [object] = namesIn(path);
    if (object === "$set") event.set = added;
    else if (object === "$set_once") event.setOnce = added;
    else event.properties = added;
  }
}

function firstBytes(text: string, bytes: number): string {
  let first = "";
  for (const character of text) {
    if (Buffer.byteLength(first + character) > bytes) break;
    first += character;
  }
  return first;
}

export function textOf(value: Json | Members): string {
  return JSON.stringify(plain(value));
}

/** Returns the value with maps as objects. */
export function plain(value: unknown): unknown {
  if (value instanceof Map)
    return Object.fromEntries([...value].map(([name, one]) => [name, plain(one)]));
  return value;
}

const urlNames = [
  "$current_url",
  "$referrer",
  "$initial_current_url",
  "$initial_referrer",
  "$session_entry_url",
  "$session_entry_referrer",
];

function cutUrls(event: ModelEvent, { cutQuery, cutFragment }: RulesFile["privacy"]): void {
  const cutParameters = (text: string): string => {
    const [path = "", ...rest] = text.split("?");
    if (rest.length === 0 || cutQuery.length === 0) return text;
    if (cutQuery.includes("*")) return path;
    const all = rest.join("?").split("&");
    const left = all.filter((one) => !cutQuery.includes(decodeURIComponent(one.split("=")[0]!)));
    return left.length === 0 ? path : `${path}?${left.join("&")}`;
  };
  const cut = (value: Json): Json => {
    if (typeof value !== "string") return value;
    const [start = "", ...fragment] = value.split("#");
    const end = fragment.length === 0 || cutFragment ? "" : `#${fragment.join("#")}`;
    return cutParameters(start) + cutParameters(end);
  };
  for (const name of urlNames)
    for (const path of [name, `$set.${name}`, `$set_once.${name}`]) replaceEach(event, path, cut);
}
