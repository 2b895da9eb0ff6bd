import zlib from "node:zlib";
import { describe, expect, test } from "vitest";
import { atOnceBytesMax, atOnceInflatedBytesMax } from "../../../src/gateway/body/inflate.ts";
import { loadAddon } from "../../../src/records/native.ts";
import {
  bodyBytesMax,
  codeIn,
  connectTo,
  inflatedBytesMax,
  post,
  startTestServer,
  until,
} from "../../kit/http-server.ts";
import { peekOfOneProject } from "../../kit/peek.ts";

const { Inflater } = loadAddon();
const small = JSON.stringify({ event: "a", properties: { text: "äöü".repeat(50) } });
const large = JSON.stringify({ event: "a", properties: { text: "äöü ".repeat(120_000) } }).slice(
  0,
  600_000,
);
const noisy = JSON.stringify({ text: randomHex(80_000) });

function fullGzip(text: string): Buffer {
  const plain = zlib.gzipSync(text);
  const extra = Buffer.from([3, 0, 65, 0, 66]);
  const header = Buffer.concat([plain.subarray(0, 10), extra, Buffer.from("name\0comment\0")]);
  header[3] = 2 | 4 | 8 | 16;
  const sum = Buffer.alloc(2);
  sum.writeUInt16LE(zlib.crc32(header) & 0xffff);
  return Buffer.concat([header, sum, plain.subarray(10)]);
}

function randomHex(bytes: number): string {
  let state = 1;
  const next = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state >>> 24;
  };
  return Buffer.from(Array.from({ length: bytes }, next)).toString("hex");
}

/** The default quality would take a hundred times as long. */
function brotli(text: string): Buffer {
  return zlib.brotliCompressSync(text, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } });
}

function once(encode: (text: string) => Buffer): (text: string) => Buffer {
  const encoded = new Map<string, Buffer>();
  return (text) => {
    const known = encoded.get(text);
    if (known !== undefined) return Buffer.from(known);
    const bytes = encode(text);
    encoded.set(text, bytes);
    return Buffer.from(bytes);
  };
}

const encoders: [string, string, (text: string) => Buffer][] = [
  ["identity", "identity", (text) => Buffer.from(text)],
  ["gzip", "gzip", (text) => zlib.gzipSync(text)],
  ["gzip declared in capitals with spaces", " GZip ", (text) => zlib.gzipSync(text)],
  ["x-gzip", "x-gzip", (text) => zlib.gzipSync(text)],
  [
    "gzip of two members",
    "gzip",
    (text) => Buffer.concat([zlib.gzipSync(text.slice(0, 9)), zlib.gzipSync(text.slice(9))]),
  ],
  ["gzip without Content-Encoding", "", (text) => zlib.gzipSync(text)],
  ["gzip declared as identity", "identity", (text) => zlib.gzipSync(text)],
  ["deflate", "deflate", (text) => zlib.deflateSync(text)],
  ["raw deflate", "deflate", (text) => zlib.deflateRawSync(text)],
  ["br", "br", brotli],
  ["zstd", "zstd", (text) => zlib.zstdCompressSync(text)],
  [
    "zstd with a checksum",
    "zstd",
    (text) => zlib.zstdCompressSync(text, { params: { [zlib.constants.ZSTD_c_checksumFlag]: 1 } }),
  ],
  ["gzip listed after identity", "identity, gzip", (text) => zlib.gzipSync(text)],
];

const texts = { small, large: large.slice(0, 99_000), "large when inflated": large, noisy };

const requests = encoders
  .flatMap(([name, header, encode]) =>
    Object.entries(texts).map(([size, text]) => [name, size, header, encode(text), text] as const),
  )
  .filter(([, , , body]) => body.length <= bodyBytesMax);

describe("the inflation of request bodies", () => {
  test.each(requests)("inflates %s (text: %s)", async (_name, _size, header, body, text) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    if (body.length > 100_000) return expect(header).toMatch(/identity/);
    wire.write(post(body, header === "" ? {} : { "Content-Encoding": header }));
    expect((await wire.reply()).status).toBe(200);
    expect(server.taken[0]!.text === text).toBe(true);
  });

  const damaged: [string, (whole: Buffer) => Buffer][] = [
    ["cut short by a byte", (whole) => whole.subarray(0, -1)],
    ["cut to a third", (whole) => whole.subarray(0, whole.length / 3)],
    ["of four bytes", (whole) => whole.subarray(0, 4)],
    [
      "overwritten in the middle",
      (whole) => Buffer.from(whole).fill(0xff, whole.length >> 1, (whole.length >> 1) + 8),
    ],
    ["that is plain JSON", () => Buffer.from(small)],
  ];
  const codings: [string, (text: string) => Buffer][] = [
    ["gzip", once((text) => zlib.gzipSync(text))],
    ["deflate", once((text) => zlib.deflateSync(text))],
    ["br", once(brotli)],
    [
      "zstd",
      once((text) =>
        zlib.zstdCompressSync(text, { params: { [zlib.constants.ZSTD_c_checksumFlag]: 1 } }),
      ),
    ],
  ];

  test.each(
    codings.flatMap(([coding, encode]) =>
      damaged.flatMap(([damage, spoil]) => [
        [coding, damage, "on the event loop", spoil(encode(small))] as const,
        [coding, damage, "in the thread pool", spoil(encode(noisy))] as const,
      ]),
    ),
  )("rejects %s %s, inflated %s, as invalid_encoding", async (coding, _damage, _where, body) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(post(body, { "Content-Encoding": coding }));
    const reply = await wire.reply();
    expect([reply.status, codeIn(reply)]).toEqual([400, "invalid_encoding"]);
    expect(JSON.parse(reply.body).detail).toMatch(
      new RegExp(`^The body is not valid ${coding}: .`),
    );
    expect(server.taken).toEqual([]);
  });

  test.each(
    codings.flatMap(([coding, encode]) =>
      [inflatedBytesMax + 1, 10 * inflatedBytesMax].map(
        (bytes) => [coding, bytes, encode("x".repeat(bytes))] as const,
      ),
    ),
  )("stops inflating %s of %d bytes at the limit", async (coding, _bytes, body) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(post(body, { "Content-Encoding": coding }));
    expect(codeIn(await wire.reply())).toBe("inflated_too_large");
    wire.write(post("{}"));
    expect((await wire.reply()).status).toBe(200);
  });

  test("accepts a body of exactly the limit", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    for (const bytes of [atOnceInflatedBytesMax, atOnceInflatedBytesMax + 1, inflatedBytesMax]) {
      for (const [coding, encode] of codings) {
        wire.write(post(encode("x".repeat(bytes)), { "Content-Encoding": coding }));
        expect((await wire.reply()).status).toBe(200);
        expect(server.taken.at(-1)!.text.length).toBe(bytes);
      }
    }
  });

  const padding: [string, Buffer][] = [
    ["a zero byte", Buffer.alloc(1)],
    ["a line feed", Buffer.from("\n")],
    ["a carriage return and a line feed", Buffer.from("\r\n")],
    ["zero bytes", Buffer.alloc(512)],
    ["a text", Buffer.from("and more")],
    ["JSON", Buffer.from('{"event":"b"}')],
    ["0xff", Buffer.alloc(9, 0xff)],
    ["half a magic number", Buffer.from([0x1f, 0x8b])],
    ["zero bytes and a gzip body", Buffer.concat([Buffer.alloc(3), zlib.gzipSync("x")])],
  ];
  const padded = codings.flatMap(([coding, encode]) => [
    ...padding.map(([name, bytes]) => [coding, name, encode, bytes] as const),
    [coding, "the beginning of another body", encode, encode(noisy).subarray(0, 9_000)] as const,
    [coding, "another body, damaged", encode, withFault(encode(noisy.slice(0, 9_000)))] as const,
  ]);

  function withFault(body: Buffer): Buffer {
    return Buffer.from(body).fill(0xff, body.length >> 1);
  }

  test.each(padded)(
    "ignores bytes after the end of a %s body: %s",
    async (coding, _name, encode, more) => {
      for (const inflater of [new Inflater(), undefined]) {
        const server = await startTestServer({ inflater });
        const wire = await connectTo(server);
        for (const text of [small, noisy]) {
          wire.write(post(Buffer.concat([encode(text), more]), { "Content-Encoding": coding }));
          expect((await wire.reply()).status).toBe(200);
          expect(server.taken.pop()!.text === text).toBe(true);
        }
      }
    },
  );

  test("counts the bytes after the end of a gzip body against the size limit", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    const body = Buffer.concat([zlib.gzipSync(small), Buffer.alloc(bodyBytesMax)]);
    wire.write(post(body, { "Content-Encoding": "gzip" }));
    expect(codeIn(await wire.reply())).toBe("body_too_large");
  });

  const frame = (text: string) => zlib.zstdCompressSync(text);
  const skipped = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9]);
  const parts = (text: string, one: (text: string) => Buffer): Buffer[] =>
    [text.slice(0, 3), "", text.slice(3, 900), text.slice(900)].map(one);

  test.each([
    ["gzip", "four members", (text: string) => parts(text, zlib.gzipSync)],
    ["gzip", "a member and zero bytes", (text: string) => [zlib.gzipSync(text), Buffer.alloc(9)]],
    ["gzip", "members with every header field", (text: string) => parts(text, fullGzip)],
    [
      "gzip",
      "12 members",
      (text: string) => [...parts(text, zlib.gzipSync), ...Array(8).fill(zlib.gzipSync(""))],
    ],
    ["zstd", "four frames", (text: string) => parts(text, frame)],
    ["zstd", "frames to be skipped", (text: string) => [skipped, frame(text), skipped]],
    [
      "zstd",
      "a frame to be skipped and zero bytes",
      (text: string) => [frame(text), skipped, Buffer.alloc(9)],
    ],
  ])("reads a %s body of %s to its end", async (coding, _name, encoded) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    for (const text of [small, noisy]) {
      wire.write(post(Buffer.concat(encoded(text)), { "Content-Encoding": coding }));
      expect((await wire.reply()).status).toBe(200);
      expect(server.taken.pop()!.text === text).toBe(true);
    }
  });

  test.each(["gzip", "zstd"])("rejects a %s body of more than 2,048 parts", async (coding) => {
    const server = await startTestServer({ requestTimeoutMs: 20_000 });
    const wire = await connectTo(server);
    const part = coding === "gzip" ? zlib.gzipSync("") : frame("");
    const body = Buffer.concat(
      [frame(small), ...Array(2_049).fill(part)].slice(coding === "gzip" ? 1 : 0),
    );
    wire.write(post(body, { "Content-Encoding": coding }));
    expect(codeIn(await wire.reply())).toBe("invalid_encoding");
  });

  test.each([
    ["an unknown flag", (body: Buffer) => body.fill(0x20, 3, 4)],
    ["an unknown compression method", (body: Buffer) => body.fill(7, 2, 3)],
    ["a wrong checksum", (body: Buffer) => body.fill(0xaa, body.length - 8, body.length - 4)],
    ["a wrong length", (body: Buffer) => body.fill(0xaa, body.length - 4)],
    ["a wrong header checksum", () => Buffer.from(fullGzip(small)).fill(1, 8, 9)],
    ["an unterminated file name", () => fullGzip(small).subarray(0, 22)],
    ["only a header", (body: Buffer) => body.subarray(0, 10)],
  ] as const)("rejects gzip with %s as invalid_encoding", async (_name, spoil) => {
    const server = await startTestServer({ inflater: undefined });
    const wire = await connectTo(server);
    for (const text of [small, noisy]) {
      wire.write(post(spoil(zlib.gzipSync(text)), { "Content-Encoding": "gzip" }));
      expect(codeIn(await wire.reply())).toBe("invalid_encoding");
    }
  });

  test("inflates random bodies of every coding in the thread pool", () => {
    for (const [, encode] of codings) expect(encode(noisy).length).toBeGreaterThan(atOnceBytesMax);
  });

  const unknown = [
    "utf-8",
    "UTF-8",
    " none ",
    "binary",
    "json",
    "application/json",
    "identity, utf-8",
  ];
  unknown.push(
    "utf-8,identity",
    ",utf-8,",
    "compress",
    "aes128gcm",
    "__proto__",
    "gzip;q=1",
    "*",
    "\xe9",
  );

  test.each(
    unknown.flatMap((header) => [
      [header, "JSON", Buffer.from(small)] as const,
      [header, "JSON after white space", Buffer.from(` \r\n${small}`)] as const,
      [header, "gzip", zlib.gzipSync(small)] as const,
      [header, "base64", Buffer.from(Buffer.from(small).toString("base64"))] as const,
      [header, "a form", Buffer.from(`data=${encodeURIComponent(small)}`)] as const,
    ]),
  )("ignores Content-Encoding %s if the body is %s", async (header, _form, body) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(post(body, { "Content-Encoding": header }));
    expect((await wire.reply()).status).toBe(200);
    expect(server.taken[0]!.text.trim()).toBe(small);
  });

  test.each([
    ["gzip, utf-8", zlib.gzipSync(small)],
    ["utf-8, gzip", zlib.gzipSync(small)],
    ["binary, BR", zlib.brotliCompressSync(small)],
    ["deflate, none", zlib.deflateSync(small)],
    ["zstd,json", zlib.zstdCompressSync(noisy)],
  ])("ignores an unknown coding that is listed with a known coding: %s", async (header, body) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(post(body, { "Content-Encoding": header }));
    expect((await wire.reply()).status).toBe(200);
    expect([small, noisy]).toContain(server.taken[0]!.text);
  });

  test.each([
    ["gzip, br", zlib.gzipSync(small)],
    ["gzip, gzip", zlib.gzipSync(small)],
    ["gzip, utf-8, br", zlib.gzipSync(small)],
    ["compress", Buffer.from([0x1f, 0x9d, 0x90, 0x7b])],
    ["utf-8", Buffer.from([0xde, 0xad, 0xbe, 0xef])],
    ["lz4, br", Buffer.from(small)],
    ["json, gzip", Buffer.from([0x1f, 0x9d, 0x90, 0x7b])],
    ["snappy, gzip", zlib.gzipSync(Buffer.from([0xde, 0xad, 0xbe, 0xef]))],
    ["snappy, deflate", zlib.deflateSync(noisy).subarray(0, 70_000)],
  ])(
    "rejects Content-Encoding %s as unsupported_encoding if the body cannot be read",
    async (header, body) => {
      const server = await startTestServer();
      const wire = await connectTo(server);
      wire.write(post(body, { "Content-Encoding": header }));
      const reply = await wire.reply();
      expect([reply.status, codeIn(reply)]).toEqual([415, "unsupported_encoding"]);
      expect(server.taken).toEqual([]);
    },
  );

  test.each([1, 2])(
    "finds the project of a compressed body that arrives in %i pieces",
    async (pieces) => {
      const peek = peekOfOneProject();
      const events = Array.from({ length: 2_000 }, (_, n) => ({
        event: "e",
        distinct_id: `u${n * 7_919}`,
      }));
      const body = zlib.gzipSync(
        JSON.stringify({ batch: events, api_key: "ka", historical_migration: true }),
      );
      const server = await startTestServer({ peek });
      const wire = await connectTo(server);
      const bytes = post(body, { "Content-Encoding": "gzip" });
      const cut = pieces === 1 ? bytes.length : 5_000;
      wire.write(bytes.subarray(0, cut));
      if (pieces > 1) await until(() => server.admission.bytes > 0, "the first is in hand");
      wire.write(bytes.subarray(cut));
      expect((await wire.reply()).status).toBe(200);
      const { exchange, text } = server.taken[0]!;
      expect(exchange.hint ?? peek(Buffer.from(text), true)).toEqual({
        projectId: "a",
        lane: "historical",
      });
    },
  );
});
