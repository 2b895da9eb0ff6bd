// Mixpanel's raw export (https://docs.mixpanel.com/reference/raw-event-export): one object a line,
// {"event","properties"}. The names that change are those that PostHog's own import changes
// (posthog, rust/batch-import-worker/src/parse/content/mixpanel.rs).

import { type JsonObject, numberOf } from "../json-text.ts";
import { readTime, timeOf } from "../times.ts";
import {
  type Conversion,
  type Converted,
  decoded,
  eventIdOf,
  type Format,
  idOf,
  type Link,
  objectIn,
  objectOf,
  present,
} from "./format.ts";

export const mixpanel: Format = {
  name: "mixpanel",
  title: "Mixpanel's export",
  hasLocalTimes: true,
  recognises: ({ event, properties, distinct_id: ownId }) =>
    typeof event === "string" && ownId === undefined && "time" in objectOf(decoded(properties)),
  convert(line, conversion) {
    const sent = objectIn("properties", line["properties"], conversion);
    const name = line["event"];
    const time = timeIn(sent);
    const insertId = eventIdOf(sent["$insert_id"]);
    const source =
      insertId === undefined
        ? undefined
        : ["mixpanel", name, secondOf(time), senderOf(sent), insertId];
    const timestamp = timeOf([time], conversion.timeZone);
    if (name === "$merge") return merged(sent, timestamp, source);
    const ids = name === "$identify" ? identified(sent) : { distinct_id: distinctIdOf(sent) };
    const { distinct_id, visitor } = { visitor: undefined, ...ids };
    const event = name === "$mp_web_page_view" ? "$pageview" : name;
    const properties = { ...propertiesOf(sent), ...present({ $anon_distinct_id: visitor }) };
    const link = name === "$identify" ? undefined : deviceLink(sent, timestamp, conversion);
    return {
      event: { event, distinct_id, timestamp, properties },
      source,
      ...(link === undefined ? {} : { links: [link] }),
    };
  },
};

function propertiesOf(sent: JsonObject): JsonObject {
  const {
    time: _time,
    distinct_id: _distinctId,
    $insert_id: _insertId,
    $mp_api_endpoint: _endpoint,
    $mp_api_timestamp_ms: _sentAt,
    mp_processing_time_ms: _processedAt,
    $geo_source: _geoSource,
    $city: $geoip_city_name,
    $region: $geoip_subdivision_1_name,
    mp_country_code: $geoip_country_code,
    ...others
  } = sent;
  const places = { $geoip_city_name, $geoip_subdivision_1_name, $geoip_country_code };
  return { ...others, ...present(places) };
}

/** A number that is more likely a year or a day than a time from 1970 to 1973. */
const yearOrDay = /^(?:19|20)\d\d(?:[01]\d[0-3]\d)?$/;

/**
 * The time of an event. Mixpanel has no unit smaller than milliseconds, so a number that is too
 * small to show its unit is in seconds.
 */
function timeIn(sent: JsonObject): unknown {
  const time = sent["time"];
  const number = numberOf(time) ?? 0;
  if (number < 1 || number >= 1e8 || yearOrDay.test(String(number))) return time;
  // Without a zone, as the number is.
  return new Date(number * 1_000).toISOString().slice(0, -1);
}

/**
 * The second of an event, as the line has it: an export may have text, seconds or milliseconds, and
 * all of them give the same.
 */
function secondOf(time: unknown): unknown {
  const { ms } = readTime(time);
  return Number.isNaN(ms) ? time : Math.floor(ms / 1_000);
}

const devicePrefix = "$device:";
/** Ids that are Mixpanel's own for a device: "$device:…", or a UUID in upper case. */
const deviceId = /^(?:\$device:|[A-Z0-9-]+$)/;

/**
 * The id under which the event was sent, where Mixpanel has replaced it by one of its own. As
 * PostHog's import does, except for what a device sent before its user was known: that stays the
 * device's, so that an export from before and one from after are of the same event. The user's
 * events link the device. Without any id, it is that of Simplified ID Merge.
 */
function distinctIdOf(sent: JsonObject): unknown {
  const distinctId = idOf(sent["distinct_id"]);
  const before = idOf(sent["$distinct_id_before_identity"]);
  if (distinctId === undefined) return before ?? idOf(sent["$user_id"]) ?? visitorOf(sent);
  if (before === undefined) return distinctId;
  if (before === visitorOf(sent)) return before;
  return typeof distinctId === "string" && deviceId.test(distinctId) ? before : distinctId;
}

/** The distinct id of what a device sent before its user was known, in Simplified ID Merge. */
function visitorOf(sent: JsonObject): string | undefined {
  const device = idOf(sent["$device_id"]);
  if (device === undefined) return undefined;
  const text = String(device);
  // In Original ID Merge the device's id may be the distinct id as it is.
  const isPlain = sent["$distinct_id_before_identity"] === text;
  return isPlain || text.startsWith(devicePrefix) ? text : `${devicePrefix}${text}`;
}

/**
 * What stays the same in all exports of who sent the event: `distinct_id` becomes the user's once
 * that is known.
 */
function senderOf(sent: JsonObject): unknown {
  const id =
    idOf(sent["$device_id"]) ?? idOf(sent["$distinct_id_before_identity"]) ?? sent["distinct_id"];
  return typeof id === "string" && id.startsWith(devicePrefix) ? id.slice(devicePrefix.length) : id;
}

/**
 * A `$identify` is of the user, and names the visitor: in Original ID Merge
 * (https://docs.mixpanel.com/reference/create-identity), as SDKs send it, or by the device.
 */
function identified(sent: JsonObject): { distinct_id: unknown; visitor: unknown } {
  const distinct_id = idOf(sent["$identified_id"]) ?? idOf(sent["$user_id"]) ?? distinctIdOf(sent);
  const visitor = idOf(sent["$anon_id"]) ?? idOf(sent["$anon_distinct_id"]) ?? visitorOf(sent);
  return { distinct_id, visitor: visitor === distinct_id ? undefined : visitor };
}

/**
 * Simplified ID Merge links a device to the user of any event that has both ids
 * (https://docs.mixpanel.com/docs/tracking-methods/id-management/identifying-users-simplified).
 */
function deviceLink(
  sent: JsonObject,
  timestamp: unknown,
  { isNewLink }: Conversion,
): Link | undefined {
  const user = idOf(sent["$user_id"]);
  const visitor = visitorOf(sent);
  if (user === undefined || visitor === undefined || user === visitor) return undefined;
  const source = ["mixpanel link", visitor, user];
  if (!isNewLink(JSON.stringify(source))) return undefined;
  const properties = { $anon_distinct_id: visitor };
  // Without `$set` a `$identify` is stored with a warning.
  return {
    event: { event: "$identify", distinct_id: user, timestamp, properties, $set: {} },
    source,
  };
}

/**
 * A `$merge` makes one person of two (https://docs.mixpanel.com/reference/identity-merge). The main
 * id is that of a user, where one of the two is a device.
 */
function merged(
  sent: JsonObject,
  timestamp: unknown,
  source: readonly unknown[] | undefined,
): Converted {
  const named = decoded(sent["$distinct_ids"]);
  const ids = [...new Set(Array.isArray(named) ? named.map(idOf) : [])].filter(
    (id) => typeof id === "string" || typeof id === "number",
  );
  const isUser = (id: unknown): boolean => typeof id !== "string" || !deviceId.test(id);
  const ranked = [sent["distinct_id"], ...ids.filter(isUser), ...ids];
  const main = ranked.find((id) => ids.some((one) => one === id) && isUser(id)) ?? ids[0];
  const [first, ...more] = ids.filter((id) => id !== main);
  if (first === undefined) {
    const detail = "$distinct_ids must have two ids: nothing to merge";
    return { leftOut: "merge_without_ids", detail };
  }
  const eventOf = (id: unknown) => ({
    ...{ event: "$merge_dangerously", distinct_id: id, timestamp },
    properties: { ...propertiesOf(sent), alias: main },
  });
  return {
    event: eventOf(first),
    source: source ?? ["mixpanel merge", secondOf(timeIn(sent)), first, main],
    links: more.map((id) => ({ event: eventOf(id), source: ["mixpanel merge", id, main] })),
  };
}
