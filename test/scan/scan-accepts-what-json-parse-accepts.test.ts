import { expect, test } from "vitest";
import { createNativeScanner } from "../../src/scan/native.ts";
import { createReferenceScanner } from "../../src/scan/reference.ts";
import { ScanStatus } from "../../src/scan/table.ts";
import { outcomeOf, parses } from "./outcome.ts";

const scanners = [
  ["native", createNativeScanner(4)],
  ["reference", createReferenceScanner(4)],
] as const;

const values: Readonly<Record<string, readonly string[]>> = {
  numbers: [
    ...[
      "0",
      "-0",
      "1",
      "-1",
      "10",
      "1.0",
      "0.1",
      "-0.0",
      "1e5",
      "1E5",
      "1e+5",
      "1e-5",
      "1.5e10",
      "0e0",
      "0e+1",
      "1e400",
    ],
    ...["-1e400", "1e-400", "123456789012345678901234567890", `1${"0".repeat(400)}`, `0.${"3".repeat(400)}`, "1e00005"],
    ...[
      "",
      "-",
      "+1",
      "01",
      "-01",
      "00",
      ".5",
      "1.",
      "1.e5",
      "1e",
      "1e+",
      "1E-",
      "1e1.5",
      "1.2.3",
      "0x10",
      "1a",
      "1_0",
    ],
    ...[
      "--1",
      "-a",
      "- 1",
      "1 2",
      "1-",
      "1+1",
      "NaN",
      "Infinity",
      "-Infinity",
      "１",
      "1\u0000",
      "1\f",
      "1\u001a",
      '1"',
      "1e١",
    ],
    ...["0.", "0e", "-0.", "0.e1", "1\\", "1true", "2.e3", "9.9e", "1 000.0"],
  ],
  literals: [
    ...[
      "true",
      "false",
      "null",
      "tru",
      "truee",
      "True",
      "nul",
      "nulll",
      "fals",
      "falsey",
      "t",
      "f",
      "n",
      "true1",
      "nu ll",
    ],
    ...['true"', "truefalse", "undefined", "tru\u0065", "tr\\u0075e", "null\u0000", "TRUE", "false\f"],
  ],
  strings: [
    ...[
      '""',
      '"a"',
      '"é"',
      '"😀"',
      '"\u007f"',
      '"\u2028\u2029"',
      '"/"',
      '"{}[],:"',
      '" "',
      '"a b "',
      '"\ufeff"',
      '"\u00a0"',
    ],
    ...[
      '"',
      '"a',
      "'a'",
      'a"',
      '"a"b',
      '"a"b"',
      '"a""b"',
      '"a" "b"',
      '"a"1',
      '1"a"',
      '""""',
      '"a\nb"',
      '"a\tb"',
      '"\u0000"',
    ],
    ...['"\u001f"', '"\u001a"', '"\f"', '"a\r"', "a", '\\"a"', '"a"\\', '"a"\u0000', '\u0000"a"', '"a"\f', '"a" \f '],
  ],
  escapes: [
    ...[
      '"\\""',
      '"\\\\"',
      '"\\/"',
      '"\\b\\f\\n\\r\\t"',
      '"\\u0041"',
      '"\\uABCD\\uabcd"',
      '"\\u0000"',
      '"\\\\\\""',
      '"\\\\u00"',
    ],
    ...[
      '"\\ud83d\\ude00"',
      '"\\ud800"',
      '"\\udc00"',
      '"\\ud800\\ud800"',
      '"\\ud800a"',
      '"\\ud800\\n"',
      '"\\udbff\\udfff"',
    ],
    ...[
      '"\\a"',
      '"\\x41"',
      '"\\0"',
      '"\\ "',
      '"\\u"',
      '"\\u1"',
      '"\\u12"',
      '"\\u123"',
      '"\\u123g"',
      '"\\U0041"',
      '"\\\u00e9"',
    ],
    ...[
      '"\\"',
      '"\\\\\\"',
      '"\\ud800\\u"',
      '"\\ud800\\u12"',
      '"\\ud800\\x"',
      '"\\u 123"',
      '"\\u00 41"',
      '"\\\n"',
      '"\\\'"',
      '"\\v"',
    ],
    ...[
      '"\\u-123"',
      '"\\u+123"',
      '"\\uD83D\\uDE0"',
      '"\\u00a"',
      '"\\e"',
      `"${"\\\\".repeat(200)}"`,
      `"${"\\\\".repeat(200)}\\"`,
    ],
  ],
  structure: [
    ...[
      "{}",
      "[]",
      "[[]]",
      "[{}]",
      '{"a":{}}',
      "[1,2]",
      '{"a":1,"a":2}',
      '{"":0}',
      "[null,[],{},0]",
      '{"a":[{"b":[]}]}',
    ],
    ...[
      "{",
      "}",
      "[",
      "]",
      "[1",
      "[1,",
      "[1,]",
      "[,1]",
      "[,]",
      "[1,,2]",
      "[1 2]",
      "[1]]",
      "[[1]",
      "[}",
      "{]",
      "[1}",
      '{"a":1]',
    ],
    ...[
      '{"a"}',
      '{"a":}',
      '{"a":1,}',
      '{,"a":1}',
      "{a:1}",
      "{1:1}",
      '{"a" 1}',
      '{"a"::1}',
      '{"a":1 "b":2}',
      '{"a":1:2}',
    ],
    ...[
      '{"a":1,"b"}',
      '{"a","b"}',
      "{}{}",
      "[][]",
      "{},",
      ",{}",
      "[]1",
      "1[]",
      "[:]",
      "{:}",
      '["a":1]',
      "{{}}",
      "[]]",
      "{}}",
      ":",
    ],
    ...[
      "{[]:1}",
      "{null:1}",
      '{"a":[}',
      '{"a":{]}',
      "[1]x",
      "x[1]",
      "[1];",
      "/**/[]",
      "[]//",
      "[1/**/]",
      "<!-- -->",
      "{'a':1}",
    ],
    ...[
      '[{"a":1},]',
      '{"a":tru}',
      '{"a":nul',
      "[tru]",
      "[-]",
      '["\\q"]',
      '{"\\q":1}',
      '{"k":"\\q"}',
      "[1.]",
      '{"a":01}',
      "[0 1]",
    ],
  ],
  "white space": [
    ...[
      "",
      " ",
      "\n",
      "\r\n\t ",
      " 1 ",
      "\t[\n1\r,\n 2 ]\t",
      ' {\n"a"\r:\t1 , "b" : [ ] } ',
      "\u00a01",
      "1\u00a0",
      "\u20281",
      "\ufeff1",
    ],
    ...[
      "\ufeff{}",
      "{}\ufeff",
      "\ufeff",
      "\v1",
      "\f1",
      "[\f1]",
      "[1\u0085]",
      "\u0000",
      "[\u0000]",
      "{}\u0000",
      "[1\u2003]",
      "\u001a",
    ],
    ...['{"a"\f:1}', '{"a":\u001a1}', '["a"\u001a]', '["a"\v]', "{\u3000}", "[\u00a0]"],
  ],
};

// Each value alone, and where it stands in bodies: a token is judged by other code at other places.
const places: readonly ((value: string) => string)[] = [
  (value) => value,
  (value) => `[${value}]`,
  (value) => `{"batch":[${value}]}`,
  (value) => `{"batch":[{"event":${value}}]}`,
  (value) => `{"properties":{"plan":${value},"$set":${value}}, "x":0}`,
  (value) => `{"properties":{"deep":[{"deeper":${value} }]}}`,
  (value) => `{"api_key":${value}\n,"extra":[[],${value}\r]}`,
];

for (const [name, scanner] of scanners) {
  for (const [group, texts] of Object.entries(values)) {
    test(`${name}: ${group}`, () => {
      for (const place of places) {
        for (const text of texts) {
          const bytes = Buffer.from(place(text));
          const accepted = outcomeOf(scanner, bytes).status === ScanStatus.Ok;
          expect(`${place(text)} ${accepted}`).toBe(`${place(text)} ${parses(bytes)}`);
        }
      }
    });
  }

  test(`${name}: bytes that are not UTF-8`, () => {
    const malformed = [
      ...[
        "80",
        "bf",
        "c0af",
        "c1bf",
        "c3",
        "c328",
        "e0809f",
        "e09fbf",
        "e282",
        "e28228",
        "eda080",
        "edbfbf",
        "f08fbfbf",
      ],
      ...["f09f98", "f09f9828", "f4908080", "f5808080", "f888808080", "fe", "ff", "c3a9a9", "e282ace2"],
    ];
    for (const place of places) {
      for (const hex of malformed) {
        const bytes = Buffer.concat(
          place('"\u0001"')
            .split("\u0001")
            .flatMap((part) => [Buffer.from(part), Buffer.from(hex, "hex")])
            .slice(0, -1),
        );
        expect(parses(bytes)).toBe(undefined);
        expect([hex, outcomeOf(scanner, bytes).status]).toEqual([hex, ScanStatus.InvalidUtf8]);
      }
    }
  });

  test(`${name}: nesting far deeper than a stack`, () => {
    const depth = 100_000;
    const arrays = `${"[".repeat(depth)}${"]".repeat(depth)}`;
    const objects = `${'{"a":'.repeat(depth)}0${"}".repeat(depth)}`;
    const mixed = `${'{"a":['.repeat(depth)}${"]}".repeat(depth)}`;
    for (const text of [arrays, objects, mixed]) {
      for (const place of places) {
        expect(outcomeOf(scanner, Buffer.from(place(text))).status).toBe(ScanStatus.Ok);
      }
      expect(outcomeOf(scanner, Buffer.from(text.slice(0, -1))).status).toBe(ScanStatus.InvalidJson);
      expect(outcomeOf(scanner, Buffer.from(`${text}]`)).status).toBe(ScanStatus.InvalidJson);
    }
    const crossed = `${"[".repeat(depth)}{"a":0]${"]".repeat(depth)}`;
    expect(outcomeOf(scanner, Buffer.from(crossed)).status).toBe(ScanStatus.InvalidJson);
  });
}
