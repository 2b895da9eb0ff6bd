import { event, type RawOptions, request } from "../../kit/hostile.ts";

interface HostileCase {
  readonly pieces: readonly Uint8Array[];
  readonly options?: RawOptions;
  readonly allowed: readonly number[];
  readonly orNothing?: boolean;
  readonly stored?: "yes" | "no" | "perhaps";
}

type Row = readonly [
  name: string,
  pieces: (body: string) => Uint8Array | Uint8Array[],
  allowed: readonly number[],
  more?: More,
];
type More = Pick<HostileCase, "options" | "orNothing" | "stored">;

const chunkedHeader = "Transfer-Encoding: chunked";

function lengthOf(body: string): string {
  return `Content-Length: ${Buffer.byteLength(body)}`;
}

function chunked(body: string, ending = "0\r\n\r\n"): string {
  return `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n${ending}`;
}

function withHeader(...headers: string[]): (body: string) => Uint8Array {
  return (body) => request(body, [lengthOf(body), ...headers]);
}

function withLine(line: string): (body: string) => Uint8Array {
  return (body) => request(body, undefined, line);
}

function inChunks(
  sent: (body: string) => string,
  header = chunkedHeader,
): (body: string) => Uint8Array {
  return (body) => request(sent(body), [header]);
}

const many = (count: number): string[] =>
  Array.from({ length: count }, (_, place) => `X-${place}: a`);
const perhaps = { stored: "perhaps" } as const;
const fin = { fin: true } as const;

const lengths: Row[] = [
  [
    "both lengths",
    (body) => request(chunked(body), [chunkedHeader, lengthOf(chunked(body))]),
    [400],
  ],
  [
    "both lengths, the other way round",
    (body) => request(chunked(body), [lengthOf(body), chunkedHeader]),
    [400],
  ],
  [
    "a smuggled request after a chunk of none",
    (body) => request(`0\r\n\r\n${request(body)}`, ["Content-Length: 5", chunkedHeader]),
    [400],
  ],
  ["a smuggled request in a body", (body) => request(request(body)), [400]],
  [
    "two lengths in one header",
    (body) => request(body, [`${lengthOf(body)}, ${Buffer.byteLength(body)}`]),
    [400],
  ],
  ["two equal lengths", (body) => request(body, [lengthOf(body), lengthOf(body)]), [400]],
  ["two different lengths", (body) => request(body, [lengthOf(body), "Content-Length: 5"]), [400]],
  ...[
    "-5",
    "+5",
    "0x10",
    "1e3",
    "abc",
    "5 5",
    "5.0",
    "18446744073709551617",
    "99999999999999999999999",
  ].map(
    (length): Row => [
      `a length of ${length}`,
      (body) => request(body, [`Content-Length: ${length}`]),
      [400],
    ],
  ),
  ["no length, so that the body is taken for the next request", (body) => request(body, []), [505]],
  [
    "a space before the colon of the length",
    (body) => request(body, [lengthOf(body).replace(":", " :")]),
    [],
  ],
];

const chunks: Row[] = [
  ["a good chunk", inChunks(chunked), [200]],
  ["a negative chunk", inChunks((body) => `-${chunked(body)}`), [400]],
  ["a chunk that is no number", inChunks((body) => `zz\r\n${body}\r\n0\r\n\r\n`), [400]],
  ["a chunk of 2^72", inChunks((body) => `ffffffffffffffffff\r\n${body}`), [400]],
  [
    "a chunk of 64 GiB that ends early",
    inChunks((body) => `fffffffff\r\n${body}`),
    [],
    { options: fin },
  ],
  ["a chunk that never ends", inChunks((body) => `fffff\r\n${body}`), []],
  ["a chunk with an extension", inChunks((body) => chunked(body).replace("\r\n", ";a=b\r\n")), []],
  [
    "chunks with a trailer",
    inChunks((body) => chunked(body, "0\r\nX-T: 1\r\n\r\n")),
    [505],
    perhaps,
  ],
  [
    "chunks over the cap",
    inChunks(() => chunked("x".repeat(700_000), "") + chunked("x".repeat(700_000))),
    [413],
  ],
  ["chunks beyond twice the cap", inChunks(() => chunked("x".repeat(3_000_000), "")), [413]],
  [
    "an unknown transfer encoding",
    (body) => request(body, ["Transfer-Encoding: xchunked", lengthOf(body)]),
    [400],
  ],
  [
    "identity and a length",
    (body) => request(body, ["Transfer-Encoding: identity", lengthOf(body)]),
    [400],
  ],
  ["a control byte before chunked", inChunks(chunked, "Transfer-Encoding: \x0bchunked"), []],
];

const heads: Row[] = [
  ["a header of 1 MB", withHeader(`X-A: ${"a".repeat(1_000_000)}`), [431]],
  ["10,000 headers", withHeader(...many(10_000)), [431]],
  ["200 headers", withHeader(...many(200)), [431]],
  ["90 headers", withHeader(...many(90)), [200]],
  ["a path of 100 KB", withLine(`POST /capture/${"a".repeat(100_000)} HTTP/1.1`), [431]],
  ["a path of 3 KB", withLine(`POST /capture/${"a".repeat(3_000)} HTTP/1.1`), [404]],
  ["a query of 2 KB", withLine(`POST /capture/?${"a".repeat(2_000)} HTTP/1.1`), [200]],
  ...["a\0b", "a\x01b", "a\rb", "a\nb", "a\r\n b"].map(
    (value): Row => [
      `${JSON.stringify(value)} in a header's value`,
      withHeader(`X-A: ${value}`),
      [],
    ],
  ),
  ["a zero in a header's name", withHeader("X\0A: a"), []],
  ["a space in a header's name", withHeader("X A: a"), []],
  ["no host", (body) => Buffer.from(request(body).toString().replace("Host: p\r\n", "")), [400]],
  [
    "line feeds alone",
    (body) => Buffer.from(request(body).toString().replaceAll("\r\n", "\n")),
    [505],
  ],
  ["an empty line first", (body) => Buffer.concat([Buffer.from("\r\n"), request(body)]), []],
  ["absolute form", withLine("POST http://p/capture/ HTTP/1.1"), [505]],
  ["HTTP/1.0", withLine("POST /capture/ HTTP/1.0"), [505]],
  ["HTTP/2.0", withLine("POST /capture/ HTTP/2.0"), [505]],
  ["HTTP/0.9", () => Buffer.from("GET /capture/\r\n"), []],
  ["the preface of HTTP/2", () => Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), [505]],
  [
    "the hello of TLS",
    () => Buffer.from(`16030100c5010000c10303${"00".repeat(190)}`, "hex"),
    [505],
  ],
  ["CONNECT", () => Buffer.from("CONNECT p:80 HTTP/1.1\r\nHost: p\r\n\r\n"), [505]],
  [
    "a wish to become a web socket",
    withHeader(
      "Upgrade: websocket",
      "Connection: Upgrade",
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ),
    [200],
  ],
  ["a wait for 100", withHeader("Expect: 100-continue"), [200]],
];

const ends: Row[] = [
  [
    "an end after the body",
    (body) => request(body),
    [200],
    { options: fin, orNothing: true, stored: "perhaps" },
  ],
  ["an end in the body", (body) => request(body).subarray(0, -5), [], { options: fin }],
  ["an end in the head", (body) => request(body).subarray(0, 10), [], { options: fin }],
  ["a head that stops", (body) => request(body).subarray(0, 10), []],
  ["a body that stops", (body) => request(body).subarray(0, -5), []],
  ["nothing at all", () => [], []],
  // uWS closes a connection on which a request arrives before the previous one is answered.
  [
    "pipelined",
    (body) => Buffer.concat([request(body), request(event("the second in the pipe"))]),
    [],
    perhaps,
  ],
];

export function hostileCases(): Map<string, HostileCase> {
  const rows = [...lengths, ...chunks, ...heads, ...ends];
  return new Map(
    rows.map(([name, pieces, allowed, more]) => [
      name,
      { pieces: [pieces(event(name))].flat(), allowed, ...more },
    ]),
  );
}
