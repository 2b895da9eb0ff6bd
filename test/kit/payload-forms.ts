import zlib from "node:zlib";
import { head } from "./http-server.ts";
import { lzEncode } from "./lz.ts";

export interface Sent {
  readonly line?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export function requestOf({ line = "POST /e/", headers = {}, body }: Sent): Buffer {
  if (body === undefined) return head(headers, line);
  const bytes = Buffer.from(body);
  return Buffer.concat([head({ "Content-Length": String(bytes.length), ...headers }, line), bytes]);
}

export const form = { "Content-Type": "application/x-www-form-urlencoded" };
const plain = { "Content-Type": "text/plain" };
const gzip = { "Content-Encoding": "gzip" };

export function base64(bytes: string | Buffer): string {
  return Buffer.from(bytes).toString("base64");
}

function base64url(bytes: string | Buffer): string {
  return Buffer.from(bytes).toString("base64url");
}

/** Old clients encode spaces as plus signs, but they do not encode the plus signs of base64. */
function formEncoded(text: string): string {
  return encodeURIComponent(text).replaceAll("%20", "+");
}

const query = "ip=0&_=1700000000000&ver=1.449.0&retry_count=2";

export const forms: readonly [name: string, send: (text: string) => Sent][] = [
  ["JSON", (text) => ({ body: text })],
  ["JSON that curl declares as a form", (text) => ({ headers: form, body: text })],
  ["JSON with a query", (text) => ({ line: `POST /e/?${query}`, body: text })],
  [
    "JSON that the query declares as an unknown kind",
    (text) => ({ line: "POST /e/?compression=x", body: text }),
  ],
  [
    "gzip, as sent by posthog-js",
    (text) => ({
      line: `POST /e/?${query}&compression=gzip-js`,
      headers: plain,
      body: zlib.gzipSync(text),
    }),
  ],
  [
    "gzip declared only by the query, in capitals",
    (text) => ({ line: "POST /e?compression=GZIP", body: zlib.gzipSync(text) }),
  ],
  ["gzip without a declaration", (text) => ({ body: zlib.gzipSync(text) })],
  [
    "gzip declared twice",
    (text) => ({ line: "POST /batch/?compression=gzip", headers: gzip, body: zlib.gzipSync(text) }),
  ],
  [
    "gzip that the header declares as br and the query as gzip-js",
    (text) => ({
      line: "POST /e/?compression=gzip-js",
      headers: { "Content-Encoding": "br" },
      body: zlib.gzipSync(text),
    }),
  ],
  [
    "gzip that the header declares as gzip-js",
    (text) => ({ headers: { "Content-Encoding": "gzip-js" }, body: zlib.gzipSync(text) }),
  ],
  [
    "gzip that the query declares as lz64",
    (text) => ({ line: "POST /e/?compression=lz64", body: zlib.gzipSync(text) }),
  ],
  ["base64", (text) => ({ body: base64(text) })],
  [
    "base64 declared by the query",
    (text) => ({ line: "POST /e/?compression=b64", body: base64(text) }),
  ],
  [
    "base64 declared by the header",
    (text) => ({ headers: { "Content-Encoding": "base64" }, body: base64(text) }),
  ],
  ["base64 without padding", (text) => ({ body: base64(text).replace(/=+$/, "") })],
  ["base64 in the alphabet for URLs", (text) => ({ body: base64url(text) })],
  ["base64 in lines", (text) => ({ body: base64(text).replace(/.{76}/g, "$&\r\n").concat("\n") })],
  ["base64 of gzip", (text) => ({ body: base64(zlib.gzipSync(text)) })],
  [
    "base64 of gzip declared by the query",
    (text) => ({ line: "POST /e/?compression=gzip-js", body: base64(zlib.gzipSync(text)) }),
  ],
  ["gzip of base64", (text) => ({ body: zlib.gzipSync(base64(text)) })],
  [
    "lz64 declared by the query",
    (text) => ({ line: "POST /e/?compression=lz64", body: lzEncode(text) }),
  ],
  [
    "lz64 declared as lz-string",
    (text) => ({ line: "POST /e/?compression=LZ-String", body: lzEncode(text) }),
  ],
  [
    "lz64 declared as lz-string with percent-encoding",
    (text) => ({ line: "POST /e/?compression=lz%2Dstring", body: lzEncode(text) }),
  ],
  [
    "gzip declared with percent-encoding",
    (text) => ({ line: "POST /e/?%63ompression=gzip%2djs", body: zlib.gzipSync(text) }),
  ],
  [
    "lz64 declared by the header",
    (text) => ({ headers: { "Content-Encoding": "lz64" }, body: lzEncode(text) }),
  ],
  ["a form", (text) => ({ headers: form, body: `data=${encodeURIComponent(text)}` })],
  [
    "a form with plus signs, and a charset",
    (text) => ({
      headers: { "Content-Type": "application/x-www-form-urlencoded; charset=UTF-8" },
      body: `data=${formEncoded(text)}`,
    }),
  ],
  [
    "a form declared as plain text",
    (text) => ({ headers: plain, body: `data=${encodeURIComponent(text)}` }),
  ],
  [
    "a form with other fields before and after data",
    (text) => ({ headers: form, body: `ip=1&_=17&ver=1&data=${formEncoded(text)}&a=b&c` }),
  ],
  [
    "a form of base64",
    (text) => ({
      headers: form,
      body: `data=${encodeURIComponent(base64(text))}&compression=base64`,
    }),
  ],
  [
    "a form of base64 without percent-encoding",
    (text) => ({ headers: form, body: `data=${base64(text)}` }),
  ],
  [
    "a form of gzip",
    (text) => ({
      headers: form,
      body: `data=${encodeURIComponent(base64(zlib.gzipSync(text)))}&compression=gzip-js`,
    }),
  ],
  [
    "a form of lz64, as sent by posthog-js-lite",
    (text) => ({
      line: "POST /e/?ip=1&_=1700000000000&v=3.2",
      headers: form,
      body: `data=${encodeURIComponent(lzEncode(text))}&compression=lz64`,
    }),
  ],
  [
    "a form of lz64 declared before the data",
    (text) => ({ headers: form, body: `compression=lz%2Dstring&data=${lzEncode(text)}` }),
  ],
  [
    "a form of lz64 declared by the query",
    (text) => ({
      line: "POST /e/?compression=lz64",
      headers: form,
      body: `data=${lzEncode(text)}&compression=gzip`,
    }),
  ],
  [
    "a form of gzip declared by the header",
    (text) => ({
      headers: { ...form, ...gzip },
      body: `data=${encodeURIComponent(base64(zlib.gzipSync(text)))}`,
    }),
  ],
  [
    "gzip of a form",
    (text) => ({
      headers: { ...form, ...gzip },
      body: zlib.gzipSync(`data=${encodeURIComponent(base64(text))}`),
    }),
  ],
];

export const queryForms: readonly [name: string, send: (text: string) => Sent][] = [
  ["JSON", (text) => ({ line: `GET /e/?${query}&data=${encodeURIComponent(text)}` })],
  ["base64", (text) => ({ line: `GET /track/?data=${base64(text)}&ip=1` })],
  [
    "base64 with percent-encoding",
    (text) => ({ line: `GET /track?data=${encodeURIComponent(base64(text))}&compression=base64` }),
  ],
  ["base64 for URLs", (text) => ({ line: `GET /capture?data=${base64url(text)}` })],
  [
    "gzip",
    (text) => ({
      line: `GET /i/v0/e?data=${encodeURIComponent(base64(zlib.gzipSync(text)))}&compression=gzip-js`,
    }),
  ],
  [
    "lz64",
    (text) => ({ line: `GET /e?compression=lz64&data=${encodeURIComponent(lzEncode(text))}` }),
  ],
  [
    "lz64 without percent-encoding",
    (text) => ({ line: `GET /e?data=${lzEncode(text)}&compression=lz64` }),
  ],
  [
    "lz64 declared as lz-string with percent-encoding",
    (text) => ({
      line: `GET /e?compression=lz%2Dstring&data=${encodeURIComponent(lzEncode(text))}`,
    }),
  ],
  ...["gzip", "gzip-js", "br", "lz64", "base64", "rot13"].map(
    (coding): [string, (text: string) => Sent] => [
      `JSON, and a body declared as ${coding}`,
      (text) => ({
        line: `POST /e/?data=${encodeURIComponent(text)}`,
        headers: { "Content-Encoding": coding },
        body: zlib.gzipSync(text),
      }),
    ],
  ),
  [
    "base64 of gzip, and Content-Encoding without a body",
    (text) => ({
      line: `GET /e/?data=${encodeURIComponent(base64(zlib.gzipSync(text)))}`,
      headers: { "Content-Encoding": "br", "Content-Length": "0" },
    }),
  ],
  [
    "JSON, and a body of JSON",
    (text) => ({ line: `POST /engage/?data=${encodeURIComponent(text)}`, body: '{"not":"this"}' }),
  ],
];
