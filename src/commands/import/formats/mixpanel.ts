// Mixpanel's raw export (https://docs.mixpanel.com/reference/raw-event-export). The properties are
// renamed as in PostHog's own import (posthog,
// rust/batch-import-worker/src/parse/content/mixpanel.rs).

import { type JsonObject, numberOf } from "../json-text.ts";
import { readTime, timeOf } from "../times.ts";
import {
  type Conversion,
  type Converted,
  decoded,
  eventIdOf,
  type Format,
  idOf,
  idTextOf,
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
    const insertId = idTextOf(eventIdOf(sent["$insert_id"]));
    const source =
      insertId === undefined
        ? undefined
        : ["mixpanel", name, secondOf(time), senderOf(sent), insertId];
    const timestamp = timeOf([time], conversion.timeZone);
    noteIds(sent, conversion);
    if (name === "$merge") return merged({ sent, timestamp, source }, conversion);
    const isUser = userTest(conversion);
    const ids =
      name === "$identify" ? identified(sent, isUser) : { distinct_id: distinctIdOf(sent, isUser) };
    const { distinct_id, visitor } = { visitor: undefined, ...ids };
    if (visitor !== undefined) isNewLink({ visitor, user: distinct_id }, conversion);
    const event = name === "$mp_web_page_view" ? "$pageview" : name;
    const properties = { ...propertiesOf(sent), ...present({ $anon_distinct_id: visitor }) };
    const links = pairsOf(sent, isUser)
      .filter((pair) => isNewLink(pair, conversion))
      .map((pair) => linkOf(pair, timestamp));
    return { event: { event, distinct_id, timestamp, properties }, source, links };
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

/** Matches numbers such as 2024 or 20240706, which are probably a year or a day. */
const yearOrDay = /^(?:19|20)\d\d(?:[01]\d[0-3]\d)?$/;

/** Returns the time. If the unit of a number is uncertain, it is in seconds. */
function timeIn(sent: JsonObject): unknown {
  const time = sent["time"];
  const number = numberOf(time) ?? 0;
  if (number < 1 || number >= 1e8 || yearOrDay.test(String(number))) return time;
  return new Date(number * 1_000).toISOString().slice(0, -1);
}

function secondOf(time: unknown): unknown {
  const { ms } = readTime(time);
  return Number.isNaN(ms) ? time : Math.floor(ms / 1_000);
}

const devicePrefix = "$device:";
/** Matches ids of devices: a UUID, or a longer id of Mixpanel's older browser SDK. */
const deviceForm = /^(?=.{32})[0-9a-f]+(?:-[0-9a-f]+){4}$/i;

function noteIds(sent: JsonObject, { shown }: Conversion): void {
  for (const name of ["$device_id", "$anon_id", "$anon_distinct_id"]) {
    const device = idTextOf(sent[name]);
    if (device !== undefined && !deviceForm.test(device)) shown.add("device", device);
  }
  for (const name of ["$user_id", "$identified_id"]) {
    const user = idTextOf(sent[name]);
    if (user !== undefined) shown.add("user", user);
  }
}

type UserTest = (id: unknown) => boolean;

function userTest({ shown }: Conversion): UserTest {
  return (id) => {
    const text = String(idTextOf(id));
    if (text.startsWith(devicePrefix)) return false;
    return shown.has("user", text) || !(deviceForm.test(text) || shown.has("device", text));
  };
}

/**
 * Returns the id with which the event was sent, even if Mixpanel has replaced it. So an export from
 * before a login and an export from after the login contain the same event.
 */
function distinctIdOf(sent: JsonObject, isUser: UserTest): unknown {
  const distinctId = idOf(sent["distinct_id"]);
  const before = idOf(sent["$distinct_id_before_identity"]);
  if (distinctId === undefined) return before ?? idOf(sent["$user_id"]) ?? visitorOf(sent);
  if (before === undefined) return distinctId;
  return isSame(before, visitorOf(sent)) || !isUser(distinctId) ? before : distinctId;
}

function visitorOf(sent: JsonObject): string | undefined {
  const text = idTextOf(sent["$device_id"]);
  if (text === undefined) return undefined;
  const isPlain = idTextOf(sent["$distinct_id_before_identity"]) === text;
  return isPlain || text.startsWith(devicePrefix) ? text : `${devicePrefix}${text}`;
}

/**
 * Returns the sender, which is the same in all exports. `distinct_id` is not used, because it
 * changes when the user is identified.
 */
function senderOf(sent: JsonObject): string | undefined {
  const id =
    idTextOf(sent["$device_id"]) ??
    idTextOf(sent["$distinct_id_before_identity"]) ??
    idTextOf(sent["distinct_id"]);
  return id?.startsWith(devicePrefix) === true ? id.slice(devicePrefix.length) : id;
}

/**
 * Converts an event that identifies a user. The names of the ids are from Original ID Merge
 * (https://docs.mixpanel.com/reference/create-identity) or from the SDKs.
 */
function identified(
  sent: JsonObject,
  isUser: UserTest,
): { distinct_id: unknown; visitor: unknown } {
  const distinct_id =
    idOf(sent["$identified_id"]) ?? idOf(sent["$user_id"]) ?? distinctIdOf(sent, isUser);
  const visitor = idOf(sent["$anon_id"]) ?? idOf(sent["$anon_distinct_id"]) ?? visitorOf(sent);
  return { distinct_id, visitor: isSame(visitor, distinct_id) ? undefined : visitor };
}

function isSame(one: unknown, other: unknown): boolean {
  return idTextOf(one) === idTextOf(other);
}

interface Pair {
  readonly visitor: unknown;
  readonly user: unknown;
}

/**
 * Returns the pairs of linked ids. In Simplified ID Merge, an event with a device and a user links
 * both
 * (https://docs.mixpanel.com/docs/tracking-methods/id-management/identifying-users-simplified).
 */
function pairsOf(sent: JsonObject, isUser: UserTest): Pair[] {
  const canonical = idOf(sent["distinct_id"]);
  const before = idOf(sent["$distinct_id_before_identity"]);
  const isReplaced = before !== undefined && !isUser(canonical) && isUser(before);
  return [
    { visitor: visitorOf(sent), user: idOf(sent["$user_id"]) },
    isReplaced ? { visitor: canonical, user: before } : { visitor: before, user: canonical },
  ].filter(
    ({ visitor, user }) => visitor !== undefined && user !== undefined && !isSame(visitor, user),
  );
}

function linkSource({ visitor, user }: Pair): readonly unknown[] {
  return ["mixpanel link", idTextOf(visitor), idTextOf(user)];
}

function isNewLink(pair: Pair, { shown }: Conversion): boolean {
  return shown.add("link", JSON.stringify(linkSource(pair)));
}

function linkOf(pair: Pair, timestamp: unknown): Link {
  const properties = { $anon_distinct_id: pair.visitor };
  // A `$identify` without `$set` would be stored with a warning.
  return {
    event: { event: "$identify", distinct_id: pair.user, timestamp, properties, $set: {} },
    source: linkSource(pair),
  };
}

interface Merge {
  readonly sent: JsonObject;
  readonly timestamp: unknown;
  readonly source: readonly unknown[] | undefined;
}

/**
 * Converts a `$merge` of two persons (https://docs.mixpanel.com/reference/identity-merge). If only
 * one of the ids belongs to a user, this id becomes the main id.
 */
function merged({ sent, timestamp, source }: Merge, conversion: Conversion): Converted {
  const named = decoded(sent["$distinct_ids"]);
  const byText = new Map<string | undefined, unknown>();
  for (const id of Array.isArray(named) ? named : [])
    if (typeof id === "string" || numberOf(id) !== undefined) byText.set(idTextOf(id), idOf(id));
  byText.delete(undefined);
  const ids = [...byText.values()];
  const isUser = userTest(conversion);
  const own = byText.get(idTextOf(sent["distinct_id"]));
  const main = [own, ...ids].find((id) => id !== undefined && isUser(id)) ?? own ?? ids[0];
  const [first, ...more] = ids.filter((id) => id !== main);
  if (first === undefined) {
    const detail = "$distinct_ids must have at least two ids: nothing to merge";
    return { skipped: "merge_without_ids", detail };
  }
  const eventOf = (id: unknown, properties: JsonObject) => ({
    event: "$merge_dangerously",
    distinct_id: id,
    timestamp,
    properties: { ...properties, alias: main },
  });
  const sourceOf = (...of: unknown[]): readonly unknown[] => ["mixpanel merge", ...of];
  const [mainText, firstText] = [idTextOf(main), idTextOf(first)];
  return {
    event: eventOf(first, propertiesOf(sent)),
    source: source ?? sourceOf(secondOf(timeIn(sent)), firstText, mainText),
    links: more.map((id) => ({
      event: eventOf(id, {}),
      source: sourceOf(idTextOf(id), mainText),
    })),
  };
}
