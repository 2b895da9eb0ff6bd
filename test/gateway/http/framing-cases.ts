// Requests with ambiguous framing. Each is followed by a request that only one of two readers may
// read (CWE-444, RFC 9112 section 11.2).

import { event, request } from "../../kit/hostile.ts";

interface FramingCase {
  readonly bytes: (carrier: string, smuggled: string) => Buffer;
  /** The allowed statuses if the request is sent directly; empty: not checked. */
  readonly allowed: readonly number[];
}

const smuggledRequest = (id: string): Buffer => request(event(id));
const bytesOf = (body: string): string => `Content-Length: ${Buffer.byteLength(body)}`;

function withHeaders(...headers: (string | ((body: string) => string))[]): FramingCase["bytes"] {
  return (carrier, smuggled) => {
    const body = event(carrier);
    const lines = headers.map((header) => (typeof header === "string" ? header : header(body)));
    return Buffer.concat([request(body, lines), smuggledRequest(smuggled)]);
  };
}

function withoutBody(line: string, ...headers: string[]): FramingCase["bytes"] {
  return (_carrier, smuggled) =>
    Buffer.concat([request("", headers, line), smuggledRequest(smuggled)]);
}

function inChunks(text: (body: string) => string, ...headers: string[]): FramingCase["bytes"] {
  return (carrier, smuggled) =>
    Buffer.concat([
      request(text(event(carrier)), ["Transfer-Encoding: chunked", ...headers]),
      smuggledRequest(smuggled),
    ]);
}

const post = "POST /capture/ HTTP/1.1";
const hex = (body: string): string => Buffer.byteLength(body).toString(16);
const sized = (size: (body: string) => string) => (body: string) =>
  `${size(body)}\r\n${body}\r\n0\r\n\r\n`;

const lengths: Record<string, FramingCase> = {
  "no length": { bytes: withoutBody(post), allowed: [400] },
  "a length of 0": { bytes: withoutBody(post, "Content-Length: 0"), allowed: [400] },
  "a length of 00": { bytes: withoutBody(post, "Content-Length: 00"), allowed: [400] },
  "an empty length": { bytes: withoutBody(post, "Content-Length:"), allowed: [400] },
  "an empty length before the true one": {
    bytes: withHeaders("Content-Length:", bytesOf),
    allowed: [505],
  },
  "an empty length behind the true one": {
    bytes: withHeaders(bytesOf, "Content-Length:"),
    allowed: [400],
  },
  "two equal lengths": { bytes: withHeaders(bytesOf, bytesOf), allowed: [400] },
  "a longer length behind": { bytes: withHeaders(bytesOf, "Content-Length: 500"), allowed: [400] },
  "a shorter length before": {
    bytes: withHeaders("Content-Length: 4", bytesOf),
    allowed: [400, 505],
  },
  "two hosts": { bytes: withHeaders(bytesOf, "Host: other"), allowed: [400] },
  "a list of lengths": { bytes: withHeaders((body) => `${bytesOf(body)}, 5`), allowed: [400] },
  "a length with a plus": { bytes: withHeaders("Content-Length: +5"), allowed: [400] },
};

const hidden: Record<string, FramingCase> = {
  "a header without a name before the length": {
    bytes: withoutBody(post, ": x", "Content-Length: 400"),
    allowed: [400],
  },
  "a header without a name before the coding": {
    bytes: withoutBody(post, ": x", "Transfer-Encoding: chunked"),
    allowed: [400],
  },
  "the same on a path that is not there": {
    bytes: withoutBody("POST /nowhere HTTP/1.1", ": x", "Content-Length: 400"),
    allowed: [404],
  },
  "the same with another method": {
    bytes: withoutBody("DELETE /capture/ HTTP/1.1", ": x", "Content-Length: 400"),
    allowed: [405],
  },
  "a header without a name in a preflight": {
    bytes: withoutBody(
      "OPTIONS /capture/ HTTP/1.1",
      "Origin: https://a.example",
      ": x",
      "Content-Length: 400",
    ),
    allowed: [200],
  },
  "a header without a name and a coding in a preflight": {
    bytes: withoutBody("OPTIONS /batch/ HTTP/1.1", ": x", "Transfer-Encoding: chunked"),
    allowed: [200],
  },
  "a header without a name in an OPTIONS of another path": {
    bytes: withoutBody("OPTIONS /nowhere HTTP/1.1", ": x", "Content-Length: 400"),
    allowed: [200],
  },
  "an empty length on a preflight": {
    bytes: withoutBody(
      "OPTIONS /capture/ HTTP/1.1",
      "Content-Length:",
      "Origin: https://a.example",
    ),
    allowed: [400],
  },
  "an empty length with another method": {
    bytes: withoutBody("GET /nowhere HTTP/1.1", "Content-Length:"),
    allowed: [400],
  },
  "an empty length in a HEAD": {
    bytes: withoutBody("HEAD /capture/ HTTP/1.1", "Content-Length:"),
    allowed: [400],
  },
};

const codings: Record<string, FramingCase> = Object.fromEntries([
  ...[
    "identity",
    "xchunked",
    "gzip",
    "chunked, identity",
    "identity, chunked",
    "chunked;q=1",
    "chunked chunked",
  ].map((coding) => [
    `a coding of ${coding}`,
    { bytes: withHeaders(`Transfer-Encoding: ${coding}`), allowed: [400] } satisfies FramingCase,
  ]),
  [
    "an empty coding and a length",
    { bytes: withHeaders("Transfer-Encoding:", bytesOf), allowed: [400] },
  ],
  [
    "a length and an empty coding",
    { bytes: withHeaders(bytesOf, "Transfer-Encoding:"), allowed: [400] },
  ],
  ["both", { bytes: withHeaders(bytesOf, "Transfer-Encoding: chunked"), allowed: [400] }],
  [
    "chunked and an empty length",
    { bytes: inChunks(sized(hex), "Content-Length:"), allowed: [400] },
  ],
  ["chunked twice", { bytes: inChunks(sized(hex), "Transfer-Encoding: chunked"), allowed: [400] }],
]);

const chunks: Record<string, FramingCase> = {
  "chunks, and a request behind": { bytes: inChunks(sized(hex)), allowed: [] },
  "Chunked in capitals": { bytes: withHeaders("Transfer-Encoding: CHUNKED"), allowed: [] },
  "an extension that is read as digits": {
    bytes: inChunks(sized((body) => `${hex(body)};`)),
    allowed: [],
  },
  "a size with a letter beyond f": {
    bytes: inChunks(sized((body) => `${hex(body)}g`)),
    allowed: [],
  },
  "a size with =": { bytes: inChunks(sized((body) => `=${hex(body)}`)), allowed: [] },
  "a size with <": { bytes: inChunks(sized((body) => `<${hex(body)}`)), allowed: [] },
  "an empty size as the end": {
    bytes: inChunks((body) => `${hex(body)}\r\n${body}\r\n\r\n\r\n`),
    allowed: [],
  },
  "no line end behind the data": {
    bytes: inChunks((body) => `${hex(body)}\r\n${body}XX0\r\n\r\n`),
    allowed: [],
  },
  "line feeds alone": { bytes: inChunks((body) => `${hex(body)}\n${body}\n0\n\n`), allowed: [] },
  "a trailer that is a length": {
    bytes: inChunks((body) => `${hex(body)}\r\n${body}\r\n0\r\nContent-Length: 300\r\n\r\n`),
    allowed: [],
  },
  "no chunk at all": { bytes: inChunks(() => "0\r\n\r\n"), allowed: [] },
  "chunks that are not JSON": { bytes: inChunks(() => "1\r\n{\r\n0\r\n\r\n"), allowed: [] },
};

export function framingCases(): Map<string, FramingCase> {
  return new Map(Object.entries({ ...lengths, ...hidden, ...codings, ...chunks }));
}
