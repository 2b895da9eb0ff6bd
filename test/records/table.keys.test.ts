import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../src/records/native.ts";
import { keyTokenBytesMax } from "../../src/records/table.ts";
import { createReferenceScanner } from "../kit/reference-scanner/scanner.ts";
import { inWords } from "./table-in-words.ts";

describe("the scan table", () => {
  for (const [name, scanner] of [
    ["native", createNativeScanner(16)],
    ["reference", createReferenceScanner(16)],
  ] as const) {
    const rowsOf = (text: string): Record<string, unknown>[] => inWords(scanner, text).rows;

    test(`has the API key of an event, envelope or array (${name})`, () => {
      const keyOf = (text: string): unknown => {
        const { envelope } = inWords(scanner, text);
        return [envelope["key"] ?? "none", envelope["other key"] ?? "they agree"].join(", ");
      };
      const places = ['"api_key":"a"', '"token":"t"', '"$token":"d"', '"properties":{"token":"p"}'];
      const [first, ...rest] = places.map(
        (place) => `PlainString ${/:\{?(?:"token":)?("[a-z]")/.exec(place)![1]}`,
      );
      const nothing = ["", "null", '""'].map((value) =>
        value === "" ? "" : `"api_key":${value},`,
      );
      for (const event of [places, places.toReversed()]) {
        expect(keyOf(`{${event.join()}}`)).toBe(`${first}, they agree`);
        expect(keyOf(`[{${event.join()}}]`)).toBe(`${first}, they agree`);
      }
      for (const [place, key] of rest.entries()) {
        for (const none of nothing) {
          const event = `{${none}"event":"e",${places.slice(place + 1).join()}}`;
          expect(keyOf(event)).toBe(`${key}, they agree`);
          expect(keyOf(`[{},7,[${event}],${event},{"token":null},${event}]`)).toBe(
            `${key}, they agree`,
          );
          expect(keyOf(`{"batch":[${event}]}`)).toBe("none, they agree");
        }
      }
      expect(keyOf('{"batch":[],"$token":"d","properties":{"token":"p"}}')).toBe(
        "none, they agree",
      );
      expect(keyOf('{"batch":[{"token":"i"}],"token":"t"}')).toBe('PlainString "t", they agree');
      expect(keyOf('{"properties":{"token":"p"},"properties":{}}')).toBe("none, they agree");
      expect(keyOf('{"properties":{"token":"p","token":"q"},"$token":""}')).toBe(
        'PlainString "q", they agree',
      );
      expect(keyOf('{"api_key":5,"token":"t"}')).toBe("Number 5, they agree");
      const escaped = [
        '"\\u0024token":"a"',
        '"\\u0070roperties":{"\\u0074oken":"a"}',
        '"properties":{"toke\\u006e":"a"}',
      ];
      for (const member of escaped) {
        expect(keyOf(`{${member}}`)).toBe('PlainString "a", they agree');
        expect(keyOf(`[{${member}}]`)).toBe('PlainString "a", they agree');
      }
    });

    test(`has the first event of an array with a different key (${name})`, () => {
      const other = (...keys: string[]): unknown => {
        const items = keys.map((key) => (key === "" ? "{}" : `{"token":${key}}`));
        return inWords(scanner, `[${items.join()}]`).envelope["other key"];
      };
      expect(other('"a"', '"b"')).toBe("item 1");
      expect(other("", '"a"', "", '"a"', '"aa"', '"b"')).toBe("item 4");
      expect(other(...Array.from({ length: 40 }, () => '"a"'), '"b"')).toBe("item 40");
      expect(other('"a"', '" a\\n"', '"\\u0061\\u0009"', '"\\t\\u000ba\\f\\r"')).toBeUndefined();
      expect(other('"\\t\\u0061"', '"a"', '"\\u0061"')).toBeUndefined();
      expect(other('"é"', '"é"')).toBeUndefined();
      expect(other('"é"', '"\\u00e9"')).toBe("item 1");
      expect(other('"a"', "5")).toBe("item 1");
      expect(other("5", "5")).toBeUndefined();
      const longest = `"${" ".repeat(keyTokenBytesMax - 3)}a"`;
      expect(other('"a"', longest)).toBeUndefined();
      expect(other(longest, '"a"')).toBeUndefined();
      expect(other('"a"', longest.replace("a", " a"))).toBe("item 1");
    });

    test(`has rarely used fields of an event (${name})`, () => {
      const extra =
        '"$unset":["a"],"offset":-1.5,"session_id":"s","window_id":"","options":{},"$distinct_id":"d"';
      const properties =
        '{"$set":{"a":1},"$set_once":null,"$unset":[],"$ignore_sent_at":true,"$distinct_id":"p","distinct_id":null}';
      const item = `{"distinct_id":null,${extra},"properties":${properties}}`;
      const row = {
        item: `Object ${item}`,
        distinct_id: 'PlainString "d"',
        "properties.distinct_id": 'PlainString "p"',
        properties: `Object ${properties}`,
        "properties Set": "Object",
        "properties IgnoreSentAt": "True",
        PropertiesSet: 'Object {"a":1}',
        PropertiesSetOnce: "Null null",
        PropertiesUnset: "Array []",
        Unset: 'Array ["a"]',
        Offset: "Number -1.5",
        SessionId: 'PlainString "s"',
        WindowId: 'EmptyString ""',
        Options: "Object {}",
      };
      expect(rowsOf(item)).toEqual([row]);
      const plain = { item: 'Object {"event":"e"}', event: 'PlainString "e"' };
      expect(rowsOf(`[{"event":"e"},${item},{"event":"e"}]`)).toEqual([plain, row, plain]);
      expect(rowsOf(`{"batch":[${item},{"event":"e"},${item}]}`)).toEqual([row, plain, row]);
      expect(rowsOf('[{"offset":1,"$unset":2,"offset":null}]')).toEqual([
        { item: expect.any(String), Offset: "Null null", Unset: "Number 2" },
      ]);
      expect(
        rowsOf('[{"properties":{"$set":{},"$ignore_sent_at":true},"properties":{"$unset":0}}]'),
      ).toEqual([
        {
          item: expect.any(String),
          properties: 'Object {"$unset":0}',
          PropertiesUnset: "Number 0",
        },
      ]);
      expect(rowsOf('[{"properties":{"$set":{}},"properties":0}]')).toEqual([
        { item: expect.any(String), properties: "Number 0" },
      ]);
      expect(rowsOf('{"distinct_id":"","$distinct_id":"d"}')[0]).toMatchObject({
        distinct_id: 'EmptyString ""',
      });
      expect(rowsOf('{"distinct_id":null}')[0]).toMatchObject({ distinct_id: "Null null" });
      expect(rowsOf('{"$distinct_id":null}')[0]).toMatchObject({ distinct_id: "Null null" });
    });

    test(`has sentAt if sent_at is missing (${name})`, () => {
      const sentAt = (text: string): unknown => inWords(scanner, text).envelope["sent_at"];
      expect(sentAt('{"sentAt":"b","sent_at":"a"}')).toBe('PlainString "a"');
      for (const none of ["", '"sent_at":null,', '"sent_at":"",']) {
        expect(sentAt(`{${none}"sentAt":"b","batch":[]}`)).toBe('PlainString "b"');
      }
      expect(sentAt('{"sent_at":""}')).toBe('EmptyString ""');
    });
  }
});
