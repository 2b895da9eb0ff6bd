import { Buffer } from "node:buffer";
import { expect, test } from "vitest";
import { SinkRecords } from "../../../src/readers/sinks/sink-records.ts";
import { compileRules } from "../../../src/rules/compile.ts";
import { noPrivacy } from "../../../src/rules/rules-file.ts";
import { take } from "../../kit/items.ts";

const rules = compileRules(
  {
    ...{ privacy: noPrivacy, rules: [] },
    schemas: [{ event: "order", version: 2, mode: "stamp", properties: { required: ["total"] } }],
  },
  { version: 1, secret: Buffer.from("secret") },
);

test("sinks write the sent values and the result of the schema into the properties", () => {
  const sent = [
    { event: "order", properties: { total: 1 } },
    { event: "order", properties: {}, uuid: "7" },
    { event: "other", properties: { a: 1 }, uuid: "7" },
    { event: "other" },
  ];
  const { lines } = take({ batch: sent.map((one) => ({ distinct_id: "u", ...one })) }, { rules });
  const data = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  const properties: string[] = [];
  const reading = new SinkRecords().read(
    { stream: "S", sequence: 1, storedAtMs: 0, projectId: "p", data },
    {
      record: (record) => void properties.push(Buffer.from(record.properties).toString()),
      rejected: ({ detail }) => {
        throw new Error(detail);
      },
    },
  );
  for (const _ of reading);
  const errors = '"errors":["total: is required"]';
  expect(properties).toEqual([
    '{"$schema":{"version":2,"ok":true},"total":1}',
    `{"$replaced":{"uuid":"7"},"$schema":{"version":2,"ok":false,${errors}}}`,
    '{"$replaced":{"uuid":"7"},"a":1}',
    "{}",
  ]);
});
