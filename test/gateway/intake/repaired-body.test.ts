import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { startTestGateway, type TestProject } from "../../kit/gateway.ts";

let project: TestProject;

const gateway = await gatewayForFile();

const good = '{"event":"good","distinct_id":"\xef\xbf\xbd","properties":{"a":"\xc3\xa9"}}';

async function send(text: (key: string) => string, zip = false) {
  project = await gateway.project();
  const body = Buffer.from(text(project.key), "latin1");
  return zip
    ? gateway.post("/batch/", gzipSync(body), { "content-encoding": "gzip" })
    : gateway.post("/batch/", body);
}

describe("invalid UTF-8", () => {
  test.each([
    ["a value", '"properties":{"city":"M\xfcnchen"}', { properties: { city: "M\ufffdnchen" } }],
    ["a name", '"properties":{"Stra\xdfe":1}', { properties: { "Stra\ufffde": 1 } }],
    [
      "a truncated sequence",
      '"$set":{"a":"\xe2\x82","b":"\xf0\x9f\x98"}',
      { $set: { a: "\ufffd", b: "\ufffd" } },
    ],
    ["an encoded surrogate", '"$set":{"a":"\xed\xa0\x80"}', { $set: { a: "\ufffd\ufffd\ufffd" } }],
    [
      "a value next to a lone surrogate",
      '"$set":{"\\\\ud800":"\xff"}'.replace("\\\\", "\\"),
      { $set: { "\ufffd": "\ufffd" } },
    ],
  ])("in %s of one event is replaced with a warning", async (_title, fields, stored) => {
    for (const filler of [0, 200_000, 1_200_000]) {
      const more = `{"event":"filler","distinct_id":"u","properties":{"x":"${"x".repeat(filler)}"}}`;
      const bad = `{"event":"bad","distinct_id":"u",${fields}}`;
      const answer = await send(
        (key) => `{"api_key":"${key}","batch":[${[good, more, bad, good].join()}]}`,
        filler > 0,
      );
      expect(answer.json).toMatchObject({
        accepted: 4,
        dropped: 0,
        warnings: [{ index: 2, code: "invalid_utf8" }],
      });
      expect(answer.json["warnings_total"]).toBe(1);
      const events = await gateway.events(project);
      expect(events.map((event) => event["event"])).toEqual(["good", "filler", "bad", "good"]);
      expect(events[2]).toMatchObject(stored);
      expect(events[3]).toMatchObject({ distinct_id: "\ufffd", properties: { a: "é" } });
    }
  });

  test("in a single event is replaced with warnings", async () => {
    const answer = await send(
      (key) => `{"api_key":"${key}","event":"caf\xe9","distinct_id":"\xff"}`,
    );
    expect(answer.json).toMatchObject({
      accepted: 1,
      warnings: [{ index: 0, code: "invalid_utf8" }],
    });
    expect((await gateway.events(project))[0]).toMatchObject({
      event: "caf\ufffd",
      distinct_id: "\ufffd",
    });
  });

  test("only in the envelope is replaced without a warning", async () => {
    const answer = await send(
      (key) => `{"api_key":"${key}","x":"\xff","batch":[${good}],"y":"\xfe"}`,
    );
    expect(answer.json).toEqual({ status: "Ok", accepted: 1, dropped: 0 });
  });

  test.each([
    ["between tokens", (key: string) => `{"api_key":"${key}","batch":[${good}\xff]}`],
    ["instead of JSON", () => "\x89PNG\r\n\x1a\n\xff\xfe"],
    ["in braces that are not JSON", () => `{${"\xff".repeat(5_000)}}`],
    ["in a string instead of an object", () => '"\xff"'],
  ])("%s is rejected", async (_title, text) => {
    const answer = await send(text);
    expect([answer.status, answer.json["code"]]).toEqual([400, "invalid_encoding"]);
    expect(answer.json["detail"]).toMatch(/offset \d+/);
  });
});

describe("NaN or Infinity", () => {
  const bad = (fields: string) => `{"event":"bad","distinct_id":"u",${fields}}`;

  test.each([
    ["a property", '"properties":{"a":NaN,"b":[1,-Infinity,{"c":Infinity}]}', { a: null }],
    ["$set", '"properties":{"a":null},"$set":{"price": NaN}', { a: null }],
    ["a timestamp", '"timestamp":NaN,"properties":{"a":null}', { a: null }],
    ["an uuid", '"uuid":Infinity,"properties":{"a":null}', { a: null }],
    [
      "a property next to a string",
      '"properties":{"a":"NaN, -Infinity","b":NaN}',
      { a: "NaN, -Infinity" },
    ],
    ["a property next to malformed bytes", '"properties":{"a":"\xff","b":NaN}', { a: "\ufffd" }],
  ])("in %s of one event is stored as null with a warning", async (_title, fields, properties) => {
    for (const filler of [0, 200_000, 1_200_000]) {
      const more = `{"event":"filler","distinct_id":"u","properties":{"x":"${"x".repeat(filler)}"}}`;
      const answer = await send(
        (key) => `{"api_key":"${key}","batch":[${[good, more, bad(fields), good].join()}]}`,
        filler > 0,
      );
      expect(answer.json).toMatchObject({ status: "Ok", accepted: 4, dropped: 0 });
      expect(answer.json["warnings"]).toContainEqual(
        expect.objectContaining({ index: 2, code: "non_finite_number" }),
      );
      const events = await gateway.events(project);
      expect(events.map((event) => event["event"])).toEqual(["good", "filler", "bad", "good"]);
      expect(events[2]).toMatchObject({ properties });
    }
  });

  test("as a distinct id drops only that event", async () => {
    const answer = await send(
      (key) => `{"api_key":"${key}","batch":[${good},{"event":"x","distinct_id":NaN},${good}]}`,
    );
    expect(answer.json).toMatchObject({
      accepted: 2,
      dropped: 1,
      warnings: [{ index: 1, code: "no_distinct_id" }],
    });
  });

  test("is stored as null in base64, in a form and in history", async () => {
    project = await gateway.project();
    const event = { event: "e", distinct_id: "u", properties: { token: project.key, a: 0 } };
    const text = JSON.stringify(event).replace('"a":0', '"a":NaN');
    const base64 = Buffer.from(text).toString("base64");
    const form = new URLSearchParams({ data: base64 }).toString();
    const type = { "content-type": "application/x-www-form-urlencoded" };
    const history = `{"api_key":"${project.key}","historical_migration":true,"batch":[${text}]}`;
    for (const answer of [
      await gateway.post("/e/", Buffer.from(base64)),
      await gateway.post("/e/", Buffer.from(form), type),
      await gateway.post("/batch/", Buffer.from(history)),
    ])
      expect([answer.status, answer.json["accepted"]]).toEqual([200, 1]);
  });

  test.each(["-NaN", "nan", "+Infinity", "NaNN", "1NaN", "undefined"])(
    "is rejected in an unusual notation: %s",
    async (word) => {
      const answer = await send(
        (key) => `{"api_key":"${key}","batch":[${bad(`"properties":{"a":${word}}`)}]}`,
      );
      expect([answer.status, answer.json["code"]]).toEqual([400, "invalid_json"]);
    },
  );
});

test.each([
  ["NaN", `[${"NaN,".repeat(3_750_000)}NaN]`],
  ["malformed bytes", `"${"\xff".repeat(15_000_000)}"`],
  ["objects with NaN", `[${'{"":NaN,"a":NaN},'.repeat(880_000)}0]`],
])("an event of 15 MB of %s is dropped", async (_title, value) => {
  const bad = `{"event":"bad","distinct_id":"u","properties":{"a":${value}}}`;
  const last = '{"event":"last","distinct_id":"u","properties":{"a":NaN}}';
  const answer = await send((key) => `{"api_key":"${key}","batch":[${[good, bad, good, last]}]}`);
  expect(answer.json).toMatchObject({
    accepted: 3,
    dropped: 1,
    errors: [{ index: 1, code: "event_too_large" }],
    warnings: [{ index: 3, code: "non_finite_number" }],
  });
  const events = await gateway.events(project);
  expect(events.map((event) => event["event"])).toEqual(["good", "good", "last"]);
});

test("the memory of a repaired body is counted and released", async () => {
  const bytesMax = { PENSTOCK_BODY_BYTES_MAX: "524288", PENSTOCK_INFLATED_BYTES_MAX: "524288" };
  const tight = await startTestGateway({
    env: { ...bytesMax, PENSTOCK_INFLIGHT_BYTES_MAX: "1048576" },
  });
  try {
    const { key } = await tight.project();
    const post = (bytes: number) => {
      const properties = `{"token":"${key}","a":[${"NaN,".repeat(bytes / 4)}0]}`;
      return tight.post("/e/", `{"event":"e","distinct_id":"u","properties":${properties}}`);
    };
    for (let round = 0; round < 4; round++) {
      expect((await post(500_000)).json["code"]).toBe("overloaded");
      expect((await post(400_000)).json["accepted"]).toBe(1);
    }
  } finally {
    await tight.stop();
  }
});

test("a surrogate pair in two UTF-8 sequences is stored as one character", async () => {
  project = await gateway.project();
  const text = `{"event":"e","distinct_id":"u","properties":{"token":"${project.key}","a":"\xed\xa0\xbd\xed\xb8\x80!"}}`;
  const answer = await gateway.post(
    "/e/?compression=base64",
    Buffer.from(Buffer.from(text, "latin1").toString("base64")),
  );
  expect(answer.json).toEqual({ status: "Ok", accepted: 1, dropped: 0 });
  expect((await gateway.events(project))[0]).toMatchObject({ properties: { a: "😀!" } });
});
