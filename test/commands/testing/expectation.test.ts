import { describe, expect, test } from "vitest";
import {
  expectedFault,
  matches,
  missText,
  nearestRecord,
} from "../../../src/commands/testing/expectation.ts";

const placed = (total: number, more: object = {}) => ({
  uuid: `uuid-${total}`,
  event: "order placed",
  distinct_id: "user-1",
  properties: { total, items: [{ id: 1 }, { id: 2 }], $lib: "posthog-node", ...more },
});

describe("an expected event", () => {
  test.each([
    [{}],
    [{ event: "order placed" }],
    [{ distinct_id: "user-1", properties: { total: 42 } }],
    [{ properties: { items: [{ id: 1 }, { id: 2 }] } }],
    [{ properties: { shop: { name: "a" } } }],
  ])("matches a record that has at least its members: %j", (expected) => {
    expect(matches(placed(42, { shop: { name: "a", city: "b" } }), expected)).toBe(true);
  });

  test.each([
    [{ event: "order" }],
    [{ properties: { total: "42" } }],
    [{ properties: { items: [{ id: 1 }] } }],
    [{ properties: { absent: null } }],
    [{ $set: {} }],
  ])("does not match a record with a different value: %j", (expected) => {
    expect(matches(placed(42), expected)).toBe(false);
  });

  test("must be an object with members of a stored event", () => {
    expect(expectedFault({ event: "a", $set_once: {}, timeout_ms: 1 })).toBeUndefined();
    expect(expectedFault([])).toBe('the body must be an object, such as {"event": "signed up"}');
    expect(expectedFault({ distinctId: "a" })).toBe(
      '"distinctId" is not a member of a stored event: use distinct_id',
    );
    expect(expectedFault({ price: 1 })).toMatch(/^"price" is not .*: use one of uuid, project_id,/);
  });
});

describe("a missed event", () => {
  const url = "http://127.0.0.1:1";
  const expected = { event: "order placed", properties: { total: 42, plan: "pro" } };
  const miss = { expected, waitedMs: 100, refusals: [], requests: 1, url };

  test("is compared with the latest record that has most of its members", () => {
    const records = [{ event: "other" }, placed(1), placed(42), placed(42, { late: true })];
    expect(nearestRecord(records, expected)).toBe(records[3]);
    expect(nearestRecord([], expected)).toBeUndefined();
    expect(missText({ ...miss, records })).toBe(
      `no stored event matches {"event":"order placed","properties":{"total":42,"plan":"pro"}} (waited 100 ms)
The nearest of 4 stored events has 2 of 3 members:
    "order placed" "user-1" "uuid-42"
  - properties.plan: "pro"
  + properties.plan: absent`,
    );
  });

  test("is explained by the requests that the gateway rejected", () => {
    const refusal = {
      projectId: "",
      path: "/batch/",
      client: "posthog-node/5",
      atMs: 0,
      times: 2,
      events: 0,
      status: 401,
      code: "unknown_api_key",
      detail: "no project has this key",
    };
    expect(
      missText({ ...miss, records: [], refusals: [refusal] })
        .split("\n")
        .slice(1),
    ).toEqual([
      "No event is stored.",
      "Rejected with 401: unknown_api_key: no project has this key (/batch/ from posthog-node/5, 2 times)",
      "    http://127.0.0.1:1/docs/errors#unknown_api_key",
    ]);
  });

  test("is explained by the gateway's address if no request arrived", () => {
    expect(missText({ ...miss, records: [], requests: 0 })).toContain(
      "The gateway has received no request: does the app send to http://127.0.0.1:1,",
    );
  });
});
