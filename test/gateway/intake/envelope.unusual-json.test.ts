import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import type { TestProject } from "../../kit/gateway.ts";

const gateway = await gatewayForFile();

async function storedLines(body: (project: TestProject) => string): Promise<string[]> {
  const project = await gateway.project();
  const answer = await gateway.post("/batch/", body(project));
  expect(answer.json).toMatchObject({ status: "Ok" });
  return (await gateway.frames(project)).flatMap((frame) => frame.text.split("\n").slice(0, -1));
}

describe("unusual JSON", () => {
  describe("a body", () => {
    test("with any white space between tokens is stored", async () => {
      const lines = await storedLines(({ key }) => {
        const event = { event: "e", distinct_id: "u", properties: { a: { b: [1, 2, "\n"] } } };
        return ` \t\r\n${JSON.stringify({ api_key: key, batch: [event, event] }, undefined, 2).replaceAll("\n", "\r\n")}\r\n `;
      });
      expect(lines).toHaveLength(2);
      for (const line of lines) {
        expect(JSON.parse(line)).toMatchObject({
          event: "e",
          distinct_id: "u",
          properties: { a: { b: [1, 2, "\n"] } },
        });
      }
    });

    test("with escaped keys at every level is stored", async () => {
      const lines = await storedLines(
        ({ key }) =>
          `{"\\u0061pi_key":"${key}","b\\u0061tch":[{"\\u0065vent":"$identify","distinct\\u005fid":"u","properties":{"\\u0024set":{"n":1.50}}}]}`,
      );
      expect(lines).toHaveLength(1);
      expect(JSON.parse(lines[0] ?? "")).toMatchObject({
        event: "$identify",
        distinct_id: "u",
        kind: "identify",
      });
      expect(lines[0]).toContain('"properties":{"$set":{"n":1.50}}');
    });

    test("with an escaped key only in an item is stored", async () => {
      const lines = await storedLines(
        ({ key }) =>
          `{"api_key":"${key}","batch":[{"event":"a","distinct_id":"1"},{"\\u0065vent":"b","distinct_id":"2"}]}`,
      );
      expect(lines.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual([
        "a",
        "b",
      ]);
    });

    test("with an escaped key in a single event is stored", async () => {
      const lines = await storedLines(
        ({ key }) => `{"api_ke\\u0079":"${key}","\\u0065vent":"a","distinct_id":"1"}`,
      );
      expect(lines).toHaveLength(1);
    });

    test("with duplicate keys is stored with the last value of each key", async () => {
      const lines = await storedLines(
        ({ key }) =>
          `{"api_key":"wrong","api_key":"${key}","batch":1,"batch":[{"event":"a","event":"b","distinct_id":"1","distinct_id":"2","properties":5,"properties":{"$set":1,"$set":{"x":1}}}]}`,
      );
      expect(lines).toHaveLength(1);
      expect(JSON.parse(lines[0] ?? "")).toMatchObject({
        event: "b",
        distinct_id: "2",
        properties: { $set: { x: 1 } },
      });
      expect(lines[0]).toMatch(/"properties":\{"\$set":\{"x":1\}\},"\$set":\{"x":1\}\}$/);
    });

    test("with numbers that no double can hold is stored with the original digits", async () => {
      const numbers = "[12345678901234567890123,1e400,-0,0.10,1E+2]";
      const lines = await storedLines(
        ({ key }) =>
          `{"api_key":"${key}","batch":[{"event":"a","distinct_id":12345678901234567890,"properties":{"n":${numbers}}},{"event":"b","distinct_id":"\\ud800","properties":{"n":${numbers}}}]}`,
      );
      expect(lines).toHaveLength(2);
      expect(lines[0]).toContain('"distinct_id":"12345678901234567890"');
      for (const line of lines) expect(line).toContain(`"properties":{"n":${numbers}}`);
    });

    test("with escapes in every string that the gateway reads is stored", async () => {
      const lines = await storedLines(({ key }) => {
        const escaped = [...key]
          .map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`)
          .join("");
        return `{"api_key":"${escaped}","batch":[{"event":"\\u0024pageview","distinct_id":"\\u0075","timestamp":"2026\\u002d01-01","properties":{"$current_url":"https:\\/\\/x"}}]}`;
      });
      expect(JSON.parse(lines[0] ?? "")).toMatchObject({
        event: "$pageview",
        kind: "pageview",
        distinct_id: "u",
        timestamp: "2026-01-01T00:00:00.000Z",
        properties: { $current_url: "https://x" },
      });
    });

    test("with prototype names as keys is stored", async () => {
      const lines = await storedLines(
        ({ key }) =>
          `{"api_key":"${key}","__proto__":{"event":"x"},"batch":[{"event":"a","distinct_id":"1","__proto__":{"distinct_id":"z"},"constructor":1,"properties":{"__proto__":{"$set":1},"toString":2}},{"event":"constructor","distinct_id":"__proto__\\ud800","properties":{"__proto__":3}}]}`,
      );
      expect(lines).toHaveLength(2);
      expect(lines[0]).toContain('"properties":{"__proto__":{"$set":1},"toString":2}');
      expect(lines[1]).toContain('"properties":{"__proto__":3}');
    });

    test("with an escaped uuid is stored with the decoded uuid", async () => {
      const lines = await storedLines(
        ({ key }) =>
          `{"api_key":"${key}","event":"a","distinct_id":"1","uuid":"0199AAAA\\u002dbbbb-7ccc-8ddd-eeeeeeeeeeee"}`,
      );
      expect(JSON.parse(lines[0] ?? "")).toMatchObject({
        uuid: "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee",
      });
    });

    test.each([
      ["is 100 levels deep, and is stored", 98, "9".repeat(400), undefined],
      ["is 101 levels deep, and gets an error", 99, "1", "too_deep"],
      ["is 200,000 levels deep, and gets an error", 200_000, "1", "too_deep"],
      [
        "has a number of 400 digits, and is stored",
        1,
        `-${"1".repeat(200)}.${"2".repeat(197)}e+123`,
        undefined,
      ],
      [
        "has a number of 401 digits, and gets an error",
        1,
        `${"1".repeat(400)}.0`,
        "number_too_long",
      ],
      ["has a number of 5,000 digits, and gets an error", 1, "7".repeat(5_000), "number_too_long"],
    ])("has its other items stored if one item %s", async (_title, depth, number, code) => {
      for (const key of ["a", "\\ud800", "\\u0000"]) {
        const project = await gateway.project();
        const value = `${"[".repeat(depth)}${number}${"]".repeat(depth)}`;
        const item = `{"event":"a","distinct_id":"1","properties":{"${key}":${value}}}`;
        const good = '{"event":"b","distinct_id":"2"}';
        const answer = await gateway.post(
          "/batch/",
          `{"api_key":"${project.key}","batch":[${good},${item},${good}]}`,
        );
        const errors = code === undefined ? undefined : [{ index: 1, code }];
        expect(answer.json).toMatchObject({
          accepted: code === undefined ? 3 : 2,
          ...(errors && { errors }),
        });
        const lines = (await gateway.frames(project)).flatMap((frame) =>
          frame.text.split("\n").slice(0, -1),
        );
        expect(lines).toHaveLength(code === undefined ? 3 : 2);
        if (code === undefined) expect(lines[1]).toContain(value);
        const single = `{"api_key":"${project.key}",${item.slice(1)}`;
        expect((await gateway.post("/capture/", single)).status).toBe(
          code === undefined ? 200 : 400,
        );
      }
    });

    test("with a deep or long value in the envelope is stored without the value", async () => {
      const lines = await storedLines(
        ({ key }) =>
          `{"api_key":"${key}","x":${"[".repeat(5_000)}${"1".repeat(5_000)}${"]".repeat(5_000)},"batch":[{"event":"a","distinct_id":"1"}]}`,
      );
      expect(lines).toHaveLength(1);
    });

    test("with U+0000 and lone surrogates is stored with U+FFFD", async () => {
      const bad = ["\\u0000", "\\ud800", "\\udfff"];
      const lines = await storedLines(({ key }) => {
        const items = bad.map(
          (c) =>
            `{"event":"e${c}","distinct_id":"u${c}","properties":{"n${c}":{"d":["v${c}",{"k${c}":1}]}},"$set":{"s${c}":"${c}"},"$set_once":{"${c}":"o"}}`,
        );
        return `{"api_key":"${key}","batch":[${items.join()}]}`;
      });
      expect(lines).toHaveLength(bad.length);
      for (const line of lines) {
        expect(JSON.parse(line)).toMatchObject({
          event: "e\ufffd",
          distinct_id: "u\ufffd",
          properties: { "n\ufffd": { d: ["v\ufffd", { "k\ufffd": 1 }] } },
          $set: { "s\ufffd": "\ufffd" },
          $set_once: { "\ufffd": "o" },
        });
        expect(line).not.toMatch(/\\u(0000|d[89a-f])/i);
      }
    });

    test("with duplicate names in a normalised event is stored with the last values", async () => {
      const lines = await storedLines(
        ({ key }) =>
          `{"api_key":"${key}","event":"a","distinct_id":"1","properties":{"$set":1,"$set":{"x":1,"\\u0078":2},"l":[{"y":1,"y":[{"z":1,"z":2}]}]}}`,
      );
      expect(lines[0]).toContain('"properties":{"$set":{"x":2},"l":[{"y":[{"z":2}]}]}');
    });

    test("with an object as distinct id is stored with the same id", async () => {
      const lines = await storedLines(({ key }) => {
        const ids = [
          '{"a":"é", "b":[1]}',
          '{ "\\u0061" :"\\u00e9","b":[ 1 ] }',
          '{"b":0,"a":"\\u00E9","b":[1]}',
        ];
        return `{"api_key":"${key}","batch":[${ids.map((id) => `{"event":"e","distinct_id":${id}}`).join()}]}`;
      });
      const ids = lines.map((line) => (JSON.parse(line) as { distinct_id: string }).distinct_id);
      expect(ids).toEqual(Array.from({ length: 3 }, () => '{"a":"é","b":[1]}'));
    });

    test("with an item too large to be normalised is stored without the item", async () => {
      const project = await gateway.project();
      const large = `{"event":"a","distinct_id":"1","properties":{"\\ud800":"${"x".repeat(1_048_576)}"}}`;
      const body = `{"api_key":"${project.key}","batch":[{"event":"b","distinct_id":"2"},${large}]}`;
      const answer = await gateway.post("/batch/", body);
      expect(answer.json).toMatchObject({
        accepted: 1,
        dropped: 1,
        errors: [{ index: 1, code: "event_too_large" }],
      });
      expect(await gateway.events(project)).toHaveLength(1);
    });
  });
});
