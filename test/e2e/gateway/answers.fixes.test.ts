import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import type { Answer } from "../../kit/gateway.ts";

const gateway = await gatewayForFile();
const project = await gateway.project();

const event = { event: "e", distinct_id: "u" };
const mark = Buffer.from("\ufeff");

describe("the detail of an error", () => {
  test.each<[string, object, string]>([
    ["apiKey", { apiKey: "phc_0123456789", ...event }, "apiKey"],
    [
      "api-key, after the events",
      { batch: Array(5_000).fill(event), "api-key": "phc_0123456789" },
      "api-key",
    ],
    [
      "write_key, after properties",
      { ...event, properties: { x: "y".repeat(9_000) }, write_key: "phc_012" },
      "write_key",
    ],
    ["key", { key: "phc_0123456789", ...event }, "key"],
    ["apiKey, in an array", [{ apiKey: "phc_0123456789", ...event }, event], "apiKey"],
    [
      "api-key, in a later item and after properties",
      [7, event, { ...event, properties: { x: "y".repeat(9_000) }, "api-key": "phc_012" }],
      "api-key",
    ],
  ])("suggests api_key for %s", async (_, body, sent) => {
    const answer = await gateway.post("/batch/", body);
    expect(answer.json).toMatchObject({ status: 401, code: "missing_api_key" });
    expect(answer.json["detail"]).toMatch(new RegExp(`; you sent "${sent}": write "api_key"$`));
    expect(JSON.stringify(answer.json)).not.toContain("phc_012");
  });

  test("shows enough of an unknown key for its owner to recognise it", async () => {
    const answer = await gateway.post("/batch/", {
      api_key: "phc_0123456789abcdef",
      batch: [event],
    });
    const detail = "No project has the API key that begins with phc_0123 (20 characters)";
    expect(answer.json).toMatchObject({ status: 401, code: "unknown_api_key", detail });
  });

  test("shows invalid JSON around the error", async () => {
    const answer = await gateway.post(
      "/batch/",
      `{"api_key":"${project.key}","event":"secret plan","distinct_id":"u",}`,
    );
    expect(answer.json).toMatchObject({ status: 400, code: "invalid_json" });
    expect(answer.json["detail"]).toMatch(
      /: remove the comma before it\. Near: plan","distinct_id":"u",\}$/,
    );
    const broken = await gateway.post(
      "/batch/",
      `{"event":"secret plan" "token":"${project.key}"}`,
    );
    expect(broken.json["detail"]).toMatch(/Near: .*plan" "token"/);
    const escaped = await gateway.post("/batch/", '{"t\\u006fken": ["abcdefghijklmnop" x]}');
    expect(escaped.json["detail"]).toMatch(/Near: n": \[\*{18} x/);
    expect(JSON.stringify([answer.json, broken.json])).not.toContain(project.key);
  });

  test.each<[string, (body: Buffer) => Uint8Array]>([
    ["uncompressed", (body) => body],
    ["compressed", gzipSync],
  ])("does not mention a leading byte order mark: %s", async (_, encoded) => {
    const own = await gateway.project();
    const one = Buffer.concat([mark, Buffer.from(JSON.stringify({ api_key: own.key, ...event }))]);
    const padded = { ...event, properties: { x: "x".repeat(50_000) } };
    const many = Buffer.concat([
      mark,
      Buffer.from(JSON.stringify({ api_key: own.key, batch: Array(50).fill(padded) })),
    ]);
    for (const [body, accepted] of [[one, 1] as const, [many, 50] as const]) {
      expect((await gateway.post("/batch/", encoded(body))).json).toEqual({
        status: "Ok",
        accepted,
        dropped: 0,
      });
    }
    expect(await gateway.events(own)).toHaveLength(51);
  });

  test("contains the byte offset in a body with a byte order mark", async () => {
    for (const length of [10, 200_000]) {
      const text = `{"x":"${"y ".repeat(length / 2)}",'z':1}`;
      const sent = Buffer.concat([mark, Buffer.from(text)]);
      const { json } = await gateway.post("/batch/", sent);
      expect(json["detail"]).toContain(`unexpected ' at byte offset ${sent.indexOf("'")}: `);
    }
  });

  test("reports a second or incomplete byte order mark", async () => {
    const text = Buffer.from(JSON.stringify({ api_key: project.key, ...event }));
    for (const before of [
      Buffer.concat([mark, mark]),
      mark.subarray(0, 2),
      Buffer.from([0xef]),
      mark.subarray(1),
    ]) {
      const answer: Answer = await gateway.post("/batch/", Buffer.concat([before, text]));
      expect(answer.json).toMatchObject({ status: 400 });
    }
    expect((await gateway.post("/batch/", mark)).json).toMatchObject({
      status: 400,
      code: "empty_body",
    });
  });

  test.each<[string, string | Uint8Array, string, RegExp]>([
    [
      "NDJSON",
      '{"event":"a"}\n{"event":"b"}\n',
      "invalid_json",
      /send an array of them, or \{"batch": \[\.\.\.\]\}/,
    ],
    [
      "a form",
      "event=e&distinct_id=u&api_key=phc_0123456789",
      "invalid_json",
      /looks like a form: send JSON/,
    ],
    [
      "multipart",
      '--x\r\nContent-Disposition: form-data; name="event"\r\n\r\ne\r\n--x--',
      "invalid_json",
      /multipart\/form-data/,
    ],
    [
      "text",
      '"{\\"event\\":\\"e\\"}"',
      "invalid_payload",
      /it is text that looks like JSON encoded twice$/,
    ],
    ["a number", "5", "invalid_payload", /it is a number$/],
    [
      "UTF-16",
      Buffer.from('\ufeff{"event":"e"}', "utf16le"),
      "invalid_encoding",
      /looks like UTF-16: send UTF-8/,
    ],
    ["gzip twice", gzipSync(gzipSync("{}")), "invalid_encoding", /compress it once/],
  ])("recognises %s", async (_, body, code, detail) => {
    const answer = await gateway.post("/batch/", body);
    expect(answer.json).toMatchObject({ status: 400, code, detail: expect.stringMatching(detail) });
    expect(JSON.stringify(answer.json)).not.toContain("phc_0123456789");
  });

  test("suggests a similar path", async () => {
    const answer = await gateway.post("/captur", { api_key: project.key, ...event });
    expect(answer.json).toMatchObject({ status: 404, code: "not_found" });
    expect(answer.json["detail"]).toBe(
      "There is nothing at /captur: events go to /capture/ or /batch/; did you mean /capture/?",
    );
    expect(await gateway.events(project)).toEqual([]);
  });
});
