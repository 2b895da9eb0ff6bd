import { describe, expect, test } from "vitest";
import {
  detectFormat,
  formatNamed,
  formatNames,
} from "../../../../src/commands/import/formats/detect.ts";
import type { JsonObject } from "../../../../src/commands/import/json-text.ts";
import { bodiesOf } from "../bodies.ts";

const uuid = "018f0000-0000-7000-8000-000000000001";
const time = "2024-07-06T12:00:00.000Z";

interface Case {
  readonly of: string;
  readonly format: string;
  readonly line: JsonObject;
  readonly sent: JsonObject;
  readonly links?: readonly JsonObject[];
}

const cases: readonly Case[] = [
  {
    of: "a stored record",
    format: "penstock",
    line: {
      uuid,
      project_id: "demo",
      event: "seen",
      distinct_id: "u",
      timestamp: time,
      received_at: time,
      ip: "1.2.3.4",
      kind: "custom",
      person_profile: true,
      historical: false,
      properties: { a: 1 },
      $set: { b: 2 },
    },
    sent: {
      uuid,
      project_id: "demo",
      event: "seen",
      distinct_id: "u",
      timestamp: time,
      received_at: time,
      ip: "1.2.3.4",
      kind: "custom",
      person_profile: true,
      historical: false,
      properties: { a: 1 },
      $set: { b: 2 },
    },
  },
  {
    of: "an event of PostHog's capture",
    format: "posthog",
    line: { uuid, event: "seen", distinct_id: "u", timestamp: time, properties: { id: 7 } },
    sent: { uuid, event: "seen", distinct_id: "u", timestamp: time, properties: { id: 7 } },
  },
  {
    of: "an event of PostHog's API",
    format: "posthog",
    line: {
      id: uuid,
      distinct_id: "u",
      properties: { $set: { a: 1 } },
      event: "$autocapture",
      timestamp: time,
      person: { is_identified: true },
      elements: [{ tag_name: "a" }],
      elements_chain: "a:nth-child",
    },
    sent: {
      uuid,
      distinct_id: "u",
      event: "$autocapture",
      timestamp: time,
      properties: { $elements_chain: "a:nth-child", $set: { a: 1 } },
    },
  },
  {
    of: "a row of the batch export without elements",
    format: "posthog-batch-export",
    line: {
      uuid,
      event: "seen",
      distinct_id: "u",
      timestamp: "2024-07-06T12:00:00.000000Z",
      properties: { a: 1 },
      person_properties: { b: 1 },
      elements_chain: "",
      _inserted_at: time,
    },
    sent: {
      uuid,
      event: "seen",
      distinct_id: "u",
      timestamp: "2024-07-06T12:00:00.000000Z",
      properties: { a: 1 },
      person_properties: { b: 1 },
      elements_chain: "",
      _inserted_at: time,
    },
  },
  {
    of: "a row of the batch export whose properties are text",
    format: "posthog-batch-export",
    line: {
      uuid,
      event: "$autocapture",
      distinct_id: "u",
      timestamp: time,
      properties: '{"a":12345678901234567890}',
      elements_chain: "a",
      _inserted_at: time,
    },
    sent: {
      uuid,
      event: "$autocapture",
      distinct_id: "u",
      timestamp: time,
      properties: { $elements_chain: "a", a: 12345678901234567890n },
    },
  },
  {
    of: "a track call",
    format: "segment",
    line: {
      type: "track",
      messageId: uuid,
      userId: "u",
      anonymousId: "v",
      event: "Bought",
      timestamp: time,
      originalTimestamp: "2024-07-06T11:00:00.000Z",
      properties: { price: 3 },
      context: {
        ip: "1.2.3.4",
        userAgent: "curl",
        locale: "de",
        traits: { plan: "pro" },
        page: { url: "https://a.example/b?c", path: "/b" },
        campaign: { source: "x" },
        library: { name: "analytics.js", version: "2" },
        os: { name: "Linux" },
      },
    },
    sent: {
      uuid,
      event: "Bought",
      distinct_id: "u",
      timestamp: time,
      $set: { plan: "pro" },
      properties: {
        $ip: "1.2.3.4",
        $useragent: "curl",
        $locale: "de",
        $host: "a.example",
        $current_url: "https://a.example/b?c",
        $pathname: "/b",
        utm_source: "x",
        $lib: "analytics.js",
        $lib_version: "2",
        $os: "Linux",
        price: 3,
      },
    },
  },
  {
    of: "an identify call of a user who was a visitor",
    format: "segment",
    line: {
      type: "identify",
      messageId: uuid,
      userId: "u",
      anonymousId: "v",
      originalTimestamp: time,
      traits: { email: "a@b.c" },
    },
    sent: {
      uuid,
      event: "$identify",
      distinct_id: "u",
      timestamp: time,
      properties: { $anon_distinct_id: "v" },
      $set: { email: "a@b.c" },
    },
  },
  {
    of: "an identify call of a visitor",
    format: "segment",
    line: {
      type: "identify",
      messageId: uuid,
      anonymousId: "v",
      timestamp: time,
      traits: { a: 1 },
    },
    sent: {
      uuid,
      event: "$set",
      distinct_id: "v",
      timestamp: time,
      properties: {},
      $set: { a: 1 },
    },
  },
  {
    of: "a page call",
    format: "segment",
    line: {
      type: "page",
      messageId: uuid,
      anonymousId: "v",
      timestamp: time,
      name: "Home",
      properties: { url: "https://a.example/", path: "/" },
    },
    sent: {
      uuid,
      event: "$pageview",
      distinct_id: "v",
      timestamp: time,
      properties: {
        url: "https://a.example/",
        path: "/",
        title: "Home",
        $current_url: "https://a.example/",
        $pathname: "/",
      },
    },
  },
  {
    of: "a screen call",
    format: "segment",
    line: { type: "screen", messageId: uuid, userId: "u", timestamp: time, name: "Cart" },
    sent: {
      uuid,
      event: "$screen",
      distinct_id: "u",
      timestamp: time,
      properties: { $screen_name: "Cart" },
    },
  },
  {
    of: "a group call",
    format: "segment",
    line: {
      type: "group",
      messageId: uuid,
      userId: "u",
      timestamp: time,
      groupId: "acme",
      traits: { name: "Acme" },
    },
    sent: {
      uuid,
      event: "$groupidentify",
      distinct_id: "u",
      timestamp: time,
      properties: {
        $group_type: "company",
        $group_key: "acme",
        $group_set: { name: "Acme" },
        $groups: { company: "acme" },
      },
    },
  },
  {
    of: "a group call of RudderStack with its type",
    format: "segment",
    line: {
      type: "group",
      messageId: uuid,
      userId: "u",
      timestamp: time,
      groupId: "a",
      traits: { groupType: "team" },
    },
    sent: {
      uuid,
      event: "$groupidentify",
      distinct_id: "u",
      timestamp: time,
      properties: { $group_type: "team", $group_key: "a", $group_set: {}, $groups: { team: "a" } },
    },
  },
  {
    of: "an alias call",
    format: "segment",
    line: { type: "alias", messageId: uuid, userId: "u", previousId: "v", timestamp: time },
    sent: {
      uuid,
      event: "$create_alias",
      distinct_id: "v",
      timestamp: time,
      properties: { alias: "u" },
    },
  },
  {
    of: "an event of Mixpanel, in seconds",
    format: "mixpanel",
    line: {
      event: "$mp_web_page_view",
      properties: {
        time: 1720267200,
        distinct_id: "$device:1",
        $distinct_id_before_identity: "u",
        $city: "Kiel",
        mp_country_code: "DE",
        $insert_id: "i",
        $current_url: "https://a.b/",
        mp_processing_time_ms: 1720267300000,
      },
    },
    sent: {
      event: "$pageview",
      distinct_id: "u",
      timestamp: time,
      uuid: "ANY",
      properties: {
        $distinct_id_before_identity: "u",
        $geoip_city_name: "Kiel",
        $geoip_country_code: "DE",
        $current_url: "https://a.b/",
      },
    },
    links: [
      { event: "$identify", distinct_id: "u", properties: { $anon_distinct_id: "$device:1" } },
    ],
  },
  {
    of: "an identify event of Mixpanel, in milliseconds",
    format: "mixpanel",
    line: {
      event: "$identify",
      properties: {
        time: 1720267200000,
        distinct_id: "m",
        $identified_id: "u",
        $anon_id: "v",
        $insert_id: "i",
      },
    },
    sent: {
      event: "$identify",
      distinct_id: "u",
      timestamp: time,
      uuid: "ANY",
      properties: { $identified_id: "u", $anon_id: "v", $anon_distinct_id: "v" },
    },
  },
  {
    of: "an event of Amplitude",
    format: "amplitude",
    line: {
      event_type: "[Amplitude] Page Viewed",
      uuid,
      user_id: null,
      device_id: "d",
      event_time: "2024-07-06 12:00:00.000000",
      session_id: 5,
      event_id: 0,
      device_type: "Linux",
      os_name: "Chrome",
      os_version: "120",
      ip_address: "1.2.3.4",
      city: "Kiel",
      region: null,
      country: "Germany",
      groups: { org: ["acme"] },
      event_properties: { "[Amplitude] Page URL": "https://a.b/", x: 1 },
      user_properties: {
        plan: "pro",
        none: "EMPTY",
        initial_referrer: "EMPTY",
        initial_utm_source: "x",
      },
    },
    sent: {
      event: "$pageview",
      distinct_id: "d",
      uuid,
      timestamp: "2024-07-06T12:00:00.000000Z",
      properties: {
        "[Amplitude] Page URL": "https://a.b/",
        x: 1,
        $current_url: "https://a.b/",
        $os: "Linux",
        $browser: "Chrome",
        $browser_version: "120",
        $device_type: "Desktop",
        $geoip_city_name: "Kiel",
        $geoip_country_name: "Germany",
        $ip: "1.2.3.4",
        $amplitude_device_id: "d",
        $device_id: "d",
        $amplitude_session_id: 5,
        $groups: { org: "acme" },
      },
      $set: {
        plan: "pro",
        $current_url: "https://a.b/",
        $os: "Linux",
        $browser: "Chrome",
        $browser_version: "120",
        $device_type: "Desktop",
        $geoip_city_name: "Kiel",
        $geoip_country_name: "Germany",
      },
      $set_once: { $initial_utm_source: "x" },
    },
  },
];

function withBigInts(body: string): JsonObject {
  const long = body.replaceAll(/:(\d{17,})/g, ':"$1n"');
  return JSON.parse(long, (_, value: unknown) =>
    typeof value === "string" && /^\d{17,}n$/.test(value) ? BigInt(value.slice(0, -1)) : value,
  ) as JsonObject;
}

test.each(cases)("import from $format converts $of", async ({ format, line, sent, links = [] }) => {
  const text = JSON.stringify(line);
  expect(detectFormat([text])).toBe(formatNamed(format));
  const { bodies, notes } = await bodiesOf([`${text}\n`]);
  expect(notes).toEqual([]);
  const { batch } = withBigInts(bodies[0]!) as { batch: JsonObject[] };
  const expected = sent["uuid"] === "ANY" ? { ...sent, uuid: expect.any(String) } : sent;
  expect(batch[0]).toEqual(expected);
  expect(batch.slice(1)).toMatchObject(links);
});

test.each([
  ["mixpanel", { event: "constructor", properties: { time: 1, distinct_id: "u", toString: 1 } }],
  ["amplitude", { event_type: "constructor", device_type: "toString", user_id: "u" }],
  ["segment", { type: "track", event: "constructor", userId: "u", properties: { valueOf: 1 } }],
])("import from %s treats names of Object.prototype like other names", async (_, line) => {
  const { bodies } = await bodiesOf([`${JSON.stringify(line)}\n`]);
  const { batch } = JSON.parse(bodies[0]!) as { batch: JsonObject[] };
  expect(batch[0]).toMatchObject({ event: "constructor", distinct_id: "u" });
  expect(JSON.stringify(batch[0])).not.toContain("native code");
});

test("the table of converted lines covers every format", () => {
  expect(["auto", ...new Set(cases.map(({ format }) => format))].sort()).toEqual(
    [...formatNames].sort(),
  );
});

test("import from Amplitude skips and reports a session event", async () => {
  const { bodies, notes } = await bodiesOf([
    '{"event_type":"session_start","device_id":"d","event_time":"2024-07-06 12:00:00"}\n',
  ]);
  expect(bodies).toEqual([]);
  expect(notes).toMatchObject([{ line: 1, code: "session_start", isStored: false }]);
});

describe("import rejects a file of unknown format", () => {
  test.each([
    ['[{"event":"a"},', /jq -c '\.\[\]'/],
    ['{"results": [', /each line must be an object\. Convert the file with jq/],
    ["event,distinct_id", /not JSON objects/],
    ['{"a":1,"b":2}', /\(they have a, b\).*--format/],
  ])("%s", (line, said) => {
    expect(detectFormat([line])).toMatch(said);
  });

  test("if the file has lines of two formats", () => {
    const lines = cases.slice(1, 6).map(({ line }) => {
      return JSON.stringify(line, (_, value: unknown) => (typeof value === "bigint" ? 1 : value));
    });
    expect(detectFormat(lines)).toMatch(/PostHog's .* and .*\. Choose a format with --format/);
  });
});
