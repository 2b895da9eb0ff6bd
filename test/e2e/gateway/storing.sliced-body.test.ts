import { expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";

const gateway = await gatewayForFile({ env: { PENSTOCK_FRAME_BYTES_MAX: String(4 * 1_048_576) } });

test("a body that is processed in slices is stored once and in order", async () => {
  const project = await gateway.project();
  const expected: string[] = [];
  let placing = true;
  async function sendSingles(): Promise<void> {
    while (placing) {
      const { status } = await gateway.post("/capture/", {
        api_key: project.key,
        event: "single",
        distinct_id: "u",
      });
      expect(status).toBe(200);
    }
  }
  const singles = Array.from({ length: 8 }, sendSingles);
  const padding = "x".repeat(40_000);
  for (let body = 0; body < 10; body++) {
    const names = Array.from({ length: 40 }, (_, index) => `${body}/${index}`);
    expected.push(...names);
    const batch = names.map((name) => ({
      event: "sliced",
      distinct_id: "u",
      properties: { name, padding },
    }));
    expect((await gateway.post("/batch/", { api_key: project.key, batch })).status).toBe(200);
  }
  placing = false;
  await Promise.all(singles);
  const sliced = (await gateway.events(project)).filter((event) => event["event"] === "sliced");
  expect(sliced.map((event) => event.properties["name"])).toEqual(expected);
});
