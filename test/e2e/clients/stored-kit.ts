import { expect } from "vitest";
import type { Lane } from "../../../src/platform/base/lane.ts";
import type { StoredEvent, TestGateway, TestProject } from "../../kit/gateway.ts";

export interface Captured {
  readonly uuid: string;
  readonly event: string;
  readonly distinct_id?: string;
  readonly timestamp: string;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly $set?: Readonly<Record<string, unknown>>;
  readonly $set_once?: Readonly<Record<string, unknown>>;
}

const kinds: Readonly<Record<string, string>> = {
  $pageview: "pageview",
  $screen: "screen",
  $identify: "identify",
  $set: "set",
  $create_alias: "alias",
  $groupidentify: "group_identify",
};

export async function expectStored(
  gateway: TestGateway,
  project: TestProject,
  captured: readonly Captured[],
  { lane = "live", timeoutMs = 15_000 }: { lane?: Lane; timeoutMs?: number } = {},
): Promise<StoredEvent[]> {
  expect(captured.length).toBeGreaterThan(0);
  await expect
    .poll(async () => (await gateway.events(project, lane)).length, {
      timeout: timeoutMs,
      interval: 100,
    })
    .toBeGreaterThanOrEqual(captured.length);
  const stored = await gateway.events(project, lane);
  const other: Lane = lane === "live" ? "historical" : "live";
  expect(await gateway.events(project, other)).toEqual([]);
  expect(namesByUuid(stored)).toEqual(namesByUuid(captured));
  for (const sent of captured) {
    const record = stored.find((each) => each["uuid"] === sent.uuid) as StoredEvent;
    expectSame(record, sent, project);
    expect(record["historical"]).toBe(lane === "historical");
  }
  return stored;
}

/** Includes repetitions, so that the comparison detects events that are stored twice. */
function namesByUuid(events: readonly (StoredEvent | Captured)[]): string[] {
  return events.map(({ uuid, event }) => `${String(uuid)} ${String(event)}`).sort();
}

function expectSame(record: StoredEvent, sent: Captured, project: TestProject): void {
  const { properties } = sent;
  expect(record).toMatchObject({
    project_id: project.id,
    event: sent.event,
    distinct_id: sent.distinct_id ?? properties["distinct_id"],
    ip: "127.0.0.1",
    kind: kinds[sent.event] ?? "custom",
    person_profile: properties["$process_person_profile"] !== false,
  });
  expect(record.properties).toEqual(properties);
  for (const name of ["$set", "$set_once"] as const) {
    const merged = { ...(properties[name] as object | undefined), ...sent[name] };
    const isSent = properties[name] !== undefined || sent[name] !== undefined;
    expect(record[name], `${sent.event} ${name}`).toEqual(isSent ? merged : undefined);
  }
  expectTimeTold(record, sent.timestamp);
}

function expectTimeTold(record: StoredEvent, meant: string): void {
  const {
    timestamp,
    timestamp_sent: timestampSent = timestamp,
    sent_at: sentAt,
    received_at: receivedAt,
  } = record;
  expect(timestampSent).toBe(meant);
  expect(sentAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const skewMs = msOf(sentAt) - msOf(receivedAt);
  expect(msOf(timestamp)).toBe(msOf(meant) - skewMs);
}

function msOf(time: unknown): number {
  return Date.parse(String(time));
}
