import { Buffer } from "node:buffer";
import { expect, test } from "vitest";
import { SinkRecords } from "../../../src/readers/sinks/sink-records.ts";
import { compileRules } from "../../../src/rules/compile.ts";
import { noPrivacy } from "../../../src/rules/rules-file.ts";
import { take } from "../../kit/items.ts";

const rules = compileRules(
  {
    privacy: noPrivacy,
    rules: [],
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
  const errors = '"errors":["total: is required"]';
  expect(propertiesIn(lines)).toEqual([
    '{"$schema":{"version":2,"ok":true},"total":1}',
    `{"$replaced":{"uuid":"7"},"$schema":{"version":2,"ok":false,${errors}}}`,
    '{"$replaced":{"uuid":"7"},"a":1}',
    "{}",
  ]);
});

test.each([
  ["first", '"$schema":{"ok":true},"a":1', '"a":1'],
  ["last", '"a":1, "$schema":{"ok":true} ', '"a":1'],
  ["alone", '"$schema":true', ""],
  ["twice", '"$schema":1,"a":[],"$schema":2', '"a":[]'],
  ["both", '"$replaced":{"uuid":"1"},"a":1,"$schema":2', '"a":1'],
  ["escaped", String.raw`"\u0024sch\u0065ma":1,"a":"\u0001"`, String.raw`"a":"\u0001"`],
  ["inside another", '"a":{"$schema":1}', '"a":{"$schema":1}'],
])("a client's own result of a schema is replaced: %s", (_, members, left) => {
  const item = `{"event":"order","uuid":"7","distinct_id":"u","properties":{${members}}}`;
  const { lines } = take(`{"batch":[${item}]}`, { rules });
  const [properties] = propertiesIn(lines);
  const errors = '"errors":["total: is required"]';
  const own = `"$replaced":{"uuid":"7"},"$schema":{"version":2,"ok":false,${errors}}`;
  expect(properties).toBe(`{${own}${left === "" ? "" : `,${left}`}}`);
});

test("a stored record with white space and escapes gets its own result of the schema", () => {
  const { lines } = take({ event: "order", distinct_id: "u", properties: {} }, { rules });
  const [empty] = lines.map((line) => line.replace('"properties":{}', '"properties":{ \t}'));
  const sent = String.raw`"properties":{ "\u0024schema" : 1 , "a" : 1 }`;
  const [escaped] = lines.map((line) => line.replace('"properties":{}', sent));
  expect(empty).not.toBe(lines[0]);
  const own = '"$schema":{"version":2,"ok":false,"errors":["total: is required"]}';
  expect(propertiesIn([empty!, escaped!])).toEqual([`{${own} \t}`, `{${own},"a" : 1}`]);
});

function propertiesIn(lines: readonly string[]): string[] {
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
  return properties;
}
