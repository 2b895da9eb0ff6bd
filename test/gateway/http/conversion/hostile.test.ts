// Bodies of 2 MB whose conversion is slow.

import { connect } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { AiMultipart } from "../../../../src/gateway/http/conversion/ai-multipart.ts";
import { OtlpTraces } from "../../../../src/gateway/http/conversion/otlp-traces.ts";
import { startTestServer } from "../../../kit/http-server.ts";
import { otlpJson, otlpProtobuf, type TestSpan } from "../../../kit/otlp-spans.ts";

const bytes = 2_000_000;
const textBytes = 500_000;
const config = { bodyBytesMax: 5_000_000, inflightBytesMax: 100_000_000 };
const headers = { authorization: "Bearer phc_key" };
const protobuf = "application/x-protobuf";
const boundary = "b";

afterEach(() => {
  vi.restoreAllMocks();
});

function fourWith(text: string): Buffer {
  const attributes = { "gen_ai.input.messages": text };
  return otlpProtobuf([{ spans: Array<TestSpan>(4).fill({ attributes }) }]);
}

const small: TestSpan = { attributes: { "gen_ai.x": 1 } };
const texts = Array<string>(25_000).fill("[x");
const indexed = Array.from({ length: 10_000 }, (_, at) => [`llm.input_messages.${at}.m`, 1]);

test.each<[string, string, Buffer | string]>([
  ["a text of numbers", protobuf, fourWith(`[${"1 ".repeat(textBytes / 2 - 50)}`)],
  ["a text of quotes", protobuf, fourWith('"'.repeat(textBytes))],
  ["a text of brackets", protobuf, fourWith("[".repeat(textBytes))],
  [
    "a text of nested JSON",
    protobuf,
    fourWith("[".repeat(textBytes / 2) + "]".repeat(textBytes / 2)),
  ],
  ["a text of objects", protobuf, fourWith(`[${'{"a":[]},'.repeat(textBytes / 10)}1]`)],
  [
    "many texts",
    protobuf,
    otlpProtobuf([{ spans: [{ attributes: { "ai.usage.x": 1, "ai.values": texts } }] }]),
  ],
  [
    "indexed keys",
    protobuf,
    otlpProtobuf([{ spans: [{ attributes: Object.fromEntries(indexed) }] }]),
  ],
  [
    "a large resource of many spans",
    "application/json",
    otlpJson([
      { resource: { text: "x".repeat(450_000) }, spans: Array<TestSpan>(1_000).fill(small) },
    ]),
  ],
  [
    "a resource that is parsed again for each span",
    protobuf,
    otlpProtobuf([
      {
        resource: { "gen_ai.input.messages": `[${" ".repeat(450_000)}]` },
        spans: Array<TestSpan>(1_000).fill(small),
      },
    ]),
  ],
  ["empty messages", protobuf, Buffer.alloc(bytes, Buffer.from([0x0a, 0]))],
  ["unknown members", "application/json", `{${'"a":1,'.repeat(bytes / 6)}"a":1}`],
  [
    "an event in parts",
    `multipart/form-data; boundary=${boundary}`,
    [
      `--${boundary}\r\nContent-Disposition: form-data; name="event"\r\n\r\n{"event":"e","distinct_id":"u"}`,
      `\r\n--${boundary}\r\nContent-Disposition: form-data; name="event.properties"\r\n\r\n{${'"a":1,'.repeat(75_000)}"a":1}`,
      `\r\n--${boundary}\r\nContent-Disposition: form-data; name="event.properties.x"\r\n\r\n${"x".repeat(1_000_000)}`,
      `\r\n--${boundary}--\r\n`,
    ].join(""),
  ],
])("another request is answered while a thread converts %s", async (_title, type, body) => {
  const server = await startTestServer(config);
  const converts = [OtlpTraces, AiMultipart].map((kind) => vi.spyOn(kind.prototype, "convert"));
  const path = type.startsWith("multipart") ? "/i/v0/ai" : "/i/v0/ai/otel";
  const post = (to: string, content: Buffer | string, more: Record<string, string>) =>
    fetch(server.url + to, {
      method: "POST",
      body: new Uint8Array(Buffer.from(content)),
      headers: more,
    });
  const hostile = post(path, body, { ...headers, "content-type": type });
  const capture = post("/capture/", '{"event":"e"}', {});
  expect((await capture).status).toBe(200);
  const { status } = await hostile;
  expect([200, 400]).toContain(status);
  for (const convert of converts) expect(convert).not.toHaveBeenCalled();
  expect(server.taken).toHaveLength(status === 200 ? 2 : 1);
});

test("a request ends without an error if its client disconnects during the conversion", async () => {
  const server = await startTestServer(config);
  const body = Buffer.alloc(bytes, Buffer.from([0x0a, 0]));
  const socket = connect(server.port, "127.0.0.1");
  const head = ["POST /i/v0/ai/otel HTTP/1.1", "Host: x", "Authorization: Bearer phc_key"];
  socket.write(
    [...head, `Content-Type: ${protobuf}`, `Content-Length: ${body.length}`, "", ""].join("\r\n"),
  );
  socket.write(body, () => socket.end());
  socket.resume();
  await expect.poll(() => server.http.inflight(), { timeout: 20_000 }).toBe(1);
  socket.destroy();
  await expect.poll(() => server.http.inflight(), { timeout: 20_000 }).toBe(0);
  expect(server.logged).toEqual([]);
});

test("a drain waits for the body that is being converted", async () => {
  const server = await startTestServer(config);
  const body = new Uint8Array(Buffer.alloc(bytes, Buffer.from([0x0a, 0])));
  const type = { ...headers, "content-type": protobuf };
  const answer = fetch(`${server.url}/i/v0/ai/otel`, { method: "POST", body, headers: type });
  await expect.poll(() => server.http.inflight(), { timeout: 20_000 }).toBe(1);
  expect(await server.http.drain(60_000)).toBe(0);
  expect([200, 400]).toContain((await answer).status);
});
