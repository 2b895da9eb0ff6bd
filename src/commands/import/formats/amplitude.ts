// Amplitude's export (https://amplitude.com/docs/apis/analytics/export). It is converted as in
// PostHog's own import (posthog, rust/batch-import-worker/src/parse/content/amplitude.rs).

import type { JsonObject } from "../json-text.ts";
import { readTime, timeOf } from "../times.ts";
import {
  type Conversion,
  decoded,
  eventIdOf,
  type Format,
  idOf,
  idTextOf,
  objectIn,
  present,
} from "./format.ts";

export const amplitude: Format = {
  name: "amplitude",
  title: "Amplitude's export",
  nameField: "event_type",
  recognises: (line) =>
    typeof line["event_type"] === "string" &&
    ["user_id", "device_id", "amplitude_id"].some((name) => name in line),
  convert(line, conversion) {
    const name = line["event_type"];
    if (name === "session_start") {
      return {
        skipped: "session_start",
        detail: "Amplitude's own session marker, which is not an event",
      };
    }
    const own = objectIn("event_properties", line["event_properties"], conversion);
    const known = objectIn("user_properties", line["user_properties"], conversion);
    const shared = sharedOf(line, own);
    const event = {
      event: eventNames.get(name) ?? name,
      distinct_id: idOf(line["user_id"]) ?? idOf(line["device_id"]),
      timestamp: timestampOf(line),
      properties: { ...own, ...shared, ...propertiesOf(line, own, conversion) },
      $set: notEmpty(setOf(known, shared)),
      $set_once: notEmpty(setOnceOf(known)),
    };
    if (notEmpty(objectIn("group_properties", line["group_properties"], conversion)) !== undefined)
      conversion.lost("group_properties", "group_properties are not imported");
    return { event, uuid: eventIdOf(line["uuid"]), source: sourceOf(line) };
  },
};

/**
 * Returns the ids that identify the event. Amplitude deduplicates by `$insert_id` and device. If
 * there is no `$insert_id`, the event number of the SDK on the device is used.
 */
function sourceOf(line: JsonObject): readonly unknown[] | undefined {
  const device = line["device_id"];
  const sender = idTextOf(device) ?? idTextOf(line["user_id"]) ?? device;
  const insertId = idTextOf(eventIdOf(line["$insert_id"]));
  if (insertId !== undefined) return ["amplitude", sender, insertId];
  const { event_type: name, event_time: time } = line;
  const [number, session] = [line["event_id"], line["session_id"]].map(numberIfText);
  if (!number || idOf(time) === undefined) return undefined;
  return ["amplitude", sender, session, number, name, exportedTime(time)];
}

function numberIfText(value: unknown): unknown {
  return typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
}

function exportedTime(time: unknown): unknown {
  if (typeof time === "string" && /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}$/.test(time)) return time;
  const { ms } = readTime(time);
  if (Number.isNaN(ms)) return time;
  return new Date(ms).toISOString().replace("T", " ").replace("Z", "000");
}

const eventNames: ReadonlyMap<unknown, string> = new Map([
  ["[Amplitude] Page Viewed", "$pageview"],
  ["[Amplitude] Element Clicked", "$autocapture"],
  ["[Amplitude] Element Changed", "$autocapture"],
]);

const timeNames = [
  "event_time",
  "client_event_time",
  "server_received_time",
  "client_upload_time",
  "server_upload_time",
  "processed_time",
];

/** Returns the time. If it has no time zone, such as "2024-07-06 12:00:00.123000", it is in UTC. */
function timestampOf(line: JsonObject): unknown {
  const time = timeOf(timeNames.map((name) => line[name]));
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

function propertiesOf(line: JsonObject, own: JsonObject, conversion: Conversion): JsonObject {
  const groups = groupsOf(objectIn("groups", line["groups"], conversion), conversion);
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

/** Amplitude allows several groups per type, but a Penstock event can have only one. */
function groupsOf(groups: JsonObject, { lost }: Conversion): JsonObject {
  const ofType = ([type, of]: [string, unknown]): [string, unknown] => {
    const list = decoded(of);
    if (!Array.isArray(list)) return [type, of];
    if (list.length > 1)
      lost(
        "more_groups",
        `groups has ${list.length} of the type ${type}: only the first is stored`,
      );
    return [type, list[0]];
  };
  return present(Object.fromEntries(Object.entries(groups).map(ofType)));
}

const noValue = "EMPTY";
const firstTouch: ReadonlySet<string> = new Set([
  "initial_referrer",
  "initial_referring_domain",
  "initial_utm_source",
  "initial_utm_medium",
  "initial_utm_campaign",
  "initial_utm_content",
]);

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

/** The names are literals, because building them would take 1.3 µs per line. */
function setOnceOf(known: JsonObject): JsonObject {
  const initial = (name: string): unknown => (known[name] === noValue ? undefined : known[name]);
  return present({
    $initial_referrer: initial("initial_referrer"),
    $initial_referring_domain: initial("initial_referring_domain"),
    $initial_utm_source: initial("initial_utm_source"),
    $initial_utm_medium: initial("initial_utm_medium"),
    $initial_utm_campaign: initial("initial_utm_campaign"),
    $initial_utm_content: initial("initial_utm_content"),
  });
}

function notEmpty(object: JsonObject): JsonObject | undefined {
  return Object.keys(object).length > 0 ? object : undefined;
}
