// Mixpanel's raw export (https://docs.mixpanel.com/reference/raw-event-export): one object a line,
// {"event","properties"}. The names that change are those that PostHog's own import changes
// (posthog, rust/batch-import-worker/src/parse/content/mixpanel.rs).

import type { JsonObject } from "../json-text.ts";
import { type Format, idOf, objectOf, textOf } from "./format.ts";

export const mixpanel: Format = {
  name: "mixpanel",
  title: "Mixpanel's export",
  recognises: ({ event, properties, distinct_id: ownId }) =>
    typeof event === "string" && ownId === undefined && "time" in objectOf(properties),
  convert(line) {
    const sent = objectOf(line["properties"]);
    const { time, distinct_id: _, ...others } = sent;
    const distinct_id = distinctIdOf(sent);
    const event = eventNames[String(line["event"])] ?? line["event"];
    const properties = Object.fromEntries(
      Object.entries(others)
        .filter(([name]) => !dropped.has(name))
        .map(([name, value]) => [propertyNames[name] ?? name, value]),
    );
    const insertId = idOf(sent["$insert_id"]);
    return {
      event: {
        event,
        timestamp: timeOf(time),
        ...identityOf(line["event"], sent, distinct_id),
        properties: { ...properties, ...linkOf(line["event"], sent) },
      },
      // These four are what Mixpanel itself tells repeats by
      // (https://docs.mixpanel.com/reference/import-events#event-deduplication).
      source:
        insertId === undefined
          ? undefined
          : ["mixpanel", line["event"], time, sent["distinct_id"], insertId],
    };
  },
};

const eventNames: Readonly<Record<string, string>> = { $mp_web_page_view: "$pageview" };

const propertyNames: Readonly<Record<string, string>> = {
  $city: "$geoip_city_name",
  $region: "$geoip_subdivision_1_name",
  mp_country_code: "$geoip_country_code",
};

const dropped = new Set([
  "$mp_api_endpoint",
  "mp_processing_time_ms",
  "$insert_id",
  "$geo_source",
  "$mp_api_timestamp_ms",
]);

/** A number above this is milliseconds, as in PostHog's import. */
const secondsMax = 10_000_000_000;
const timeMsMax = 8_640_000_000_000_000;

/** Seconds since 1970, or milliseconds. */
function timeOf(time: unknown): string | undefined {
  if (typeof time !== "number") return undefined;
  const ms = time > secondsMax ? time : time * 1_000;
  return Math.abs(ms) > timeMsMax ? undefined : new Date(ms).toISOString();
}

/** Ids that are Mixpanel's own for a device: "$device:…", or a UUID in upper case. */
const deviceId = /^(?:\$device:|[A-Z0-9-]+$)/;

/**
 * The id under which the event was sent, where Mixpanel has replaced it by one of its own. As
 * PostHog's import does.
 */
function distinctIdOf(properties: JsonObject): unknown {
  const distinctId = idOf(properties["distinct_id"]);
  const before = textOf(properties["$distinct_id_before_identity"]);
  if (before === undefined) return distinctId;
  if (distinctId === undefined) return before;
  return typeof distinctId === "string" && deviceId.test(distinctId) ? before : distinctId;
}

/**
 * A `$identify` of Mixpanel's original id merge is of the user, and names the visitor
 * (https://docs.mixpanel.com/reference/create-identity).
 */
function identityOf(
  event: unknown,
  properties: JsonObject,
  distinct_id: unknown,
): { readonly distinct_id: unknown } {
  const identified = event === "$identify" ? idOf(properties["$identified_id"]) : undefined;
  return { distinct_id: identified ?? distinct_id };
}

function linkOf(event: unknown, properties: JsonObject): JsonObject {
  const visitor = event === "$identify" ? idOf(properties["$anon_id"]) : undefined;
  return visitor === undefined ? {} : { $anon_distinct_id: visitor };
}
