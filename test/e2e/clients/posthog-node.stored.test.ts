import { PostHog } from "posthog-node";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import type { StoredEvent } from "../../kit/gateway.ts";
import { expectTold, versionOf } from "./matrix-kit.ts";
import { type Captured, expectStored } from "./stored-kit.ts";

const gateway = await gatewayForFile();

function named(events: StoredEvent[], name: string): StoredEvent {
  const found = events.filter((event) => event["event"] === name);
  expect(found, name).toHaveLength(1);
  return found[0] as StoredEvent;
}

function clockErrorMs(event: StoredEvent): number {
  return Date.parse(event["sent_at"] as string) - Date.parse(event["received_at"] as string);
}

describe("posthog-node", () => {
  test("sends capture, identify, alias and groupIdentify events completely", async () => {
    const project = await gateway.project();
    const sdk = new PostHog(project.key, { host: gateway.url });
    const when = new Date("2026-02-03T04:05:06.789Z");
    sdk.capture({
      distinctId: "user-1",
      event: "signed up",
      properties: { plan: "pro", ünï: ["😀", 1.5] },
      timestamp: when,
    });
    sdk.capture({
      distinctId: "user-1",
      event: "paid",
      groups: { company: "acme" },
      uuid: "0199b1c2-2222-7000-8000-00000000000b",
    });
    sdk.identify({
      distinctId: "user-1",
      properties: { email: "a@b.c", $set_once: { first: true } },
    });
    sdk.alias({ distinctId: "user-1", alias: "anonymous-1" });
    sdk.groupIdentify({ groupType: "company", groupKey: "acme", properties: { seats: 5 } });
    await sdk.shutdown();

    const events = await gateway.events(project);
    expect(events).toHaveLength(5);
    expect(named(events, "signed up")).toMatchObject({
      project_id: project.id,
      distinct_id: "user-1",
      kind: "custom",
      historical: false,
      properties: { plan: "pro", ünï: ["😀", 1.5], $lib: "posthog-node" },
    });
    for (const event of events) expect(Math.abs(clockErrorMs(event))).toBeLessThan(60_000);
    const { timestamp, timestamp_sent: timestampSent } = named(events, "signed up");
    expect(timestampSent ?? timestamp).toBe("2026-02-03T04:05:06.789Z");
    expect(Date.parse(timestamp as string)).toBe(
      when.getTime() - clockErrorMs(named(events, "signed up")),
    );
    expect(named(events, "paid")).toMatchObject({
      uuid: "0199b1c2-2222-7000-8000-00000000000b",
      properties: { $groups: { company: "acme" } },
    });
    expect(named(events, "$identify")).toMatchObject({ kind: "identify", distinct_id: "user-1" });
    expect(JSON.stringify(named(events, "$identify"))).toContain('"email":"a@b.c"');
    expect(named(events, "$create_alias")).toMatchObject({
      kind: "alias",
      properties: { distinct_id: "user-1", alias: "anonymous-1" },
    });
    expect(named(events, "$groupidentify")).toMatchObject({
      kind: "group_identify",
      properties: { $group_type: "company", $group_key: "acme", $group_set: { seats: 5 } },
    });
    for (const event of events) {
      expect(event["uuid"]).toMatch(/^[0-9a-f-]{36}$/);
      expect(event).not.toHaveProperty("api_key");
    }
    expect(JSON.stringify(events)).not.toContain(project.key);
  });

  test("sends a hundred captures that are stored once each", async () => {
    const project = await gateway.project();
    const sdk = new PostHog(project.key, { host: gateway.url, flushAt: 7 });
    for (let index = 0; index < 100; index++)
      sdk.capture({ distinctId: `user-${index}`, event: "counted", properties: { index } });
    await sdk.shutdown();
    const events = await gateway.events(project);
    expect(
      events.map((event) => event.properties["index"]).sort((a, b) => Number(a) - Number(b)),
    ).toEqual(Array.from({ length: 100 }, (_, index) => index));
  });

  test("is listed in docs/guides/sdks.md with the tested version", () => {
    expectTold("posthog-node", versionOf("posthog-node"));
  });

  test("sends events that are stored with the captured fields", async () => {
    for (const disableCompression of [false, true]) {
      const project = await gateway.project();
      const sdk = new PostHog(project.key, { host: gateway.url, disableCompression });
      const captured = noteOf(sdk);
      sdk.capture({
        distinctId: "user-1",
        event: "$pageview",
        properties: { $current_url: "https://example.com/" },
      });
      sdk.capture({
        distinctId: "user-1",
        event: "signed up",
        properties: { $set: { plan: "pro" } },
      });
      sdk.identify({
        distinctId: "user-1",
        properties: { email: "a@b.c", $set_once: { first: true } },
      });
      await sdk.shutdown();
      await expectStored(gateway, project, captured);
    }
  });

  test("sends history that is stored in order in the historical stream", async () => {
    const project = await gateway.project();
    const sdk = new PostHog(project.key, { host: gateway.url, historicalMigration: true });
    const captured = noteOf(sdk);
    for (let index = 0; index < 250; index++) {
      const timestamp = new Date(Date.UTC(2019, 4, 1) + index * 1_000);
      sdk.capture({ distinctId: "user-1", event: "old", properties: { index }, timestamp });
    }
    await sdk.shutdown();
    const stored = await expectStored(gateway, project, captured, { lane: "historical" });
    expect(stored.map((event) => event["uuid"])).toEqual(captured.map((event) => event.uuid));
  });
});

function noteOf(sdk: PostHog): Captured[] {
  const captured: Captured[] = [];
  sdk.on("*", (_type: string, message?: Captured) => {
    if (message?.uuid !== undefined) captured.push(JSON.parse(JSON.stringify(message)) as Captured);
  });
  return captured;
}
