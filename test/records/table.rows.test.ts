import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../src/records/native.ts";
import { createReferenceScanner } from "../kit/reference-scanner/scanner.ts";
import { inWords } from "./table-in-words.ts";

describe("the rows of the scan table", () => {
  for (const [name, scanner] of [
    ["native", createNativeScanner(16)],
    ["reference", createReferenceScanner(16)],
  ] as const) {
    const rowsOf = (text: string): Record<string, unknown>[] => inWords(scanner, text).rows;

    test(`hold all members of a single event (${name})`, () => {
      const properties =
        '{"alias":"a","$survey_id":false,"$set":{},"$group_set":[],"$groups":null,' +
        '"$process_person_profile":"","$current_url":"x\\n","$screen_name":[],"distinct_id" : "p" }';
      const text =
        `{"api_key":"k","event":"e","distinct_id":7,"timestamp":"t","uuid":"u","properties":${properties},` +
        '"$set":{"a":[1]} ,"$set_once":null}';
      expect(inWords(scanner, ` ${text} `)).toEqual({
        envelope: { root: "Object", key: 'PlainString "k"' },
        rows: [
          {
            item: `Object ${text}`,
            event: 'PlainString "e"',
            distinct_id: "Number 7",
            timestamp: 'PlainString "t"',
            uuid: 'PlainString "u"',
            properties: `Object ${properties}`,
            $set: 'Object {"a":[1]}',
            $set_once: "Null null",
            "properties.distinct_id": 'PlainString "p"',
            "properties SurveyId": "False",
            "properties Set": "Object",
            PropertiesSet: "Object {}",
            "properties GroupSet": "Array",
            "properties Groups": "Null",
            "properties ProcessPersonProfile": "EmptyString",
            "properties CurrentUrl": "EscapedString",
            "properties ScreenName": "Array",
          },
        ],
      });
    });

    test(`hold the events of a batch (${name})`, () => {
      for (const order of [
        (batch: string) =>
          `{"event":"root",${batch},"token":"t","sent_at":1,"historical_migration":true}`,
        (batch: string) =>
          `{${batch},"token":"t","sent_at":1,"historical_migration":true,"properties":{"alias":"a"}}`,
      ]) {
        expect(inWords(scanner, order('"batch":[{"event":"a"},"b",{}]'))).toEqual({
          envelope: {
            root: "Object",
            batch: "Array",
            key: 'PlainString "t"',
            historical: "True",
            sent_at: "Number 1",
          },
          rows: [
            { item: 'Object {"event":"a"}', event: 'PlainString "a"' },
            { item: 'PlainString "b"' },
            { item: "Object {}" },
          ],
        });
      }
    });

    test(`are absent for a batch that is not an array (${name})`, () => {
      expect(inWords(scanner, '{"event":"e","batch":{"event":"a"}}')).toEqual({
        envelope: { root: "Object", batch: "Object" },
        rows: [],
      });
      expect(inWords(scanner, '{"batch":[{}],"batch":null}')).toEqual({
        envelope: { root: "Object", batch: "Null" },
        rows: [],
      });
    });

    test(`are absent for a root that is neither object nor array (${name})`, () => {
      expect(inWords(scanner, ' "\\n"')).toEqual({ envelope: { root: "EscapedString" }, rows: [] });
    });

    test(`hold the last value of a repeated key (${name})`, () => {
      expect(
        rowsOf(
          '{"event":"a","event":2,"properties":{"$groups":"x","$groups":1},"properties":{"plan":0}}',
        ),
      ).toEqual([
        expect.objectContaining({
          event: "Number 2",
          properties: 'Object {"plan":0}',
          flags: ["DuplicateKey"],
        }),
      ]);
      expect(rowsOf('{"properties":{"$groups":"x","$groups":1}}')[0]).toEqual({
        item: 'Object {"properties":{"$groups":"x","$groups":1}}',
        properties: 'Object {"$groups":"x","$groups":1}',
        "properties Groups": "Number",
        flags: ["DuplicateKey"],
      });
      expect(rowsOf('{"properties":{"$groups":"x","\\u0061":0},"properties":"gone"}')[0]).toEqual({
        item: expect.any(String),
        properties: 'PlainString "gone"',
      });
      expect(rowsOf('{"batch":[{},{}],"batch":[0]}')).toEqual([{ item: "Number 0" }]);
    });

    test(`have a flag for an escaped key (${name})`, () => {
      const rows = rowsOf('{"\\u0061":1,"batch":[{},{"\\u0061":1},{"properties":{"\\u0061":1}}]}');
      expect(rows.map((row) => row["flags"])).toEqual([undefined, ["EscapedKey"], ["EscapedKey"]]);
      expect(rowsOf('{"\\u0061":1}')[0]!["flags"]).toEqual(["EscapedKey"]);
      for (const inner of ['"properties":{"a":{"\\u0061":1}}', '"$set":[{"\\u0061":1}]'])
        expect(rowsOf(`{${inner}}`)[0]!["flags"]).toEqual(["EscapedInnerKey"]);
    });

    test(`have a flag for a repeated key in a nested object (${name})`, () => {
      for (const inner of [
        '"properties":{"a":1,"b":2,"a":3}',
        '"properties":{"a":{"b":[{"c":1,"c":1}]}}',
        '"$set":{"":1,"":2}',
        '"other":[[{"é":1,"x":{"é":1},"é":2}]]',
      ])
        expect(rowsOf(`{"event":"e",${inner}}`)[0]!["flags"]).toEqual(["DuplicateKey"]);
      for (const inner of [
        '"x":1,"x":2',
        '"properties":{"a":1,"A":2,"a ":{"a":1},"b":[{"a":1},{"a":1}]},"a":{"a":1}',
        '"properties":{"a":{"b":1,"c":1},"b":{"b":1,"c":1},"c":1}',
      ])
        expect(rowsOf(`{"event":"e",${inner}}`)[0]!["flags"]).toBeUndefined();
    });

    test(`have a flag for a repeated key among tens of thousands (${name})`, () => {
      const names = (count: number) =>
        Array.from({ length: count }, (_, at) => `"n${at}":{"a":1,"b":2}`).join();
      for (const count of [1_000, 5_000, 20_000]) {
        expect(rowsOf(`{"properties":{${names(count)}}}`)[0]!["flags"]).toBeUndefined();
        for (const again of [0, 1_000 - 1, count - 1])
          expect(rowsOf(`{"properties":{${names(count)},"n${again}":1}}`)[0]!["flags"]).toEqual([
            "DuplicateKey",
          ]);
      }
    });

    test(`are found in an envelope with keys in any notation (${name})`, () => {
      const all = String.raw`{"\u0061pi\u005Fkey":"","\u0074\u006f\u006b\u0065\u006E":"t","sent\u005fat":"s",
      "created\u005fat":"c","historical\u005fmigration":true,"batc\u0068":[{"event":"e"}]}`;
      expect(inWords(scanner, all)).toEqual({
        envelope: {
          root: "Object",
          batch: "Array",
          key: 'PlainString "t"',
          created_at: 'PlainString "c"',
          historical: "True",
          sent_at: 'PlainString "s"',
        },
        rows: [{ item: 'Object {"event":"e"}', event: 'PlainString "e"' }],
      });
      const twice = String.raw`{"api_key":1,"\u0061pi_key":"last","token":"first"}`;
      expect(inWords(scanner, twice).envelope).toMatchObject({ key: 'PlainString "last"' });
      const others = String.raw`{"api\/key":1,"api_key\u0000":1,"\u0161pi_key":1,"batch\n":[],"historical_migratio\u006e\u006e":1}`;
      expect(inWords(scanner, others).envelope).toEqual({ root: "Object" });
    });

    test(`have a flag for an escaped U+0000 (${name})`, () => {
      const rows = rowsOf(
        '{"batch":[{"a":["\\u0000"]},{"\\u0000":1},"\\u0000",{"a":"\\\\u0000\\u0001"},{"a":"\\u00001"}]}',
      );
      expect(rows.map((row) => String(row["flags"]).includes("ReplacedCharacter"))).toEqual([
        true,
        true,
        true,
        false,
        true,
      ]);
    });

    test(`have a flag for more than 100 levels (${name})`, () => {
      const nest = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
      const flags = (text: string) =>
        rowsOf(text).map((row) => String(row["flags"]).includes("TooDeep"));
      for (const [depth, deep] of [[99, false] as const, [100, true] as const]) {
        expect(flags(`{"extra":${nest(depth)}}`)).toEqual([deep]);
        const items = [
          `{"distinct_id":${nest(depth)}}`,
          `{"properties":{"a":${nest(depth - 1)}}}`,
          nest(depth + 1),
          "{}",
        ];
        expect(flags(`{"batch":[${items.join()}],"x":${nest(200)}}`)).toEqual([
          deep,
          deep,
          deep,
          false,
        ]);
        const objects = `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
        expect(flags(`{"batch":[{},{"properties":5,"x":${objects}},{}]}`)).toEqual([
          false,
          deep,
          false,
        ]);
        expect(flags(`{"x":${nest(depth)},"properties":{"a":${nest(2)}}}`)).toEqual([deep]);
        expect(flags(`{"properties":{"a":${nest(2)}},"x":${nest(depth)}}`)).toEqual([deep]);
        expect(flags(`{"batch":[{"x":${nest(200)}}],"batch":null}`)).toEqual([]);
      }
    });

    test(`have a flag for a number of more than 400 digits (${name})`, () => {
      const numbers = [
        "1".repeat(400),
        `-0.${"1".repeat(399)}`,
        `${"1".repeat(390)}e-${"0".repeat(10)}`,
      ];
      const long = [
        "1".repeat(401),
        `-0.${"1".repeat(400)}`,
        `${"1".repeat(390)}E+${"0".repeat(11)}`,
      ];
      const items = [...numbers, ...long].flatMap((n) => [
        n,
        `{"a":[${n}]}`,
        `{"properties":{"a":{"b":${n} }}}`,
      ]);
      const flagged = rowsOf(`{"batch":[${items.slice(0, 9).join()}],"x":${long[0]}}`).concat(
        rowsOf(`{"batch":[${items.slice(9).join()}]}`),
      );
      expect(flagged.map((row) => String(row["flags"]).includes("LongNumber"))).toEqual(
        items.map((_, index) => index > 8),
      );
    });

    test(`have a flag for a lone surrogate at any depth (${name})`, () => {
      const lone = [
        '"\\ud800"',
        '"\\ud800\\ue000"',
        '"\\ud800\\udbff"',
        '"\\udbff\\udbff\\udfff"',
        '["\\udc00x"]',
        '{"\\ud800\\u0041":0}',
        '{"properties":{"a":[{"b":"\\ud83d\\ud83d\\ude00"}]}}',
      ];
      const paired = [
        '"\\ud800\\udc00\\udbff\\udfff"',
        '"\\ud7ff\\ue000"',
        '"\\ud83d\\ude00"',
        '{"event":"\\\\ud800"}',
      ];
      const rows = rowsOf(`{"x":"\\ud800","batch":[${[...lone, ...paired].join(" , ")}]}`);
      expect(rows.map((row) => String(row["flags"]).includes("ReplacedCharacter"))).toEqual([
        ...lone.map(() => true),
        ...paired.map(() => false),
      ]);
      expect(rowsOf('{"x":["\\ud800"]}')[0]!["flags"]).toEqual(["ReplacedCharacter"]);
    });
  }
});
