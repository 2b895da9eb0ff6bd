import { describe, expect, test } from "vitest";
import { slowItemBytesMax } from "../../src/gateway/intake/plain-form.ts";
import { dayMs } from "../../src/platform/base/day.ts";
import type { CompiledRules } from "../../src/rules/compile.ts";
import { CookielessRule, cookielessHash } from "../../src/rules/cookieless.ts";
import { IntakeKit, until } from "../gateway/intake/intake-kit.ts";
import { receivedAtMs, take } from "../kit/items.ts";
import { compiled, ruleOf } from "./compiled-rules.ts";
import {
  browser,
  clientAddress,
  cookielessEvent,
  cookielessRules,
  hashFor,
  saltOf,
} from "./cookieless-kit.ts";

const today = Math.floor(receivedAtMs / dayMs);
const windows =
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/58.0.3029.110 Safari/537.3";
const sphinx =
  "Sphinx of Black Quartz, Judge My Vow. This is a pretty long extra string - it is exactly 100 chars!!";
const ascending = "AQIDBAUGBwgJCgsMDQ4PEA==";

describe("the hash is that of PostHog", () => {
  // From the test cases that PostHog publishes for its cookieless hash (test_cases.json in
  // rust/common/cookieless of https://github.com/PostHog/posthog). Each changes one part.
  test.each([
    ["jZfBjkLcdjlQTVmIKIhC3Q==", ascending, `1-1.2.3.4-example.com-${windows}-0-`],
    ["+enbKKNpXkdkAyA7u+VkRA==", "BBBBBBBBBBBBBBBBBBBBBA==", `1-1.2.3.4-example.com-${windows}-0-`],
    ["BiC9Zpcr2Ctyc6mvZh4+lg==", ascending, `3000-1.2.3.4-example.com-${windows}-0-`],
    ["kmHSjAz71inr4axAIDUN1A==", ascending, `1-5.6.7.8-example.com-${windows}-0-`],
    ["HSTgvTovdKSCZxOWE0fiOA==", ascending, `1-1.2.3.4-other.com-${windows}-0-`],
    ["sjSJh5qV4gsbEAc2DG6w7g==", ascending, "1-1.2.3.4-example.com-Smart Fridge-0-"],
    ["igaaEDUIUxmCqAaPyFWP7Q==", ascending, `1-1.2.3.4-example.com-${windows}-1-`],
    ["lPLnR7N4qR683u8oyGmTGg==", ascending, `1-1.2.3.4-example.com-${windows}-0-${sphinx}`],
  ])("%s", (expected, salt, text) => {
    expect(cookielessHash(Buffer.from(salt, "base64"), text).toString("base64")).toBe(expected);
  });

  // What the package @posthog/siphash 1.1.1 returns. It encodes texts in UTF-8.
  test.each([
    ["g4o4tBhIe5MnrVEiWdgSEw==", "1-1.2.3.4-example.com-Größe 😀 Browser-0-"],
    ["h9JmpyLbPECLsRrn8Ook4Q==", "1-2001:db8::1-example.com-é-0-ü\ud800"],
  ])("%s, of a text with other characters than ASCII", (expected, text) => {
    const salt = Buffer.from(ascending, "base64");
    expect(cookielessHash(salt, text).toString("base64")).toBe(expected);
  });
});

const hash = hashFor(today, `p-${clientAddress}-example.com-${browser}-0-`);
const stored = (event: object, rules = cookielessRules(), userAgent = "") =>
  take({ batch: [event] }, { rules, clientAddress, userAgent });
const recordOf = (event: object, rules?: CompiledRules, userAgent?: string) =>
  stored(event, rules, userAgent).records[0] as Record<string, unknown> & {
    properties: Record<string, unknown>;
  };
const idOf = (event: object, rules?: CompiledRules) => recordOf(event, rules)["distinct_id"];

test("an event with the flag in another place is not cookieless, and the rules apply to it", () => {
  const rules = cookielessRules([ruleOf({ event: ["drop"] }, { kind: "drop" })]);
  const batch = [
    { properties: {} },
    { $cookieless_mode: true },
    { x: { $cookieless_mode: true } },
  ].flatMap((members) => ["drop", "e"].map((event) => ({ event, distinct_id: "u", ...members })));
  for (let time = 0; time < 2; time++) {
    const { filtered, records } = take({ batch }, { rules, clientAddress });
    expect(filtered).toBe(3);
    expect(records.map(({ event, distinct_id }) => [event, distinct_id])).toEqual(
      Array.from({ length: 3 }, () => ["e", "u"]),
    );
  }
});

describe("a cookieless event", () => {
  test("is stored with the ids of the day, and without what identifies the visitor", () => {
    const event = cookielessEvent(
      { $ip: clientAddress, $cookieless_extra: "", $set: { $raw_user_agent: browser, a: 1 } },
      { $set_once: { $initial_raw_user_agent: browser, b: 2 }, distinct_id: "$posthog_cookieless" },
    );
    const { lines, records } = stored(event);
    expect(records).toMatchObject([
      {
        distinct_id: `cookieless_${hash}`,
        person_profile: false,
        rules: 5,
        $set: { a: 1 },
        $set_once: { b: 2 },
        properties: {
          distinct_id: `cookieless_${hash}`,
          $distinct_id: `cookieless_${hash}`,
          $device_id: `cookielessd_${hash}`,
          $window_id: null,
          $process_person_profile: false,
          $host: "shop.example.com",
          $timezone: "Europe/Berlin",
        },
      },
    ]);
    expect(records[0]).not.toHaveProperty("ip");
    for (const gone of [clientAddress, "Mozilla", "$ip", "$raw_user_agent", "$cookieless_mode"])
      expect(lines[0]).not.toContain(gone);
  });

  test("is stored without the address and the browser in any object of the person", () => {
    const visitor = {
      $ip: clientAddress,
      $initial_ip: clientAddress,
      $raw_user_agent: browser,
      $initial_raw_user_agent: browser,
      $cookieless_extra: "extra text",
    };
    const person = { $set: { ...visitor, a: 1 }, $set_once: { ...visitor, b: 2 } };
    const members = { $ip: clientAddress, $raw_user_agent: browser };
    for (const event of [
      cookielessEvent({ ...visitor, ...person }, members),
      cookielessEvent(visitor, { ...members, ...person }),
    ]) {
      const { lines, records } = stored(event);
      expect(records).toMatchObject([{ $set: { a: 1 }, $set_once: { b: 2 } }]);
      expect(lines[0]).not.toMatch(/203\.0\.113|Mozilla|extra text/);
    }
  });

  test("without the flag may be as large as without the rule", () => {
    const properties = { padding: "x".repeat(slowItemBytesMax) };
    const event = { event: "a", distinct_id: "u", properties };
    for (const body of [event, { batch: [event] }])
      expect(take(body, { rules: cookielessRules() }).errors).toEqual([]);
  });

  test("has a session id with the start of the day in its zone and the hash", () => {
    const id = recordOf(cookielessEvent()).properties["$session_id"] as string;
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const bytes = Buffer.from(id.replaceAll("-", ""), "hex");
    expect(new Date(bytes.readUIntBE(0, 6)).toISOString()).toBe("2026-06-14T22:00:00.000Z");
    const random = Buffer.from(hash, "base64");
    expect([bytes[6]! & 0x0f, bytes[7], bytes[8]! & 0x3f]).toEqual([
      random[0]! & 0x0f,
      random[1],
      random[2]! & 0x3f,
    ]);
    expect(bytes.subarray(9)).toEqual(random.subarray(3, 10));
  });

  test("gets the same id from the address, the header and the page's URL as from its properties", () => {
    const { $raw_user_agent: _, $host: __, ...rest } = cookielessEvent().properties;
    const event = { ...cookielessEvent(), properties: rest };
    expect(recordOf(event, cookielessRules(), browser)["distinct_id"]).toBe(`cookieless_${hash}`);
    const [other] = take(
      { batch: [cookielessEvent({ $ip: clientAddress })] },
      { rules: cookielessRules(), clientAddress: "192.0.2.1" },
    ).records;
    expect(other!["distinct_id"]).toBe(`cookieless_${hash}`);
  });

  test.each([
    ["true", true],
    ["a text", "yes"],
    ["a number", 1],
    ["an object", {}],
  ])("is recognised by a flag that is %s", (_, $cookieless_mode) => {
    expect(idOf(cookielessEvent({ $cookieless_mode }))).toBe(`cookieless_${hash}`);
  });

  test.each([
    ["another address", { $ip: "192.0.2.1" }, `p-192.0.2.1-example.com-${browser}-0-`],
    ["another browser", { $raw_user_agent: "ü" }, `p-${clientAddress}-example.com-ü-0-`],
    [
      "a long browser",
      { $raw_user_agent: "b".repeat(4_000) },
      `p-${clientAddress}-example.com-${"b".repeat(4_000)}-0-`,
    ],
    ["another site", { $host: "example.org" }, `p-${clientAddress}-example.org-${browser}-0-`],
    [
      "an extra text, of which 100 characters count",
      { $cookieless_extra: `${sphinx} and more` },
      `p-${clientAddress}-example.com-${browser}-0-${sphinx}`,
    ],
  ])("has another id with %s", (_, properties, text) => {
    expect(idOf(cookielessEvent(properties))).toBe(`cookieless_${hashFor(today, text)}`);
  });

  // Received on 2026-06-15 at 12:00 in UTC.
  test.each([
    ["of its own time zone", { $timezone: "Pacific/Kiritimati" }, "12:00:00.000Z", today + 1],
    ["of a later day that is today in the east", { $timezone: "" }, "2026-06-16T03:00Z", today + 1],
    ["in UTC if the time zone is invalid", { $timezone: "Mars/Base" }, "22:30:00.000Z", today],
    ["in UTC if it has no time zone", { $timezone: null }, "22:30:00.000Z", today],
  ])("has the id of the day %s", (_, properties, time, day) => {
    const timestamp = time.includes("T") ? time : `2026-06-15T${time}`;
    const expected = hashFor(day, `p-${clientAddress}-example.com-${browser}-0-`);
    const event = cookielessEvent(properties, { timestamp });
    expect(idOf(event)).toBe(`cookieless_${expected}`);
  });

  test("has the id of the day that the corrected time is in", () => {
    const { records } = take(
      {
        sent_at: "2026-06-01T12:00:00.000Z",
        batch: [cookielessEvent({}, { timestamp: "2026-06-01T11:59:00.000Z" })],
      },
      { rules: cookielessRules(), clientAddress },
    );
    expect(records[0]).toMatchObject({
      distinct_id: `cookieless_${hash}`,
      timestamp: "2026-06-15T11:59:00.000Z",
    });
  });

  test("is sampled by its id, so that a visitor has all events of a day or none", () => {
    const sample = cookielessRules([ruleOf({}, { kind: "sample", share: 0.5 })]);
    const visitors = Array.from({ length: 100 }, (_, n) => `192.0.2.${n}`);
    const batch = [...visitors, ...visitors].map(($ip) => cookielessEvent({ $ip }));
    const { records, filtered } = take({ batch }, { rules: sample, clientAddress });
    const ids = records.map((record) => record["distinct_id"] as string);
    expect(ids.length + filtered).toBe(200);
    expect(ids.length).toBeGreaterThan(50);
    expect(ids.length).toBeLessThan(150);
    for (const id of ids) expect(ids.filter((one) => one === id)).toHaveLength(2);
  });

  test("is seen by the rules with its new ids, and a bot by its removed User-Agent", () => {
    const rules = cookielessRules([
      ruleOf({ bot: true }, { kind: "set", values: new Map([["kind", "bot"]]) }),
      ruleOf(
        { properties: new Map([["$raw_user_agent", { kind: "exists" }]]) },
        { kind: "set", values: new Map([["seen", true]]) },
      ),
      ruleOf({}, { kind: "keepOnly", paths: ["kind", "seen", "$device_id"] }),
    ]);
    const { properties } = recordOf(cookielessEvent({ $raw_user_agent: "Googlebot/2.1" }), rules);
    expect(properties["kind"]).toBe("bot");
    expect(properties).not.toHaveProperty("seen");
    expect(properties["$device_id"]).toMatch(/^cookielessd_/);
  });

  test("has its query cut like any other event, and its new text is checked by the guards", () => {
    const { lines } = stored(
      cookielessEvent({ $current_url: "https://shop.example.com/?email=a%40b.c" }),
      cookielessRules([], { cutQuery: ["email"] }),
    );
    expect(lines[0]).not.toContain("email");
  });

  test("is found next to other events, in every spelling of the flag", () => {
    const plain = { event: "seen", distinct_id: "u", properties: { $ip: "192.0.2.1" } };
    const text = JSON.stringify(cookielessEvent());
    const escaped = text.replace('"$cookieless_mode"', '"\\u0024cookieless_mode"');
    const spaced = text.replace('"$cookieless_mode":true', '"$cookieless_mode" : true , "x":1');
    const batch = [plain, escaped, plain, text, text, plain, spaced].map((one) =>
      typeof one === "string" ? one : JSON.stringify(one),
    );
    const { records } = take(`{"batch":[${batch.join()}]}`, {
      rules: cookielessRules(),
      clientAddress,
    });
    const own = `cookieless_${hash}`;
    expect(records.map((record) => record["distinct_id"])).toEqual([
      "u",
      own,
      "u",
      own,
      own,
      "u",
      own,
    ]);
    expect(records[0]).toMatchObject({ ip: clientAddress, properties: plain.properties });
    expect(records[0]).not.toHaveProperty("rules");
  });
});

test("in each time zone, an event has an id at each half hour of the day", () => {
  const paths: string[] = [];
  const rule = new CookielessRule(
    { projectId: "p", rootDomainOf: (host) => host },
    saltOf,
    (path) => paths.push(path) - 1,
  );
  const values = new Map([["$host", "example.com"]]);
  const members = {
    textOf: (path: number) => values.get(paths[path]!) ?? "",
    has: () => false,
    set: () => {},
    remove: () => {},
  };
  const item = { body: Buffer.alloc(0), table: new Uint32Array(64), row: 0 };
  const zones = [...Intl.supportedValuesOf("timeZone"), "Etc/GMT-14", "Etc/GMT+12"];
  const refused = new Set<string>();
  for (const date of ["2026-01-15", "2026-06-15"])
    for (const zone of zones) {
      values.set("$timezone", zone);
      for (let minute = 0; minute < 1_440; minute += 30) {
        const receivedAtMs = Date.parse(date) + minute * 60_000;
        const request = { receivedAtMs, skewMs: 0, isEngage: false, needsTimestamp: false };
        const visitor = {
          address: clientAddress,
          userAgent: browser,
          request,
          zoneLookups: { failed: 0 },
        };
        if (!("ids" in rule.idsOf({ item, event: "seen" }, members, visitor))) refused.add(zone);
      }
    }
  expect([...refused]).toEqual([]);
});

describe("an event that is not cookieless", () => {
  test.each([
    ["without the flag", { $cookieless_mode: undefined }],
    ["with the flag false", { $cookieless_mode: false }],
    ["with the flag 0", { $cookieless_mode: 0 }],
    ["with an empty flag", { $cookieless_mode: "" }],
    ["with the flag null", { $cookieless_mode: null }],
  ])("is stored as sent %s", (_, flag) => {
    const event = cookielessEvent(flag);
    expect(recordOf(event)).toMatchObject({
      distinct_id: "$posthog_cookieless",
      ip: clientAddress,
      properties: { $raw_user_agent: browser, $device_id: null },
    });
    expect(recordOf(event)).not.toHaveProperty("rules");
  });

  test("is stored as sent if the project does not have the rule", () => {
    const other = compiled([ruleOf({ event: ["noise"] }, { kind: "drop" })]);
    for (const rules of [undefined, other]) {
      const { records } = take(
        { batch: [cookielessEvent()] },
        { clientAddress, ...(rules === undefined ? {} : { rules }) },
      );
      expect(records[0]).toMatchObject({
        distinct_id: "$posthog_cookieless",
        ip: clientAddress,
        properties: { $cookieless_mode: true, $raw_user_agent: browser },
      });
    }
  });
});

describe("a cookieless event that cannot have an id is dropped, and not retained with the visitor's data", () => {
  test.each([
    ["$identify", cookielessEvent({}, { event: "$identify" }), "$identify has no effect"],
    ["$create_alias", cookielessEvent({}, { event: "$create_alias" }), "$create_alias has no"],
    ["no host", cookielessEvent({ $host: "", $current_url: "about:blank" }), "it has no $host"],
    ["no browser", cookielessEvent({ $raw_user_agent: null }), "it has no $raw_user_agent"],
    [
      "an early day",
      cookielessEvent({}, { timestamp: "2026-06-14T12:00:00.000Z" }),
      "there is no salt for its day, 2026-06-14",
    ],
  ])("%s", (_, event, why) => {
    const { records, warnings, details, quarantined } = stored(event);
    expect([records, warnings]).toEqual([[], ["no_cookieless_id"]]);
    expect(details[0]).toContain(`The cookieless event is not stored: ${why}`);
    expect(quarantined).toHaveLength(1);
    expect(quarantined[0]).not.toMatch(/Mozilla|raw_user_agent/);
    expect(quarantined[0]).toContain("$cookieless_mode");
  });

  test("each for its own reason", () => {
    const hostless = cookielessEvent({ $host: "", $current_url: "" });
    const agentless = cookielessEvent({ $raw_user_agent: "" });
    const { details } = take(
      { batch: [cookielessEvent(), hostless, agentless, hostless] },
      { rules: cookielessRules(), clientAddress },
    );
    const [host, agent, again] = details;
    expect([again, details.length]).toEqual([host, 3]);
    expect(agent).not.toBe(host);
  });

  test("no address", () => {
    const { warnings, details } = take(
      { batch: [cookielessEvent()] },
      { rules: cookielessRules() },
    );
    expect(warnings).toEqual(["no_cookieless_id"]);
    expect(details[0]).toContain("it has no $ip, and the client's address is not known");
  });
});

describe("a rejected cookieless event", () => {
  const quarantine = ruleOf({ event: ["$pageview"] }, { kind: "quarantine" });

  test("is retained with its id and as sent otherwise, so that a replay stores it", () => {
    const rules = cookielessRules([ruleOf({}, { kind: "remove", paths: ["plan"] }), quarantine]);
    const { quarantined } = stored(cookielessEvent({ plan: "pro", $ip: clientAddress }), rules);
    expect(quarantined).toHaveLength(1);
    expect(quarantined[0]).not.toMatch(/Mozilla|203\.0\.113/);
    const again = take(`{"batch":[${quarantined[0]}]}`, { rules: cookielessRules() });
    expect(again.records).toMatchObject([
      { distinct_id: `cookieless_${hash}`, person_profile: false, properties: { plan: "pro" } },
    ]);
  });

  test.each([
    ["that can have an id", cookielessEvent()],
    ["that cannot have an id", cookielessEvent({ $host: "", $current_url: "" })],
    ["of another name", cookielessEvent({}, { event: "" })],
  ])("%s is retained without members that the gateway does not read", (_, event) => {
    const unread = { $ip: clientAddress, ip: clientAddress, a: { b: browser }, options: {} };
    const { quarantined } = stored(
      { ...unread, ...event, ...unread },
      cookielessRules([quarantine]),
    );
    const retained = JSON.parse(quarantined[0]!) as object;
    expect(Object.keys(retained).sort()).toEqual(["event", "properties", "timestamp"]);
    expect(quarantined[0]).not.toMatch(/Mozilla|203\.0\.113/);
  });

  test("that sends its options is retained with them in its properties", () => {
    const { $cookieless_mode: _, ...properties } = cookielessEvent({ $host: "" }).properties;
    const event = {
      ...cookielessEvent(),
      properties: { ...properties, $current_url: "" },
      options: { cookieless_mode: true, disable_skew_correction: true, $ip: clientAddress },
    };
    const { quarantined } = take(
      { batch: [event] },
      { rules: cookielessRules(), clientAddress, additions: "" },
    );
    const retained = JSON.parse(quarantined[0]!) as { properties: object };
    expect(retained).not.toHaveProperty("options");
    expect(retained.properties).toMatchObject({ $cookieless_mode: true, $ignore_sent_at: true });
    expect(quarantined[0]).not.toMatch(/Mozilla|203\.0\.113/);
  });

  test("in a member that the gateway does not read is not retained", () => {
    const plain = { event: "", distinct_id: "u", $ip: clientAddress, properties: { a: 1 } };
    const hidden = [
      { propertie: cookielessEvent().properties },
      { data: [JSON.stringify(cookielessEvent())] },
    ];
    for (const one of hidden) {
      const { quarantined } = stored({ ...plain, ...one }, cookielessRules());
      expect(quarantined).toEqual([JSON.stringify(plain)]);
    }
  });

  test("is retained without the visitor's data if a guard rejects it", () => {
    const batch = [
      cookielessEvent({}, { event: "" }),
      `${JSON.stringify(cookielessEvent()).slice(0, -1)},"$set":{"a":${"[".repeat(120)}${"]".repeat(120)}}}`,
      '{"event":"seen","properties":{"$raw_user_agent":"Mozilla"}}',
    ].map((one) => (typeof one === "string" ? one : JSON.stringify(one)));
    const { quarantined, warnings, errors } = take(`{"batch":[${batch.join()}]}`, {
      rules: cookielessRules(),
      clientAddress,
    });
    expect([warnings, errors]).toEqual([["no_event", "no_distinct_id"], ["too_deep"]]);
    // Whether the second event is cookieless is not known. The third is not.
    expect(quarantined).toHaveLength(2);
    expect(quarantined[0]).not.toContain("Mozilla");
    expect(quarantined[0]).toContain(`cookieless_${hash}`);
    expect(quarantined[1]).toBe(batch[2]);
  });
});

const visitorText = JSON.stringify({ $cookieless_mode: true, $raw_user_agent: browser });
test("another salt of the day gives a visitor another id", () => {
  const salts = [Buffer.alloc(16, 1), Buffer.alloc(16, 2)];
  const rules = cookielessRules([], {}, () => salts[0]);
  const idOf = () =>
    stored(cookielessEvent({ $ip: clientAddress }), rules).records[0]!["distinct_id"];
  const first = idOf();
  expect(idOf()).toBe(first);
  salts.shift();
  expect(idOf()).not.toBe(first);
});

test.each(["$set", "$set_once"])("a rejected event whose %s is a text is not retained", (name) => {
  const event = cookielessEvent({ $host: "", $current_url: "", [name]: "Mozilla" });
  const { warnings, quarantined } = stored(event);
  expect([warnings, quarantined]).toEqual([["no_cookieless_id"], []]);
});

test.each([
  ["an array", [cookielessEvent()]],
  ["a string", JSON.stringify(cookielessEvent())],
  ["an event with a text as properties", { event: "seen", properties: visitorText }],
  ["an event with a list as properties", { event: "seen", properties: [visitorText] }],
  ["an event with a text as $set", cookielessEvent({}, { event: "", $set: browser })],
  ["an event with a list as $set_once", cookielessEvent({}, { event: "", $set_once: [browser] })],
  ["an event with a text as options", cookielessEvent({}, { event: "", options: browser })],
])("%s in a batch is not retained, because it may contain a cookieless event", (_, item) => {
  const options = { rules: cookielessRules(), clientAddress };
  const { records, quarantined } = take({ batch: [item, { event: "seen" }] }, options);
  expect([records, quarantined]).toEqual([[], [JSON.stringify({ event: "seen" })]]);
});

describe("a rejected event with repeated members is retained with the last ones, without the visitor's data", () => {
  const properties = JSON.stringify(cookielessEvent({ $ip: clientAddress }).properties);
  const agent = JSON.stringify({ $raw_user_agent: browser, $ip: clientAddress });
  test.each([
    ["properties", `"properties":${properties},"properties":${properties}`],
    [
      "properties, of which the last are not cookieless",
      `"properties":${properties},"properties":{}`,
    ],
    [
      "properties in another spelling",
      `"propertie\\u0073":${properties},"properties":${properties}`,
    ],
    [
      "properties, of which the first is a text",
      `"properties":${JSON.stringify(properties)},"properties":${properties}`,
    ],
    ["$set", `"$set":${agent},"$set":{"a":1},"properties":${properties}`],
    ["$set_once", `"$set_once":${agent},"$set_once":{"a":1},"properties":${properties}`],
    [
      "a member inside",
      `"properties":{"$ip":"${clientAddress}","a":{"b":"Mozilla","b":1},${properties.slice(1)}`,
    ],
  ])("%s", (_, members) => {
    const { quarantined } = take(`{"batch":[{"event":"",${members}}]}`, {
      rules: cookielessRules(),
      clientAddress,
    });
    expect(quarantined).toHaveLength(1);
    expect(quarantined[0]).not.toMatch(/Mozilla|203\.0\.113/);
  });
});

describe("without the salt of the day", () => {
  const withoutSalt = cookielessRules([], {}, () => undefined);
  const exchange = { receivedAtMs, userAgent: browser };
  const send = async (kit: IntakeKit, batch: readonly object[]) => {
    const sent = kit.send(Buffer.from(JSON.stringify({ api_key: "key_a", batch })), {
      senderAddress: clientAddress,
      exchange,
    });
    await sent.work;
    await until(() => sent.answer !== undefined);
    return sent;
  };

  test("a request with a cookieless event fails, and nothing of it is stored", async () => {
    const kit = new IntakeKit({ rules: withoutSalt });
    const seen = { event: "seen", distinct_id: "u" };
    const { answer, detail } = await send(kit, [seen, cookielessEvent(), seen]);
    expect(answer).toBe("unavailable");
    expect(detail).toMatch(/does not have the salt of the day/);
    expect(kit.lines).toEqual([]);
  });

  test("a request without a cookieless event is stored, and a large one fails in its turn", async () => {
    const kit = new IntakeKit({ rules: withoutSalt });
    expect((await send(kit, [{ event: "seen", distinct_id: "u" }])).answer).toBe("stored 1");
    const many = Array.from({ length: 5_000 }, () => ({ event: "seen", distinct_id: "u" }));
    expect((await send(kit, [...many, cookielessEvent()])).answer).toBe("unavailable");
  });

  test("the request is stored when the salt is there", async () => {
    let isThere = false;
    const rules = cookielessRules([], {}, (day) => (isThere ? saltOf(day) : undefined));
    const kit = new IntakeKit({ rules });
    expect((await send(kit, [cookielessEvent()])).answer).toBe("unavailable");
    isThere = true;
    expect((await send(kit, [cookielessEvent()])).answer).toBe("stored 1");
    expect(kit.lines[0]).toContain(`"distinct_id":"cookieless_${hash}"`);
  });

  test("a replay has no visitor, so it does not get the operator's id", async () => {
    const kit = new IntakeKit({ rules: cookielessRules() });
    const sent = kit.send(
      Buffer.from(JSON.stringify({ api_key: "key_a", batch: [cookielessEvent()] })),
      { senderAddress: clientAddress, exchange: { ...exchange, isReplay: true } },
    );
    await until(() => sent.answer !== undefined);
    expect(sent.answer).toBe("stored 0");
  });
});
