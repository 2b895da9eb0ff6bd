import { describe, expect, test } from "vitest";
import { SentWith } from "../../src/platform/base/sent-with.ts";
import { eventIdentity } from "../../src/records/record-template.ts";

const firstMs = Date.parse("2026-11-26T10:00:00.123Z");
const againMs = firstMs + 9_876;

interface Sent {
  readonly receivedAtMs: number;
  readonly timestamp?: string;
  readonly skewMs?: number;
  readonly hasSentAt?: boolean;
  readonly ip?: string;
  readonly rules?: number;
  readonly event?: string;
  readonly distinctId?: string;
  readonly projectId?: string;
  readonly properties?: unknown;
}

const iso = (ms: number): string => new Date(ms).toISOString();

function recordOf(sent: Sent): Buffer {
  const { receivedAtMs, timestamp, skewMs = 0, ip, properties = { a: 1 } } = sent;
  const digits = receivedAtMs.toString(16).padStart(12, "0");
  const random = Math.random().toString(16).slice(2, 14).padEnd(12, "0");
  const generated = `${digits.slice(0, 8)}-${digits.slice(8)}-7abc-8abc-${random}`;
  const timestampMs = timestamp === undefined ? receivedAtMs : Date.parse(timestamp) - skewMs;
  const record = {
    uuid: generated,
    project_id: sent.projectId ?? "p",
    event: sent.event ?? "e",
    distinct_id: sent.distinctId ?? "u",
    timestamp: iso(timestampMs),
    timestamp_sent: timestamp !== undefined && skewMs !== 0 ? timestamp : undefined,
    received_at: iso(receivedAtMs),
    sent_at: sent.hasSentAt === true ? iso(receivedAtMs + skewMs) : undefined,
    ip,
    rules: sent.rules,
    kind: "custom",
    person_profile: true,
    historical: false,
    properties,
  };
  return Buffer.from(`${JSON.stringify(record)}\n`);
}

const timestamp = "2026-11-26T09:59:58.000Z";

function identityOf(sent: Sent): string {
  return eventIdentity(
    recordOf(sent),
    sent.timestamp === undefined ? SentWith.Neither : SentWith.Time,
  );
}

const tricky = '","timestamp":"2020-01-01T00:00:00.000Z","received_at":"x","kind":"\\';

describe("the identity of an event without a uuid is the same on a retry", () => {
  test.each<[string, Omit<Sent, "receivedAtMs">, Omit<Sent, "receivedAtMs">]>([
    ["without a timestamp", {}, {}],
    ["with a timestamp", { timestamp }, { timestamp }],
    ["with a long text", { event: "x".repeat(20_000) }, { event: "x".repeat(20_000) }],
    ["with a different recorded address", { ip: "10.0.0.1" }, { ip: "2001:db8::1234" }],
    ["with the address changed by other rules", { rules: 1, ip: "10.0.0.0" }, { rules: 12 }],
    [
      "with a different sent_at, so a different clock correction",
      { timestamp, hasSentAt: true, skewMs: -17 },
      { timestamp, hasSentAt: true, skewMs: 5_000 },
    ],
    [
      "with a sent_at that needs no correction the second time",
      { timestamp, hasSentAt: true, skewMs: 3 },
      { timestamp, hasSentAt: true, skewMs: 0 },
    ],
    [
      "with strings that look like a record",
      { event: tricky, distinctId: tricky, properties: { tricky } },
      { event: tricky, distinctId: tricky, properties: { tricky } },
    ],
  ])("%s", (_, first, again) => {
    expect(identityOf({ receivedAtMs: againMs, ...again })).toBe(
      identityOf({ receivedAtMs: firstMs, ...first }),
    );
  });
});

test("the identity of an event differs if its content differs", () => {
  const base = { receivedAtMs: firstMs, timestamp };
  const all: Sent[] = [
    base,
    { receivedAtMs: firstMs },
    { ...base, timestamp: "2026-11-26T09:59:58.001Z" },
    { ...base, timestamp: iso(firstMs) },
    { receivedAtMs: againMs, timestamp: iso(againMs) },
    { ...base, event: "f" },
    { ...base, distinctId: "v" },
    { ...base, projectId: "q" },
    { ...base, properties: { a: 2 } },
    { ...base, event: tricky },
    { ...base, distinctId: tricky },
  ];
  expect(new Set(all.map(identityOf)).size).toBe(all.length);
});

test("the identity of an event with a uuid ignores the gateway's additions", () => {
  const first = recordOf({ receivedAtMs: firstMs, timestamp });
  const again = recordOf({ receivedAtMs: againMs, timestamp, ip: "10.0.0.1" });
  expect(eventIdentity(again, SentWith.Uuid)).not.toBe(eventIdentity(first, SentWith.Uuid));
  const uuid = first.subarray(0, 46);
  const same = Buffer.concat([uuid, again.subarray(46)]);
  expect(eventIdentity(same, SentWith.Uuid)).toBe(eventIdentity(first, SentWith.Uuid));
});
