// Mixpanel's raw export (https://docs.mixpanel.com/reference/raw-event-export): one object a line,
// {"event","properties"}. The names that change are those that PostHog's own import changes
// (posthog, rust/batch-import-worker/src/parse/content/mixpanel.rs).

import { type JsonObject, numberOf } from "../json-text.ts";
import { type Format, idOf, objectOf, present, textOf } from "./format.ts";

export const mixpanel: Format = {
  name: "mixpanel",
  title: "Mixpanel's export",
  recognises: ({ event, properties, distinct_id: ownId }) =>
    typeof event === "string" && ownId === undefined && "time" in objectOf(properties),
  convert(line) {
    const sent = objectOf(line["properties"]);
    const { distinct_id: sentId } = sent;
    const time = numberOf(sent["time"]) ?? sent["time"];
    const distinct_id = distinctIdOf(sent);
    const name = line["event"];
    const event = name === "$mp_web_page_view" ? "$pageview" : name;
    const properties = { ...propertiesOf(sent), ...linkOf(name, sent) };
    const insertId = idOf(sent["$insert_id"]);
    return {
      event: {
        ...{ event, timestamp: timeOf(sent["time"]), properties },
        ...identityOf(name, sent, distinct_id),
      },
      // These four are what Mixpanel itself tells repeats by
      // (https://docs.mixpanel.com/reference/import-events#event-deduplication).
      source: insertId === undefined ? undefined : ["mixpanel", name, time, sentId, insertId],
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

/** A number above this is milliseconds, as in PostHog's import. */
const secondsMax = 10_000_000_000;
const timeMsMax = 8_640_000_000_000_000;

/** Seconds since 1970, or milliseconds. What is neither stays, for the gateway to judge. */
function timeOf(sent: unknown): unknown {
  const time = numberOf(sent);
  if (time === undefined) return sent;
  const ms = time > secondsMax ? time : time * 1_000;
  return Math.abs(ms) > timeMsMax ? sent : new Date(ms).toISOString();
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
