// Amplitude's export (https://amplitude.com/docs/apis/analytics/export): one object a line. What
// becomes of its fields is what PostHog's own import makes of them (posthog,
// rust/batch-import-worker/src/parse/content/amplitude.rs), but where a comment says otherwise.

import type { JsonObject } from "../json-text.ts";
import { type Format, idOf, objectOf, present, textOf } from "./format.ts";

export const amplitude: Format = {
  name: "amplitude",
  title: "Amplitude's export",
  nameField: "event_type",
  recognises: (line) =>
    typeof line["event_type"] === "string" &&
    ["user_id", "device_id", "amplitude_id"].some((name) => name in line),
  convert(line) {
    const name = line["event_type"];
    if (name === "session_start") {
      return { leftOut: "session_start", detail: "Amplitude's own mark of a session, no event" };
    }
    const own = objectOf(line["event_properties"]);
    const known = objectOf(line["user_properties"]);
    const shared = sharedOf(line, own);
    const insertId = textOf(line["$insert_id"]);
    const event = {
      event: eventNames.get(name) ?? name,
      distinct_id: idOf(line["user_id"]) ?? idOf(line["device_id"]),
      timestamp: timeOf(line["event_time"] ?? line["client_event_time"]),
      properties: { ...own, ...shared, ...propertiesOf(line, own) },
      $set: notEmpty(setOf(known, shared)),
      $set_once: notEmpty(setOnceOf(known)),
    };
    const source = insertId === undefined ? undefined : ["amplitude", line["device_id"], insertId];
    return { event, uuid: line["uuid"], source };
  },
};

const eventNames: ReadonlyMap<unknown, string> = new Map([
  ["[Amplitude] Page Viewed", "$pageview"],
  ["[Amplitude] Element Clicked", "$autocapture"],
  ["[Amplitude] Element Changed", "$autocapture"],
]);

/** "2024-07-06 12:00:00.123000", which is UTC. All else stays, for the gateway to judge. */
function timeOf(time: unknown): unknown {
  return typeof time === "string" && /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?$/.test(time)
    ? `${time.replace(" ", "T")}Z`
    : time;
}

const deviceTypes: ReadonlyMap<unknown, string> = new Map([
  ["Windows", "Desktop"],
  ["Linux", "Desktop"],
  ["iOS", "Mobile"],
  ["Android", "Mobile"],
]);

/** What an event tells of itself and of its person alike. */
function sharedOf(line: JsonObject, own: JsonObject): JsonObject {
  return present({
    $os: line["device_type"],
    $browser: line["os_name"],
    $browser_version: line["os_version"],
    $device_type: deviceTypes.get(line["device_type"]),
    $current_url: own["[Amplitude] Page URL"],
    $pathname: own["[Amplitude] Page Path"],
    $referrer: own["referrer"],
    $referring_domain: own["referring_domain"],
    $geoip_city_name: line["city"],
    $geoip_subdivision_1_name: line["region"],
    $geoip_country_name: line["country"],
  });
}

function propertiesOf(line: JsonObject, own: JsonObject): JsonObject {
  const groups = groupsOf(objectOf(line["groups"]));
  return present({
    $amplitude_user_id: line["user_id"],
    $amplitude_device_id: line["device_id"],
    $device_id: line["device_id"],
    $amplitude_event_id: line["event_id"] || undefined,
    $amplitude_session_id: line["session_id"] || undefined,
    $ip: line["ip_address"],
    $host: own["[Amplitude] Page Domain"],
    $viewport_height: own["[Amplitude] Viewport Height"],
    $viewport_width: own["[Amplitude] Viewport Width"],
    $groups: notEmpty(groups),
  });
}

/** Amplitude has a list of groups for each type; an event here is of one. PostHog's drops them. */
function groupsOf(groups: JsonObject): JsonObject {
  return present(
    Object.fromEntries(
      Object.entries(groups).map(([type, of]) => [type, Array.isArray(of) ? of[0] : of]),
    ),
  );
}

/** What Amplitude writes for a property that has no value. */
const noValue = "EMPTY";
const firstTouch: ReadonlySet<string> = new Set([
  ...["initial_referrer", "initial_referring_domain", "initial_utm_source"],
  ...["initial_utm_medium", "initial_utm_campaign", "initial_utm_content"],
]);

/**
 * The person's properties as they were at the event, beside what the event tells of them. PostHog's
 * import leaves the former out, and they would be lost. Where none is to be left out, they are
 * copied as a whole, which takes less time.
 */
function setOf(known: JsonObject, shared: JsonObject): JsonObject {
  for (const name in known) {
    if (isKept(name, known[name])) continue;
    const kept = Object.entries(known).filter(([other, value]) => isKept(other, value));
    return { ...Object.fromEntries(kept), ...shared };
  }
  return { ...known, ...shared };
}

function isKept(name: string, value: unknown): boolean {
  return value !== noValue && !firstTouch.has(name);
}

/** The names are written out: to make them anew for each line takes 1.3 µs. */
function setOnceOf(known: JsonObject): JsonObject {
  const told = (name: string): unknown => (known[name] === noValue ? undefined : known[name]);
  return present({
    $initial_referrer: told("initial_referrer"),
    $initial_referring_domain: told("initial_referring_domain"),
    $initial_utm_source: told("initial_utm_source"),
    $initial_utm_medium: told("initial_utm_medium"),
    $initial_utm_campaign: told("initial_utm_campaign"),
    $initial_utm_content: told("initial_utm_content"),
  });
}

function notEmpty(object: JsonObject): JsonObject | undefined {
  return Object.keys(object).length > 0 ? object : undefined;
}
