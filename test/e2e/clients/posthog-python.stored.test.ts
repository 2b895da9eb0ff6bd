import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type StoredEvent, startTestGateway, type TestGateway } from "../../kit/gateway.ts";
import { expectTold } from "./matrix-kit.ts";
import { findPythonClient, runPython } from "./python-kit.ts";

const { versions, python } = await findPythonClient();
const version = versions["posthog"]!;
const found = python === undefined ? [] : [python];
let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startTestGateway();
});

afterAll(async () => {
  await gateway?.stop();
});

describe("posthog-python", () => {
  test("is listed in docs/guides/sdks.md with the tested version", () => {
    expectTold("posthog-python", version);
  });

  const clean = { errors: [], log: "" };

  const runs = { "no options": [], gzip: ["gzip"], "the v1 protocol": ["capture_mode=v1"] };

  test.each(
    found.flatMap((each) =>
      Object.entries(runs).map(([name, options]) => [name, each, options] as const),
    ),
  )(
    "sends capture, set, group and alias events that are stored: %s",
    async (_, program, options) => {
      const project = await gateway.project();
      const said = await runPython(program, { gateway, project }, ["all", ...options]);
      expect(said).toMatchObject(clean);
      const events = await gateway.events(project);
      expect(events.map((event) => event["uuid"]).sort()).toEqual([...said.uuids].sort());
      const lib = { $lib: "posthog-python", $lib_version: version };
      expectEvent(events, "signed up", {
        distinct_id: "user-1",
        kind: "custom",
        properties: { plan: "pro", ünï: ["😀", 1.5, null], ...lib },
      });
      const paid = events.find((event) => event["event"] === "signed up");
      expect(paid?.["timestamp_sent"] ?? paid?.["timestamp"]).toBe("2026-02-03T04:05:06.789Z");
      expectEvent(events, "paid", {
        distinct_id: "user-1",
        properties: { $groups: { company: "acme" }, ...lib },
      });
      expectEvent(events, "$set", {
        distinct_id: "user-1",
        kind: "set",
        $set: { email: "a@example.com" },
      });
      expectEvent(events, "$set_once", {
        distinct_id: "user-1",
        $set_once: { first_seen: "2026-01-01" },
      });
      expectEvent(events, "$groupidentify", {
        kind: "group_identify",
        properties: { $group_type: "company", $group_key: "acme", $group_set: { seats: 5 } },
      });
      expectEvent(events, "$create_alias", {
        kind: "alias",
        distinct_id: "anonymous-1",
        properties: { distinct_id: "anonymous-1", alias: "user-1" },
      });
      for (const event of events) {
        expect(event).toMatchObject({ project_id: project.id, historical: false, ip: "127.0.0.1" });
        expect(event["sent_at"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      }
    },
  );

  test.each(found)(
    "sends history that is stored in order in the historical stream",
    async (program) => {
      const project = await gateway.project();
      const said = await runPython(program, { gateway, project }, ["250", "historical_migration"]);
      expect(said).toMatchObject(clean);
      expect(await gateway.events(project)).toEqual([]);
      const events = await gateway.events(project, "historical");
      expect(events.map((event) => event["uuid"])).toEqual(said.uuids);
    },
  );
});

function expectEvent(
  events: readonly StoredEvent[],
  name: string,
  expected: Record<string, unknown>,
): void {
  const named = events.filter((event) => event["event"] === name);
  expect(named, name).toHaveLength(1);
  expect(named[0]).toMatchObject(expected);
}
