import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scanProblem } from "../../../src/gateway/intake/envelope.ts";
import { createNativeScanner } from "../../../src/records/native.ts";
import { ScanStatus } from "../../../src/records/table.ts";

const scanner = createNativeScanner(16);

function problemOf(sent: string | Buffer): { code: string; detail: string; excerpt: string } {
  const body = Buffer.from(sent);
  const status = scanner.scan(body);
  expect(status).not.toBe(ScanStatus.Ok);
  return { excerpt: "", ...scanProblem(status, { body, table: scanner.table, markBytes: 0 }) };
}

describe("the problem for invalid JSON", () => {
  test.each<[string, number, RegExp]>([
    [`{"event":'e'}`, 9, /unexpected ' .*double quotes$/],
    ["{'event':1}", 1, /double quotes$/],
    ['{"event":"e",}', 13, /remove the comma before it$/],
    ['{"batch":[1,]}', 12, /remove the comma before it$/],
    ['{"a":1, // one\n"b":2}', 8, /no comments$/],
    ['{"a":1 /* one */}', 7, /no comments$/],
    ['{"a":1} # end', 8, /no comments$/],
    ['{"n":NaN}', 5, /write null, or a string in quotes/],
    ['{"n":-Infinity}', 6, /write null,/],
    ['{"n":Infinity}', 5, /write null,/],
    ['{"n":undefined}', 5, /write null,/],
    ['{"n":None}', 5, /write null,/],
    ['{"n":True}', 5, /write true,/],
    ['{"n":FALSE}', 5, /write false,/],
    ['{"n":nan}', 6, /write null,/],
    ['{event:"e"}', 1, /names must be in double quotes$/],
    ['{"a":1, event : "e"}', 8, /names must be in double quotes$/],
    ['{"event":signup}', 9, /strings must be in double quotes$/],
    ['{"a":1 "b":2}', 7, /a comma or a colon is missing before it$/],
    ['{"a" "b"}', 5, /a comma or a colon is missing before it$/],
    ['[{"a":1} {"b":2}]', 9, /a comma is missing before it$/],
    ['{"a":,"b":1}', 5, /missing before the comma, or the comma must be removed$/],
    ['{"a":01}', 6, /must not begin with an extra 0$/],
    ['{"a":+1}', 5, /must begin with a digit/],
    ['{"a":.5}', 5, /must begin with a digit/],
    ['{"a":"x\\qy"}', 8, /no such escape: write two backslashes for a backslash/],
    ['{"a":"\\u12"}', 10, /four hexadecimal digits/],
    ['{"a":"x\ny"}', 7, /unexpected line break .*write line breaks/],
    [
      '{"a":1,\u0001"b":2}',
      7,
      /unexpected control character .*: control characters are not allowed outside strings/,
    ],
    ['{"a":"x","b":[1, 2]\u0000}', 19, /outside strings/],
    ['{"a":"x"}\u0000', 9, /outside strings/],
    ['{"a":"x\u0001y"}', 7, /: in a string, .*as \\n or \\u\.{4}$/],
    ['{"a":"x\\"\u0001y"}', 9, /: in a string, .*\.{4}$/],
    ['{"a":"x\\\\"\u0001}', 10, /outside strings/],
    ['{"a":tru\n}', 8, /unexpected line break at byte offset 8$/],
    [`{"a":"${"word, ".repeat(200)}\u0001"}`, 1_206, /: in a string, .*\.{4}$/],
    [`{"a":"${'\\"'.repeat(400)}\u0001"}`, 806, /: in a string, .*\.{4}$/],
    [`{"a":[${'"word", '.repeat(200)}\u0001"x"]}`, 1_606, /outside strings/],
    [
      `{"a":[${"100, ".repeat(200)}\u0001"x"]}`,
      1_006,
      /: in a string, .*; outside a string, remove it$/,
    ],
    [
      `{"a":"${"1".repeat(1_000)}\u0001"}`,
      1_006,
      /: in a string, .*; outside a string, remove it$/,
    ],
    ['{"event":"e"', 12, /it ends too early, at byte offset 12$/],
    [
      '{"event":"e"}\n{"event":"f"}\n',
      14,
      /several JSON texts.*send an array of them, or \{"batch": \[\.\.\.\]\}$/,
    ],
    ['{"event":"e"}{"event":"f"}', 13, /several JSON texts/],
    [`{"event":"${"x".repeat(5_000)}"}\r\n{"event":"f"}`, 5_014, /several JSON texts/],
    ["event=signup&distinct_id=u", 0, /looks like a form/],
    ['--xyz\r\nContent-Disposition: form-data; name="data"', 1, /multipart/],
    ["<html>", 0, /XML or HTML/],
    ["eyJldmVudCI6ImUiLCJkaXN0aW5jd", 0, /truncated or damaged base64/],
    [
      Buffer.from('{"event":"e"}', "utf16le").toString("latin1"),
      1,
      /looks like UTF-16: send UTF-8$/,
    ],
  ])("states the offset of the error and the fix: %j", (body, offset, words) => {
    const { code, detail } = problemOf(body);
    expect(code).toBe("invalid_json");
    expect(detail).toMatch(new RegExp(`byte offset ${offset}\\b`));
    expect(detail).toMatch(words);
  });

  test.each<[string, Buffer, RegExp]>([
    ["UTF-16", Buffer.from('\ufeff{"event":"e"}', "utf16le"), /UTF-16/],
    ["big-endian UTF-16", Buffer.from('\ufeff{"event":"e"}', "utf16le").swap16(), /UTF-16/],
    ["gzip", Buffer.from("1f8b0800000000000003abae0500", "hex"), /gzip inside another encoding/],
    ["zstd", Buffer.from("28b52ffd0458410000", "hex"), /zstd: set Content-Encoding/],
    ["deflate", Buffer.from("789cabae050000750077", "hex"), /deflate: set Content-Encoding/],
  ])("names the encoding of %s", (_, body, words) => {
    const { code, detail } = problemOf(body);
    expect(code).toMatch(/^invalid_(encoding|json)$/);
    expect(detail).toMatch(words);
  });

  test("counts offsets from the first byte that was sent", () => {
    const body = Buffer.from("{'event':1}");
    const { table } = scanner;
    expect(scanProblem(scanner.scan(body), { body, table, markBytes: 3 }).detail).toContain(
      "byte offset 4: ",
    );
    const malformed = Buffer.from("\xff", "latin1");
    const { detail } = scanProblem(scanner.scan(malformed), {
      body: malformed,
      table,
      markBytes: 3,
    });
    expect(detail).toContain("at offset 3");
  });

  test("states whether a control character is inside a string", () => {
    let inString = 0;
    let all = 0;
    const texts = fc.oneof(
      fc.json({ maxDepth: 4 }),
      fc
        .array(fc.string({ minLength: 0, maxLength: 300 }), { maxLength: 20 })
        .map((value) => JSON.stringify(value)),
      fc
        .array(fc.constantFrom("tr", "false", 'a"b', "\\", ",", '","', ":1,"), { maxLength: 300 })
        .map((value) => JSON.stringify(value)),
    );
    fc.assert(
      fc.property(texts, fc.nat(), (text, place) => {
        const ascii = text.replaceAll(/[^ -~]/g, "x");
        const at = place % ascii.length;
        const places = placesOf(ascii);
        const { detail } = problemOf(`${ascii.slice(0, at)}\u0001${ascii.slice(at)}`);
        if (!detail.includes("control character at")) return;
        all++;
        if (detail.includes("outside a string")) return;
        inString++;
        expect(detail).toContain(
          places[at] === true ? ": in a string" : "not allowed outside strings",
        );
      }),
      { numRuns: 1_000 },
    );
    expect(inString).toBeGreaterThan(0.9 * all);
  });

  test("shows some characters around the error", () => {
    expect(problemOf('{"event":"signed up","distinct_id":"u",}').excerpt).toBe(
      'd up","distinct_id":"u",}',
    );
    expect(problemOf('{"é":tru, "\u202e":1}').excerpt).toBe('{"??":tru, "???":1}');
    expect(problemOf(`{"x":"${"y ".repeat(2_000)}",}`).excerpt.length).toBeLessThanOrEqual(40);
  });

  const key = "phc_0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX2yZ3a";
  const other = "kEyOfAnotherMakeWithoutAnyDigitInIt";

  test("never shows a usable part of a key", () => {
    const events = fc.array(
      fc.record({ event: fc.string({ maxLength: 40 }), api_key: fc.constantFrom(key, other) }),
      {
        maxLength: 20,
      },
    );
    const bodies = fc.oneof(
      events.map((batch) => JSON.stringify({ api_key: key, batch })),
      events.map((batch) => JSON.stringify({ batch, "api-key": other, token: key }, undefined, 1)),
      events.map((batch) => `{'apiKey': '${other}', ${JSON.stringify(batch)}`),
      events.map((batch) => `api_key=${other}&data=${JSON.stringify(batch)}`),
      events.map(
        (batch) => `{"x":"${key}","y":["${key}","Bearer ${key}"],"batch":${JSON.stringify(batch)}}`,
      ),
    );
    fc.assert(
      fc.property(
        bodies,
        fc.nat(),
        fc.constantFrom("", "'", ",", "}", "\\", "\n", "x"),
        (text, place, what) => {
          const at = place % (text.length + 1);
          for (const body of [text.slice(0, at) + what + text.slice(at), text.slice(0, at)]) {
            if (scanner.scan(Buffer.from(body)) === ScanStatus.Ok || body.trim() === "") continue;
            const { detail, excerpt } = problemOf(body);
            for (const secret of [key, other]) {
              for (let start = 0; start + 9 <= secret.length; start++) {
                expect(excerpt + detail).not.toContain(secret.slice(start, start + 9));
              }
            }
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test("is short and printable ASCII for any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 3_000 }), (bytes) => {
        const body = Buffer.from(bytes);
        const status = scanner.scan(body);
        if (status !== ScanStatus.InvalidJson && status !== ScanStatus.InvalidUtf8) return;
        const { detail, excerpt = "" } = scanProblem(status, {
          body,
          table: scanner.table,
          markBytes: 0,
        });
        expect(`${detail}${excerpt}`).toMatch(/^[ -~]{20,400}$/);
      }),
    );
  });
});

function placesOf(text: string): boolean[] {
  const places: boolean[] = [];
  let isWithin = false;
  for (let at = 0; at < text.length; at++) {
    places[at] = isWithin;
    if (isWithin && text[at] === "\\") places[++at] = true;
    else if (text[at] === '"') isWithin = !isWithin;
  }
  return places;
}
