import { connect, type NatsConnection } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { setEnabled } from "../../../src/gateway/projects/registry/commands.ts";
import { gatewayForFile } from "../../kit/for-file.ts";
import { readFrames, type StoredFrame, type TestProject, until } from "../../kit/gateway.ts";

const gateway = await gatewayForFile({ env: { PENSTOCK_FRAME_SCOPE: "partition" } });

async function withNats<T>(action: (connection: NatsConnection) => Promise<T>): Promise<T> {
  const connection = await connect({ servers: gateway.nats.url });
  try {
    return await action(connection);
  } finally {
    await connection.close();
  }
}

function sharedFrames(): Promise<StoredFrame[]> {
  return withNats((connection) =>
    readFrames(connection, `${gateway.config.subjectPrefix}.live.*.~`),
  );
}

function single(project: TestProject, number: number): Promise<{ status: number }> {
  return gateway.post("/capture/", {
    api_key: project.key,
    event: "one",
    distinct_id: "u",
    properties: { number },
  });
}

describe("with PENSTOCK_FRAME_SCOPE=partition", () => {
  test("single events of many projects share messages", async () => {
    const projects = await Promise.all(Array.from({ length: 5 }, () => gateway.project()));
    // While the server does not respond, the first message is unacknowledged, and all later lines
    // wait for it.
    gateway.nats.freeze();
    const answers = Array.from({ length: 40 }, (_, number) =>
      single(projects[number % 5]!, number),
    );
    await until(async () => (await gateway.metrics()).includes("penstock_requests_inflight 40"));
    gateway.nats.thaw();
    for (const { status } of await Promise.all(answers)) expect(status).toBe(200);

    const frames = await sharedFrames();
    const events = frames.flatMap((frame) => frame.events);
    for (const [index, project] of projects.entries()) {
      const own = events.filter((event) => event["project_id"] === project.id);
      const numbers = own
        .map((event) => event.properties["number"] as number)
        .toSorted((a, b) => a - b);
      expect(numbers).toEqual(Array.from({ length: 8 }, (_, round) => round * 5 + index));
      expect(await gateway.frames(project)).toEqual([]);
    }
    expect(events).toHaveLength(40);
    expect(
      Math.max(
        ...frames.map((frame) => new Set(frame.events.map((event) => event["project_id"])).size),
      ),
    ).toBe(5);
    for (const frame of frames)
      expect(Number(frame.headers["Penstock-Events"])).toBe(frame.events.length);
  });

  test("a large request has its own messages", async () => {
    const project = await gateway.project();
    const padding = "x".repeat(6_000);
    const batch = Array.from({ length: 200 }, (_, number) => ({
      event: "large",
      distinct_id: "u",
      properties: { number, padding },
    }));
    const { status, json } = await gateway.post("/batch/", { api_key: project.key, batch });
    expect([status, json]).toEqual([200, { status: "Ok", accepted: 200, dropped: 0 }]);
    const frames = await gateway.frames(project);
    expect(frames.length).toBeGreaterThan(1);
    const numbers = frames
      .flatMap((frame) => frame.events)
      .map((event) => event.properties["number"]);
    expect(numbers).toEqual(Array.from({ length: 200 }, (_, number) => number));
    expect(
      (await sharedFrames()).flatMap((frame) => frame.events).map((event) => event["event"]),
    ).not.toContain("large");
  });

  test("history is stored under its project in order of arrival", async () => {
    const projects = [await gateway.project(), await gateway.project()];
    const expected: number[] = [];
    for (let round = 0; round < 6; round++) {
      const padding = "x".repeat(round % 2 === 0 ? 10 : 6_000);
      const numbers = Array.from({ length: 120 }, (_, index) => round * 120 + index);
      expected.push(...numbers);
      const batch = numbers.map((number) => ({
        event: "old",
        distinct_id: "u",
        properties: { number, padding },
      }));
      const sent = projects.map((project) =>
        gateway.post("/batch/", { api_key: project.key, batch, historical_migration: true }),
      );
      for (const { status } of await Promise.all(sent)) expect(status).toBe(200);
    }
    for (const project of projects) {
      const stored = await gateway.events(project, "historical");
      expect(stored.map((event) => event.properties["number"])).toEqual(expected);
    }
  });

  test("events with a rejected key are not stored", async () => {
    const [good, disabled] = [await gateway.project(), await gateway.project()];
    const off = {
      prefix: gateway.config.subjectPrefix,
      id: disabled.id,
      enabled: false,
      replicas: 1,
    };
    await withNats((connection) => setEnabled(connection, off));
    await until(
      async () =>
        (await gateway.post("/batch/", { api_key: disabled.key, batch: [] })).status === 401,
    );
    const [taken, refused, unknown] = await Promise.all([
      single(good, 1),
      gateway.post("/capture/", { api_key: disabled.key, event: "refused", distinct_id: "u" }),
      gateway.post("/capture/", { api_key: "phc_nobody", event: "refused", distinct_id: "u" }),
    ]);
    expect(taken.status).toBe(200);
    expect([refused.status, refused.json["code"]]).toEqual([401, "project_disabled"]);
    expect([unknown.status, unknown.json["code"]]).toEqual([401, "unknown_api_key"]);
    const events = (await sharedFrames()).flatMap((frame) => frame.events);
    expect(events.filter((event) => event["project_id"] === good.id)).toHaveLength(1);
    expect(events.map((event) => event["event"])).not.toContain("refused");
  });
});
