import { expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";

const gateway = await gatewayForFile();

const cases: [title: string, sent: string, stored: string][] = [
  ["in properties", '{"a":1,"b":2,"a":3}', '{"b":2,"a":3}'],
  ["one of them escaped", '{"a":1,"\\u0061":2}', '{"a":2}'],
  ["the first escaped", '{"\\u0061":1,"a":2}', '{"a":2}'],
  ["in a nested object", '{"x":{"y":[{"a":1,"a":2}]}}', '{"x":{"y":[{"a":2}]}}'],
  ["escaped, in a nested object", '{"x":{"a":1,"\\u0061":[]}}', '{"x":{"a":[]}}'],
  ["three times", '{"x":{"a":1,"a":{},"a":null}}', '{"x":{"a":null}}'],
  ["in $set", '{"$set":{"p":1,"p":2}}', '{"$set":{"p":2}}'],
  ["of a name that the gateway reads", '{"$groups":{"a":"b"},"$groups":[]}', '{"$groups":{}}'],
  ["none, the same name in two objects", '{"x":{"a":1},"y":{"a":1}}', '{"x":{"a":1},"y":{"a":1}}'],
];

test.each(cases)(
  "only the last value of a duplicate name is stored: %s",
  async (_, sent, stored) => {
    for (const historical of [false, true]) {
      const project = await gateway.project();
      const event = `{"event":"e","distinct_id":"u","timestamp":"2026-01-31T12:00:00Z","properties":${sent}}`;
      const body = `{"api_key":"${project.key}","historical_migration":${historical},"batch":[${event}]}`;
      expect((await gateway.post("/batch/", body)).json).toMatchObject({ accepted: 1 });
      const frames = await gateway.frames(project, historical ? "historical" : "live");
      expect(frames[0]?.text).toContain(`"properties":${stored}`);
    }
  },
);

test("only the last value of a duplicate name in $set is stored", async () => {
  const project = await gateway.project();
  const body = `{"api_key":"${project.key}","event":"e","distinct_id":"u","$set":{"p":1,"p":2}}`;
  await gateway.post("/capture/", body);
  expect((await gateway.frames(project))[0]?.text).toContain('"$set":{"p":2}');
});
