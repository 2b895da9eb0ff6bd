import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";

const gateway = await gatewayForFile();

const count = 1_200;

function batchOf(
  key: string,
  more: { padding: number; hasUuid: (index: number) => boolean },
): string {
  const batch = Array.from({ length: count }, (_, index) => ({
    event: "e",
    distinct_id: "u",
    ...(more.hasUuid(index) && {
      uuid: `0190f5a8-0000-7000-8000-${String(index).padStart(12, "0")}`,
    }),
    properties: { text: "x".repeat(more.padding) },
  }));
  return JSON.stringify({ api_key: key, batch });
}

describe("two equal batches", () => {
  test.each([
    ["small", 500],
    ["large", 1_000],
  ])("of %s events are stored once if they have uuids", async (_, padding) => {
    const post = async (body: string): Promise<void> => {
      const answers = [await gateway.post("/batch/", body), await gateway.post("/batch/", body)];
      for (const { json } of answers) expect(json).toMatchObject({ accepted: count });
    };
    const without = await gateway.project();
    await post(batchOf(without.key, { padding, hasUuid: () => false }));
    expect(await gateway.events(without)).toHaveLength(2 * count);
    const having = await gateway.project();
    await post(batchOf(having.key, { padding, hasUuid: () => true }));
    expect(await gateway.events(having)).toHaveLength(count);
  });

  test("with one event without a uuid store that event twice", async () => {
    const project = await gateway.project();
    const body = batchOf(project.key, { padding: 1_000, hasUuid: (index) => index !== count - 1 });
    for (let tries = 0; tries < 2; tries++)
      expect((await gateway.post("/batch/", body)).status).toBe(200);
    const uuids = (await gateway.events(project)).map((event) => String(event["uuid"]));
    expect(uuids.filter((uuid) => !uuid.startsWith("0190f5a8-0000-7000-8000-"))).toHaveLength(2);
    expect(uuids.length).toBeLessThan(2 * count);
    expect(new Set(uuids).size).toBe(count + 1);
  });
});
