import { describe, expect, test } from "vitest";
import { fileWith, runImport } from "../../commands/import/import-kit.ts";
import { gatewayForFile } from "../../kit/for-file.ts";
import type { TestProject } from "../../kit/gateway.ts";
import { outcomes, postV1, v1Body, v1Event, v1Headers } from "../../kit/v1-requests.ts";

const gateway = await gatewayForFile();

const nil = "00000000-0000-0000-0000-000000000000";
const max = "ffffffff-ffff-ffff-ffff-ffffffffffff";
const blanks = [nil, max, max.toUpperCase(), "FfFfFfFf-ffff-ffff-FFFF-ffffffffffff"];
const v7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

async function uuidsOf(project: TestProject, lane: "live" | "historical" = "live") {
  return (await gateway.events(project, lane)).map(({ uuid }) => uuid);
}

describe.each([
  ["live", {}],
  ["historical", { historical_migration: true }],
] as const)("the nil or max UUID in the %s stream", (lane, more) => {
  test("is replaced by a new uuid with a warning", async () => {
    const project = await gateway.project();
    const sent = [...blanks, nil, "\\u0030".concat(nil.slice(1))];
    const items = sent.map(
      (uuid, index) =>
        `{"event":"e","distinct_id":"u${index}","timestamp":"2026-01-31T12:00:00Z","uuid":"${uuid}"}`,
    );
    const envelope = JSON.stringify({ api_key: project.key, ...more }).slice(0, -1);
    const { status, json } = await gateway.post(
      "/batch/",
      `${envelope},"batch":[${items.join(",")}]}`,
    );
    expect(status).toBe(200);
    expect(json).toMatchObject({ accepted: sent.length, warnings_total: sent.length });
    const uuids = await uuidsOf(project, lane);
    expect(new Set(uuids).size).toBe(sent.length);
    for (const uuid of uuids) expect(uuid).toMatch(v7);
  });
});

describe("the nil or max UUID in the v1 protocol", () => {
  test("is replaced by a new uuid, but `results` lists the original", async () => {
    const project = await gateway.project();
    const batch = [
      ...[nil, nil, max.toUpperCase(), nil, max].map((uuid) => v1Event({ uuid })),
      v1Event(),
    ];
    const answer = await postV1(gateway, v1Body(batch), v1Headers(project.key));
    const warned = { result: "warning", details: "invalid_uuid" };
    expect(answer.json.results).toEqual({
      [batch[5]!.uuid]: { result: "ok" },
      [nil]: warned,
      [max]: warned,
    });
    expect(answer.text.match(/"result"/g)).toHaveLength(3);
    const uuids = await uuidsOf(project);
    expect(new Set(uuids).size).toBe(6);
    expect(uuids).not.toContain(nil);
    expect(uuids).not.toContain(max);
  });

  test("is reported as dropped even if an equal UUID is stored", async () => {
    const project = await gateway.project();
    const batch = [v1Event({ uuid: nil, event: "" }), v1Event({ uuid: nil })];
    const answer = await postV1(gateway, v1Body(batch), v1Headers(project.key));
    expect(outcomes(answer)).toEqual(["drop: no_event"]);
    expect(await uuidsOf(project)).toHaveLength(1);
  });
});

test("an import replaces the nil or max UUID of each line", async () => {
  const time = "2024-07-06T12:00:00Z";
  const files = [
    [nil, max].map((uuid) => ({ event: "e", distinct_id: "u", timestamp: time, uuid })),
    [nil, nil, max].map((messageId, n) => ({
      type: "track",
      event: "e",
      userId: "u",
      timestamp: time,
      messageId,
      properties: { n },
    })),
    [nil, nil].map((insert, n) => ({
      event_type: "e",
      user_id: `u${n}`,
      device_id: "d",
      $insert_id: insert,
      event_time: "2024-07-06 12:00:00.000000",
      uuid: nil,
    })),
    [nil, nil].map(($insert_id, n) => ({
      event: "e",
      properties: { time: 1_720_267_200, distinct_id: "u", $insert_id, n },
    })),
  ];
  for (const lines of files) {
    const project = await gateway.project();
    const file = fileWith(lines.map((line) => JSON.stringify(line)).join("\n"));
    const { error } = await runImport(["--url", gateway.url, "--key", project.key, file]);
    expect(error).toBeUndefined();
    const uuids = await uuidsOf(project, "historical");
    expect(new Set(uuids).size).toBe(lines.length);
    for (const uuid of uuids) expect(uuid).not.toMatch(/^[0f-]+$/);
  }
});
