import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { outcomes, postV1, v1Headers } from "../../kit/v1-requests.ts";

const gateway = await gatewayForFile();

const one = "00000000-0000-4000-8000-000000000001";
const two = "00000000-0000-4000-8000-000000000002";
const rest = '"event":"e","distinct_id":"d","timestamp":"2026-11-22T00:00:00Z"';

async function send(...events: string[]) {
  const project = await gateway.project();
  const body = `{"created_at":"2026-11-22T00:00:00Z","batch":[${events.map((event) => `{${event},${rest}}`).join(",")}]}`;
  const answer = await postV1(gateway, body, v1Headers(project.key));
  return { answer, stored: (await gateway.events(project)).map(({ uuid }) => uuid) };
}

describe("the uuid of a v1 event", () => {
  test.each([
    ["an escaped name", `"\\u0075uid":"${two}"`],
    ["an escaped name after a plain name", `"uuid":"${one}","uu\\u0069d":"${two}"`],
    ["a plain name after an escaped name", `"uu\\u0069d":"${one}","uuid":"${two}"`],
    ["a duplicate name", `"uuid":"${one}","uuid":"${two}"`],
    ["an escaped value", `"uuid":"\\u0030${two.slice(1)}"`],
    ["an escaped value under an escaped name", `"uu\\u0069\\u0064":"${two.slice(0, -1)}\\u0032"`],
  ])("is the same in the results and in the store, with %s", async (_, written) => {
    const { answer, stored } = await send(written);
    expect(answer.json.results).toEqual({ [two]: { result: "ok" } });
    expect(stored).toEqual([two]);
  });

  test("is rejected as missing if its last occurrence is invalid", async () => {
    const { answer, stored } = await send(`"uuid":"${two}"`, `"uuid":"${one}","uu\\u0069d":null`);
    expect([answer.status, answer.json.error_description]).toEqual([
      400,
      expect.stringContaining("batch[1] has none"),
    ]);
    expect(stored).toEqual([]);
  });

  test("is rejected if another event has that uuid under an escaped name", async () => {
    const { answer, stored } = await send(
      `"uuid":"${one}","uu\\u0069d":"${two}"`,
      `"uuid":"${two}"`,
    );
    expect(answer.status).toBe(400);
    expect(answer.json.error_description).toContain("batch[1] has the same uuid as batch[0]");
    expect(stored).toEqual([]);
    expect(outcomes((await send(`"uuid":"${one}"`, `"uuid":"${two}"`)).answer)).toEqual([
      "ok",
      "ok",
    ]);
  });
});
