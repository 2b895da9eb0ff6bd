import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import type { StoredEvent } from "../../kit/gateway.ts";

const gateway = await gatewayForFile();

const hourMs = 3_600_000;
const form = { "content-type": "application/x-www-form-urlencoded" };

function correctionMs(event: StoredEvent): number {
  return Date.parse(event["timestamp_sent"] as string) - Date.parse(event["timestamp"] as string);
}

function clockErrorMs(event: StoredEvent): number {
  return Date.parse(event["sent_at"] as string) - Date.parse(event["received_at"] as string);
}

interface Sent {
  readonly path: string;
  readonly body: string | Buffer;
  readonly headers?: Record<string, string>;
}

async function stored(send: (key: string, now: Date) => Sent) {
  const project = await gateway.project();
  const { path, body, headers } = send(project.key, new Date(Date.now() + hourMs));
  const answer = await gateway.post(path, body, headers);
  expect(answer.status).toBe(200);
  return { answer, events: await gateway.events(project) };
}

const event = (key: string, now: Date) => ({
  token: key,
  event: "e",
  distinct_id: "u",
  timestamp: now.toISOString(),
});

describe("timestamps and person fields", () => {
  test.each<[string, (key: string, now: Date) => Sent]>([
    [
      "of posthog-js",
      (key, now) => ({
        path: `/e/?ip=0&_=${now.getTime()}&ver=1.449.0&compression=gzip-js`,
        headers: { "content-type": "text/plain" },
        body: gzipSync(JSON.stringify(event(key, now))),
      }),
    ],
    [
      "in the query of an array",
      (key, now) => ({
        path: `/e/?sent_at=${now.getTime()}`,
        body: JSON.stringify([event(key, now)]),
      }),
    ],
    [
      "in the query of a form",
      (key, now) => ({
        path: `/track?_=${now.getTime()}`,
        headers: form,
        body: `data=${encodeURIComponent(Buffer.from(JSON.stringify(event(key, now))).toString("base64"))}`,
      }),
    ],
    [
      "of posthog-python",
      (key, now) => {
        const timestamp = now.toISOString().replace("Z", "123+00:00");
        const batch = [{ event: "e", distinct_id: "u", timestamp }];
        return {
          path: "/batch/",
          body: JSON.stringify({ api_key: key, batch, sentAt: timestamp }),
        };
      },
    ],
    [
      "of one event",
      (key, now) => ({
        path: "/capture/",
        body: JSON.stringify({ ...event(key, now), sent_at: now }),
      }),
    ],
    [
      "of one event, under its other name",
      (key, now) => ({
        path: "/capture/",
        body: JSON.stringify({ ...event(key, now), sent_at: null, sentAt: now }),
      }),
    ],
    [
      "next to bytes that are not UTF-8",
      (key, now) => {
        const batch = [{ ...event(key, now), properties: { broken: "\xff" } }];
        return {
          path: "/batch/",
          body: Buffer.from(JSON.stringify({ api_key: key, batch, sent_at: now }), "latin1"),
        };
      },
    ],
    [
      "next to an event with escapes",
      (key, now) => ({
        path: "/batch/",
        body: JSON.stringify({ api_key: key, batch: [event(key, now)], sent_at: now }).replace(
          '"timestamp"',
          '"time\\u0073tamp"',
        ),
      }),
    ],
  ])("are corrected with the sending time %s", async (_title, send) => {
    const { events } = await stored(send);
    expect(events).toHaveLength(1);
    expect(Math.abs(clockErrorMs(events[0]!) - hourMs)).toBeLessThan(60_000);
    expect(correctionMs(events[0]!)).toBe(clockErrorMs(events[0]!));
  });

  test("are stored unchanged if the sending time in the query is invalid", async () => {
    const { answer, events } = await stored((key) => ({
      path: "/e/?_=soon",
      body: JSON.stringify(event(key, new Date(1_000_000))),
    }));
    expect(answer.json["warnings"]).toMatchObject([{ index: 0, code: "invalid_sent_at" }]);
    expect(events[0]).toMatchObject({ timestamp: "1970-01-01T00:16:40.000Z" });
    expect(events[0]).not.toHaveProperty("sent_at");
    expect(events[0]).not.toHaveProperty("replaced");
  });

  test("of events that waited in a browser are corrected", async () => {
    const { events } = await stored((key, now) => ({
      path: `/e/?_=${now.getTime()}`,
      body: JSON.stringify(
        [5_000, 0].map((offset) => ({ ...event(key, now), timestamp: undefined, offset })),
      ),
    }));
    expect(
      events.map(
        (stored) =>
          Date.parse(stored["received_at"] as string) - Date.parse(stored["timestamp"] as string),
      ),
    ).toEqual([5_000, 0]);
  });

  test("of a large body are stored once despite a later sending time", async () => {
    const project = await gateway.project();
    const now = Date.now();
    const batch = Array.from({ length: 3_000 }, (_, index) => ({
      event: "e",
      distinct_id: "u",
      timestamp: new Date(now).toISOString(),
      $set: { index },
      properties: { $set: { plan: "pro" } },
      uuid: `0199b1c2-0000-7000-8000-${index.toString(16).padStart(12, "0")}`,
    }));
    const sentAt = [new Date(now), new Date(now + 1)];
    for (const sent_at of sentAt) {
      const answer = await gateway.post("/batch/", { api_key: project.key, batch, sent_at });
      expect(answer.json).toMatchObject({ accepted: 3_000 });
    }
    const events = await gateway.events(project);
    expect(events).toHaveLength(3_000);
    expect(new Set(events.map(({ sent_at }) => sent_at))).toEqual(
      new Set([sentAt[0]!.toISOString()]),
    );
    expect(events[7]).toMatchObject({ $set: { plan: "pro", index: 7 } });
  });

  test.each([
    ["an object", (said: string) => ({ path: "/engage/", body: said })],
    ["an array", (said: string) => ({ path: "/engage", body: `[${said}]` })],
    [
      "a form",
      (said: string) => ({
        path: "/engage/",
        headers: form,
        body: `data=${encodeURIComponent(said)}`,
      }),
    ],
  ])("are read from %s on /engage", async (_title, send) => {
    const { answer, events } = await stored((key) =>
      send(
        JSON.stringify({
          $token: key,
          $distinct_id: "u",
          $set: { email: "a@b.c" },
          properties: { $set_once: { first: 1 } },
        }),
      ),
    );
    expect(answer.json).not.toHaveProperty("warnings");
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      event: "$identify",
      kind: "identify",
      distinct_id: "u",
      $set: { email: "a@b.c" },
      $set_once: { first: 1 },
    });
  });
});
