// The calls of Segment and RudderStack (https://segment.com/docs/connections/spec/). They are
// converted as in RudderStack's PostHog destination (rudder-transformer,
// src/v0/destinations/posthog).

import type { JsonObject } from "../json-text.ts";
import { timeOf } from "../times.ts";
import {
  type Conversion,
  type Converted,
  eventIdOf,
  type Format,
  idOf,
  idTextOf,
  objectIn,
  objectOf,
  present,
  textOf,
} from "./format.ts";

const calls = ["track", "identify", "page", "screen", "group", "alias"];

export const segment: Format = {
  name: "segment",
  title: "calls of Segment or RudderStack",
  recognises: ({ type, event_type: amplitudeName, ...line }) =>
    calls.some((call) => call === type) &&
    amplitudeName === undefined &&
    ["messageId", "anonymousId", "userId"].some((name) => name in line),
  convert(line, conversion) {
    const converted = eventOf(line, conversion);
    if (converted === undefined) {
      const type = JSON.stringify(line["type"]) ?? "none";
      return { skipped: "unknown_call", detail: `unknown type of call: ${type}` };
    }
    const messageId = eventIdOf(line["messageId"]);
    const timestamp = timeOf(timeNames.map((name) => line[name]));
    const { $set, ...event } = converted;
    // A `$groupidentify` does not change a person.
    const isOfGroup = line["type"] === "group" && $set !== undefined;
    const properties = present({ $groups: event.properties["$groups"] });
    const ofUser = { event: "$set", distinct_id: event.distinct_id, timestamp, properties, $set };
    return {
      event: { timestamp, ...(isOfGroup ? event : converted) },
      also: isOfGroup ? ofUser : undefined,
      uuid: messageId,
      source: messageId === undefined ? undefined : ["segment", idTextOf(messageId)],
    };
  },
};

/**
 * The fields of the time, best first. Segment's `timestamp` is the `originalTimestamp`, corrected
 * by the error of the client's clock.
 */
const timeNames = [
  "timestamp",
  "originalTimestamp",
  "original_timestamp",
  "sentAt",
  "sent_at",
  "receivedAt",
  "received_at",
];

type SegmentEvent = Extract<Converted, { readonly event: unknown }>["event"];

interface Ids {
  readonly userId: unknown;
  readonly anonymousId: unknown;
}

function eventOf(line: JsonObject, conversion: Conversion): SegmentEvent | undefined {
  const userId = idOf(line["userId"]);
  const anonymousId = idOf(line["anonymousId"]);
  const distinct_id = userId ?? anonymousId;
  const context = objectIn("context", line["context"], conversion);
  const traits = objectIn("context.traits", context["traits"], conversion);
  const properties = objectIn("properties", line["properties"], conversion);
  const base = {
    ...contextProperties(line, context, conversion),
    ...properties,
    ...groupsOf(properties, context, conversion),
  };
  const ownTraits = objectIn("traits", line["traits"], conversion);
  // The traits of a group call belong to the group. The traits in its context belong to the user.
  const known = line["type"] === "group" ? traits : { ...traits, ...ownTraits };
  const $set = Object.keys(known).length > 0 ? known : undefined;
  switch (line["type"]) {
    case "track":
      return { event: line["event"], distinct_id, properties: base, $set };
    case "page":
      return { event: "$pageview", distinct_id, properties: pageProperties(line, base), $set };
    case "screen": {
      const $screen_name = textOf(line["name"]) ?? textOf(line["event"]) ?? base["name"];
      return { event: "$screen", distinct_id, properties: { ...base, $screen_name }, $set };
    }
    case "identify":
      return identified({ userId, anonymousId }, base, known);
    case "group": {
      const key = idOf(line["groupId"]) ?? idOf(context["groupId"]);
      const { groupType } = conversion;
      return { distinct_id, ...grouped(base, { key, groupType, traits: ownTraits }), $set };
    }
    case "alias":
      return {
        ...aliased({ userId, anonymousId }, idOf(line["previousId"]), base),
        $set,
      };
    default:
      return undefined;
  }
}

/**
 * Converts an alias call. In `$create_alias`, `alias` is the main id of the person. The event
 * belongs to the previous id.
 */
function aliased(
  { userId, anonymousId }: Ids,
  previousId: unknown,
  base: JsonObject,
): SegmentEvent {
  const main = userId ?? anonymousId ?? previousId;
  const before = [previousId, anonymousId].find(
    (id) => id !== undefined && idTextOf(id) !== idTextOf(main),
  );
  return {
    event: "$create_alias",
    distinct_id: before ?? main,
    properties: before === undefined ? base : { ...base, alias: main },
  };
}

function groupsOf(
  properties: JsonObject,
  context: JsonObject,
  conversion: Conversion,
): JsonObject | undefined {
  const key = idOf(context["groupId"]);
  if (key === undefined) return undefined;
  const own = objectIn("properties.$groups", properties["$groups"], conversion);
  return { $groups: { [conversion.groupType]: key, ...own } };
}

function pageProperties(line: JsonObject, base: JsonObject): JsonObject {
  const own = present({
    $current_url: base["url"],
    $pathname: base["path"],
    $referrer: base["referrer"],
    title: base["title"] ?? line["name"],
  });
  return { ...base, ...own };
}

/**
 * Converts an identify call. Without a user id, the call sets properties of a visitor and links
 * nothing. With both ids, the visitor is linked to the user, as in posthog-js.
 */
function identified(
  { userId, anonymousId }: Ids,
  base: JsonObject,
  traits: JsonObject,
): SegmentEvent {
  if (userId === undefined) {
    return { event: "$set", distinct_id: anonymousId, properties: base, $set: traits };
  }
  const isLink = anonymousId !== undefined && anonymousId !== userId;
  const properties = isLink ? { ...base, $anon_distinct_id: anonymousId } : base;
  return { event: "$identify", distinct_id: userId, properties, $set: traits };
}

function grouped(
  base: JsonObject,
  { key, groupType, traits }: { key: unknown; groupType: string; traits: JsonObject },
): Pick<SegmentEvent, "event" | "properties"> {
  const { groupType: ownType, ...set } = traits;
  const type = typeof ownType === "number" ? String(ownType) : (textOf(ownType) ?? groupType);
  const $groups = { ...objectOf(base["$groups"]), [type]: key };
  const properties = {
    ...base,
    $group_type: type,
    $group_key: key,
    $group_set: set,
    ...(key === undefined ? {} : { $groups }),
  };
  return { event: "$groupidentify", properties };
}

function contextProperties(
  line: JsonObject,
  context: JsonObject,
  conversion: Conversion,
): JsonObject {
  const part = (name: string): JsonObject => objectIn(`context.${name}`, context[name], conversion);
  const page = part("page");
  const device = part("device");
  const os = part("os");
  const app = part("app");
  const screen = part("screen");
  const library = part("library");
  const campaign = part("campaign");
  return present({
    $current_url: page["url"],
    $pathname: page["path"],
    $referrer: page["referrer"],
    $host: hostOf(page["url"]),
    $os: os["name"],
    $os_version: os["version"],
    $screen_height: screen["height"],
    $screen_width: screen["width"],
    $lib: library["name"],
    $lib_version: library["version"],
    $device_id: device["id"],
    $device_manufacturer: device["manufacturer"],
    $device_model: device["model"],
    $device_name: device["name"],
    $ip: context["ip"] ?? line["request_ip"],
    $timezone: context["timezone"],
    $locale: context["locale"],
    $useragent: context["userAgent"],
    $app_name: app["name"],
    $app_version: app["version"],
    $app_build: app["build"],
    $app_namespace: app["namespace"],
    $network_carrier: part("network")["carrier"],
    utm_source: campaign["source"],
    utm_medium: campaign["medium"],
    utm_campaign: campaign["name"],
    utm_content: campaign["content"],
    utm_term: campaign["term"],
  });
}

function hostOf(url: unknown): string | undefined {
  return typeof url === "string" && URL.canParse(url) ? new URL(url).host : undefined;
}
