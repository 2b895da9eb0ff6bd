import { expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";

const gateway = await gatewayForFile();
const uuid = "0199b1c2-0000-7000-8000-00000000000f";
const other = "0199b1c2-0000-7000-8000-00000000001f";

const one = { event: "a", distinct_id: "u", uuid };

test.each([
  ["a different name", [one, { ...one, event: "b" }], [1]],
  ["a different distinct id", [one, { ...one, distinct_id: "v" }], [1]],
  [
    "a different name and distinct id, repeatedly",
    [one, { ...one, event: "b" }, { ...one, distinct_id: 7 }],
    [1, 2],
  ],
  ["an equal name and distinct id", [one, one, { ...one, properties: { n: 1 } }], []],
  ["a different uuid with the same last digit", [one, { ...one, event: "b", uuid: other }], []],
  [
    "events without a uuid",
    [one, { event: "b", distinct_id: "u" }, { event: "c", distinct_id: "u" }],
    [],
  ],
])("the gateway stores all events and warns about a shared uuid: %s", async (_, batch, indices) => {
  const project = await gateway.project();
  const answer = await gateway.post("/batch/", { api_key: project.key, batch });
  expect(answer.json).toMatchObject({ status: "Ok", accepted: batch.length });
  const warnings = (answer.json["warnings"] ?? []) as { code: string; index: number }[];
  expect(warnings.map(({ code, index }) => [code, index])).toEqual(
    indices.map((index) => ["reused_uuid", index]),
  );
  const events = await gateway.events(project);
  expect(events.map(({ event }) => event)).toEqual(batch.map(({ event }) => event));
});
