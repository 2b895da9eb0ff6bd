import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";

const gateway = await gatewayForFile();

const removed = { event: "$performance_event", distinct_id: "u", properties: { duration: 1 } };
const kept = { event: "$performance_event_of_ours", distinct_id: "u" };

async function removedSoFar(): Promise<number> {
  const found =
    /^penstock_events_total\{lane="live",outcome="removed",reason="performance_event"\} (\d+)$/m;
  return Number(found.exec(await gateway.metrics())?.[1] ?? 0);
}

describe("performance events of old browser SDKs", () => {
  test.each([
    ["alone", (key: string) => ({ ...removed, api_key: key }), 0, 1],
    [
      "in a batch",
      (key: string) => ({
        api_key: key,
        batch: [kept, removed, kept, { ...removed, distinct_id: "" }],
      }),
      2,
      2,
    ],
    ["in an array", (key: string) => [{ ...removed, token: key }, removed, kept], 1, 2],
    [
      "with an escaped name",
      (key: string) => JSON.stringify([{ ...removed, token: key }]).replace("$", "\\u0024"),
      0,
      1,
    ],
    [
      "with a property name that must be cleaned",
      (key: string) => [{ ...removed, token: key, properties: { "a\0": 1 } }],
      0,
      1,
    ],
  ])("are removed without a warning: %s", async (_title, bodyOf, accepted, count) => {
    const project = await gateway.project();
    const before = await removedSoFar();
    const answer = await gateway.post("/capture/", bodyOf(project.key));
    expect([answer.status, answer.json]).toEqual([200, { status: "Ok", accepted, dropped: 0 }]);
    expect((await gateway.events(project)).map(({ event }) => event)).toEqual(
      Array(accepted).fill(kept.event),
    );
    expect((await removedSoFar()) - before).toBe(count);
  });

  test("do not hide the errors of other events", async () => {
    const project = await gateway.project();
    const answer = await gateway.post("/capture/", [
      removed,
      { event: "e", distinct_id: "u", token: project.key, properties: 1 },
    ]);
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({
      accepted: 0,
      dropped: 1,
      errors: [{ index: 1, code: "invalid_properties" }],
    });
  });
});
