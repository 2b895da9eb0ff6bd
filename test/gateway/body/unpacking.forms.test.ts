import zlib from "node:zlib";
import { describe, expect, test } from "vitest";
import { codeIn, connectTo, startTestServer, until } from "../../kit/http-server.ts";
import { lzBomb, lzEncode } from "../../kit/lz.ts";
import { base64, form, forms, queryForms, requestOf, type Sent } from "../../kit/payload-forms.ts";
import { peekOfOneProject } from "../../kit/peek.ts";

const MIB = 1_048_576;
const large = { bodyBytesMax: 8 * MIB, inflatedBytesMax: 20 * MIB, inflightBytesMax: 64 * MIB };

const event = {
  api_key: "ka",
  event: "a b+c&d=e%41",
  distinct_id: "ü😀",
  properties: { text: 'say "ä+b c"' },
};
const texts: [string, string][] = [
  ["an event", JSON.stringify(event)],
  ["an array", JSON.stringify([event, event, { ...event, offset: 17 }])],
  ["a batch after white space", ` \r\n\t${JSON.stringify({ api_key: "ka", batch: [event] })}\n`],
];
const manyEvents = JSON.stringify({
  api_key: "ka",
  batch: Array.from({ length: 4_000 }, (_, n) => ({
    ...event,
    properties: { n, text: `${(n * 7_919) % 100_003} 100% +&=ß😀 ${"x".repeat(n % 50)}` },
  })),
});

async function answered(sent: Sent, limits = {}) {
  const server = await startTestServer(limits);
  const wire = await connectTo(server);
  wire.write(requestOf(sent));
  return { reply: await wire.reply(), server, wire };
}

const cases = [
  ...forms,
  ...queryForms.map(([name, send]) => [`in the query: ${name}`, send] as const),
];

const text = JSON.stringify(event);

describe("decoding the payloads of PostHog's clients", () => {
  test.each(
    cases.flatMap(([name, send]) => texts.map(([what, text]) => [name, what, text, send] as const)),
  )("reads %s, %s", async (_name, _what, text, send) => {
    const { reply, server } = await answered(send(text));
    expect([reply.status, reply.body]).toEqual([200, expect.any(String)]);
    expect(server.taken.map((taken) => taken.text)).toEqual([text]);
  });

  test.each(forms)("reads %s of half a megabyte in pieces", async (_name, send) => {
    const server = await startTestServer(large);
    const wire = await connectTo(server);
    const request = requestOf(send(manyEvents));
    const pieces = [0, 200, 1_000, request.length >> 1, request.length];
    for (const [at, start] of pieces.slice(0, -1).entries()) {
      wire.write(request.subarray(start, pieces[at + 1]));
      if (at === 1) await until(() => server.admission.bytes > 0, "the first is in hand");
    }
    expect((await wire.reply()).status).toBe(200);
    expect(server.taken[0]!.text === manyEvents).toBe(true);
  });

  test.each(forms)("finds the project while the body arrives: %s", async (_name, send) => {
    const peek = peekOfOneProject();
    const seen: (string | undefined)[] = [];
    const server = await startTestServer({
      ...large,
      peek: (body, isWhole) => {
        const hint = peek(body, isWhole);
        if (!isWhole) seen.push(hint.projectId);
        return hint;
      },
    });
    const wire = await connectTo(server);
    const request = requestOf(send(manyEvents));
    wire.write(request.subarray(0, 6_000));
    await until(() => server.admission.bytes > 0, "the first is in hand");
    wire.write(request.subarray(6_000));
    expect((await wire.reply()).status).toBe(200);
    expect(seen).toContain("a");
  });
  const bare = base64(text).replace(/=+$/, "");
  const noisy = JSON.stringify({
    ...event,
    noise: base64(zlib.deflateRawSync(manyEvents).subarray(0, 60_000)),
  });
  const gzipped = zlib.gzipSync(text);
  const middle = (bytes: Buffer): Buffer =>
    Buffer.from(bytes).fill(0xff, bytes.length >> 1, (bytes.length >> 1) + 4);
  const asForm = (data: string, more = ""): Sent => ({
    headers: form,
    body: `data=${encodeURIComponent(data)}${more}`,
  });

  const refused: [string, Sent, number, string, RegExp][] = [
    [
      "JSON declared as gzip-js",
      { line: "POST /e/?compression=gzip-js", body: text },
      400,
      "invalid_encoding",
      /is not valid gzip: /,
    ],
    [
      "JSON declared as lz64",
      { line: "POST /e/?compression=lz64", body: text },
      400,
      "invalid_encoding",
      /is not valid lz64: /,
    ],
    [
      "JSON declared as base64",
      { line: "POST /e/?compression=base64", body: text },
      400,
      "invalid_encoding",
      /is not valid base64: /,
    ],
    [
      "a form of JSON declared as lz64",
      asForm(text, "&compression=lz64"),
      400,
      "invalid_encoding",
      /is not valid lz64: /,
    ],
    [
      "a form of JSON declared as gzip",
      asForm(text, "&compression=gzip"),
      400,
      "invalid_encoding",
      /is not valid gzip: /,
    ],
    [
      "base64 of JSON declared as gzip",
      { line: "POST /e/?compression=gzip", body: base64(text) },
      400,
      "invalid_encoding",
      /is not valid gzip: /,
    ],
    [
      "base64 declared as lz64",
      asForm(base64(text), "&compression=lz64"),
      400,
      "invalid_encoding",
      /is not valid lz64: /,
    ],
    [
      "gzip declared as br",
      { headers: { "Content-Encoding": "br" }, body: gzipped },
      400,
      "invalid_encoding",
      /is not valid br: /,
    ],
    [
      "truncated gzip",
      { line: "POST /e/?compression=gzip-js", body: gzipped.subarray(0, -9) },
      400,
      "invalid_encoding",
      /is not valid gzip: /,
    ],
    [
      "damaged gzip",
      { line: "POST /e/?compression=gzip-js", body: middle(gzipped) },
      400,
      "invalid_encoding",
      /is not valid gzip: /,
    ],
    [
      "gzip damaged at its start",
      { line: "POST /e/?compression=gzip-js", body: Buffer.concat([Buffer.of(0), gzipped]) },
      400,
      "invalid_encoding",
      /is not valid gzip: /,
    ],
    [
      "a large truncated gzip body",
      { body: zlib.gzipSync(noisy).subarray(0, -9) },
      400,
      "invalid_encoding",
      /is not valid gzip: /,
    ],
    ["gzip of gzip", { body: zlib.gzipSync(gzipped) }, 400, "invalid_encoding", /compressed twice/],
    [
      "gzip of gzip, both declared",
      {
        line: "POST /e/?compression=gzip-js",
        headers: { "Content-Encoding": "gzip" },
        body: zlib.gzipSync(gzipped),
      },
      400,
      "invalid_encoding",
      /compressed twice/,
    ],
    [
      "a large body of gzip of gzip",
      { body: zlib.gzipSync(zlib.gzipSync(noisy)) },
      400,
      "invalid_encoding",
      /compressed twice/,
    ],
    [
      "deflate of gzip",
      { headers: { "Content-Encoding": "deflate" }, body: zlib.deflateSync(gzipped) },
      400,
      "invalid_encoding",
      /compressed twice/,
    ],
    [
      "gzip of base64 of gzip",
      { body: zlib.gzipSync(base64(gzipped)) },
      400,
      "invalid_encoding",
      /compressed twice/,
    ],
    [
      "a form of gzip of gzip",
      asForm(base64(zlib.gzipSync(gzipped)), "&compression=gzip"),
      400,
      "invalid_encoding",
      /compressed twice/,
    ],
    [
      "truncated base64",
      { body: bare.slice(0, bare.length - ((bare.length + 3) % 4)) },
      400,
      "invalid_encoding",
      /is not valid base64: /,
    ],
    [
      "damaged base64",
      { body: `${base64(text).slice(0, 40)}*${base64(text).slice(41)}` },
      400,
      "invalid_encoding",
      /is not valid base64: /,
    ],
    [
      "padding within base64",
      { body: base64(text).replace(/^(.{40})../, "$1==") },
      400,
      "invalid_encoding",
      /is not valid base64: /,
    ],
    [
      "a large damaged base64 body",
      { body: `${base64(manyEvents).slice(0, 300_000)}*${base64(manyEvents).slice(300_001)}` },
      400,
      "invalid_encoding",
      /is not valid base64: /,
    ],
    [
      "a form of truncated gzip",
      asForm(base64(gzipped.subarray(0, -9))),
      400,
      "invalid_encoding",
      /is not valid gzip: /,
    ],
    [
      "truncated lz64",
      asForm(lzEncode(text).slice(0, -8), "&compression=lz64"),
      400,
      "invalid_encoding",
      /is not valid lz64: unexpected end/,
    ],
    [
      "damaged lz64",
      asForm(lzEncode(text).replace(/^(.{40})./, "$1*"), "&compression=lz64"),
      400,
      "invalid_encoding",
      /is not valid lz64: a character/,
    ],
    [
      "lz64 of an empty text",
      asForm("Q===", "&compression=lz64"),
      400,
      "empty_body",
      /empty after decompression/,
    ],
    [
      "a form with empty data",
      asForm("", "&compression=lz64"),
      400,
      "empty_body",
      /payload is empty/,
    ],
    [
      "a form with data twice",
      asForm(text, `&data=${encodeURIComponent(text)}`),
      400,
      "invalid_payload",
      /several fields named data/,
    ],
    ["a GET without data", { line: "GET /e/?ip=1" }, 400, "empty_body", /data=/],
    ["a GET with empty data", { line: "GET /e/?data=&ip=1" }, 400, "empty_body", /data=/],
    [
      "a GET with truncated gzip as data",
      { line: `GET /e/?data=${encodeURIComponent(base64(gzipped.subarray(0, -9)))}` },
      400,
      "invalid_encoding",
      /is not valid gzip: /,
    ],
    [
      "a POST without data or body",
      { line: "POST /e/?data=", body: "" },
      400,
      "empty_body",
      /no body/,
    ],
  ];

  test.each(refused)("rejects %s", async (_name, sent, status, code, detail) => {
    const { reply, server } = await answered(sent, large);
    expect([reply.status, codeIn(reply)]).toEqual([status, code]);
    expect(JSON.parse(reply.body).detail).toMatch(detail);
    expect(server.taken).toEqual([]);
    const next = await connectTo(server);
    next.write(requestOf({ body: text }));
    expect((await next.reply()).status).toBe(200);
  });

  test.each([
    [
      "base64 of gzip",
      (bytes: number) => ({ body: base64(zlib.gzipSync(Buffer.alloc(bytes, " "))) }),
    ],
    ["a form of gzip", (bytes: number) => asForm(base64(zlib.gzipSync(Buffer.alloc(bytes, " "))))],
    ["lz64", (bytes: number) => ({ line: "POST /e/?compression=lz64", body: lzBomb(bytes) })],
    ["a form of lz64", (bytes: number) => asForm(lzBomb(bytes), "&compression=lz64")],
  ])("stops %s at the inflation limit", async (_name, send) => {
    const { reply, server } = await answered(send(21 * MIB), large);
    expect([reply.status, codeIn(reply)]).toEqual([413, "inflated_too_large"]);
    expect(server.admission.bytes).toBe(0);
  });

  test("stops an lz64 body with 503 if the memory budget is used up", async () => {
    const { reply } = await answered(
      { line: "POST /e/?compression=lz64", body: lzBomb(16 * MIB) },
      { ...large, inflightBytesMax: 4 * MIB },
    );
    expect([reply.status, codeIn(reply)]).toEqual([503, "overloaded"]);
  });

  test("frees the memory of lz64 and base64 bodies whose clients disconnect", async () => {
    const server = await startTestServer(large);
    for (const sent of [
      { line: "POST /e/?compression=lz64", body: lzEncode(manyEvents) },
      { body: base64(manyEvents) },
      asForm(manyEvents),
    ]) {
      const wire = await connectTo(server);
      const request = requestOf(sent);
      wire.write(request.subarray(0, -1));
      await until(() => server.admission.bytes > 20_000, "most of it is in hand");
      wire.write(request.subarray(-1));
      wire.socket.destroy();
      await until(() => server.admission.bytes === 0, "it is given back");
    }
  });

  test("ignores the body if the query contains data", async () => {
    const server = await startTestServer(large);
    const wire = await connectTo(server);
    const request = requestOf({
      line: `POST /e/?data=${encodeURIComponent(text)}`,
      body: Buffer.alloc(4 * MIB, "x"),
    });
    wire.write(request.subarray(0, 3 * MIB));
    wire.write(request.subarray(3 * MIB));
    expect((await wire.reply()).status).toBe(200);
    expect(server.taken[0]!.text).toBe(text);
  });

  test("finds the project at the start of gzip without Content-Encoding", async () => {
    const peek = peekOfOneProject();
    let seen: string | undefined;
    const server = await startTestServer({
      ...large,
      peek: (body, isWhole) => {
        const hint = peek(body, isWhole);
        seen ??= hint.projectId;
        return hint;
      },
    });
    const description = zlib
      .deflateRawSync(Buffer.from(manyEvents))
      .toString("base64")
      .slice(0, 700);
    const events = Array.from({ length: 5_000 }, (_, n) => ({
      event: "e",
      properties: { description, token: "ka", n: n * 7_919 },
    }));
    const request = requestOf({
      line: "POST /e/?compression=gzip-js",
      body: zlib.gzipSync(JSON.stringify(events)),
    });
    const wire = await connectTo(server);
    wire.write(request.subarray(0, 2_000));
    await until(() => seen === "a", "the key is seen");
    wire.write(request.subarray(2_000));
    expect((await wire.reply()).status).toBe(200);
  });
});
