// Each case is sent as a single event and as an item between two valid events.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type StoredEvent,
  startTestGateway,
  type TestGateway,
  type TestProject,
} from "../../kit/gateway.ts";

export interface Outcome {
  stored?: Record<string, unknown>;
  error?: string;
  dropped?: string;
  warnings?: string[];
}

export type Case = [title: string, item: unknown, outcome: Outcome];

const good = { event: "neighbour", distinct_id: "n", uuid: "0199b1c2-0000-7000-8000-00000000000f" };
const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const recordFields = [
  "uuid",
  "project_id",
  "event",
  "distinct_id",
  "timestamp",
  "timestamp_sent",
  "received_at",
  "sent_at",
  "ip",
  "kind",
  "person_profile",
  "historical",
  "properties",
  "$set",
  "$set_once",
  "$unset",
  "replaced",
  "rules",
  "schema",
];

function expectRecord(record: StoredEvent | undefined, outcome: Outcome, projectId: string): void {
  expect(record).toBeDefined();
  if (record === undefined) return;
  expect(recordFields).toEqual(expect.arrayContaining(Object.keys(record)));
  expect(record["project_id"]).toBe(projectId);
  expect(record["ip"]).toBe("127.0.0.1");
  expect(record["historical"]).toBe(false);
  expect(Math.abs(Date.parse(record["received_at"] as string) - Date.now())).toBeLessThan(60_000);
  for (const [field, value] of Object.entries(outcome.stored ?? {})) {
    if (field === "timestamp" && value === "received")
      expect(record["timestamp"]).toBe(record["received_at"]);
    else if (field === "uuid" && value === "new") expect(record["uuid"]).toMatch(uuidV7);
    else expect(record[field]).toEqual(value);
  }
}

function codes(notes: unknown): string[] {
  return ((notes ?? []) as { code: string }[]).map((note) => note.code);
}

function warningsOf({ dropped, warnings = [] }: Outcome): string[] {
  return dropped === undefined ? warnings : [dropped, ...warnings];
}

export function tryCases(cases: readonly Case[], batchOnlyCases: readonly Case[] = []): void {
  let gateway: TestGateway;
  let projects: TestProject[];

  beforeAll(async () => {
    gateway = await startTestGateway();
    projects = await gateway.projects(2 * cases.length + batchOnlyCases.length);
  });

  afterAll(async () => {
    await gateway.stop();
  });

  describe("sent alone", () => {
    test.each(cases)("%s", async (_title, item, outcome) => {
      const project = projects.pop()!;
      const answer = await gateway.post("/capture/", { ...(item as object), api_key: project.key });
      const events = await gateway.events(project);
      if (outcome.error !== undefined) {
        expect(answer.status).toBe(400);
        expect(answer.json["code"]).toBe(outcome.error);
        expect(events).toEqual([]);
        return;
      }
      const stored = outcome.stored === undefined ? 0 : 1;
      expect(answer.status).toBe(200);
      expect(answer.json).toMatchObject({ status: "Ok", accepted: stored, dropped: 1 - stored });
      expect(codes(answer.json["warnings"])).toEqual(warningsOf(outcome));
      expect(events).toHaveLength(stored);
      if (stored === 1) expectRecord(events[0], outcome, project.id);
    });
  });

  describe("sent in a batch between two valid events", () => {
    test.each([...cases, ...batchOnlyCases])("%s", async (_title, item, outcome) => {
      const project = projects.pop()!;
      const answer = await gateway.post("/batch/", {
        api_key: project.key,
        batch: [good, item, good],
      });
      const events = await gateway.events(project);
      const stored = outcome.stored === undefined ? 0 : 1;
      expect(answer.status).toBe(200);
      expect(answer.json).toMatchObject({
        status: "Ok",
        accepted: 2 + stored,
        dropped: 1 - stored,
      });
      expect(codes(answer.json["errors"])).toEqual(
        outcome.error === undefined ? [] : [outcome.error],
      );
      expect(codes(answer.json["warnings"])).toEqual(warningsOf(outcome));
      for (const note of [
        ...((answer.json["errors"] ?? []) as { index: number }[]),
        ...((answer.json["warnings"] ?? []) as { index: number }[]),
      ]) {
        expect(note.index).toBe(1);
      }
      expect(events).toHaveLength(2 + stored);
      expect(events[0]).toMatchObject({ event: "neighbour", distinct_id: "n" });
      expect(events.at(-1)).toMatchObject({ event: "neighbour", distinct_id: "n" });
      if (stored === 1) expectRecord(events[1], outcome, project.id);
    });
  });
}
