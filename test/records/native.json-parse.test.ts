import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../src/records/native.ts";
import { ScanStatus } from "../../src/records/table.ts";
import { createReferenceScanner } from "../kit/reference-scanner/scanner.ts";
import { outcomeOf, parses } from "../kit/scan-outcome.ts";
import { jsonTexts } from "./json-texts.ts";

const scanners = [
  ["native", createNativeScanner(4)],
  ["reference", createReferenceScanner(4)],
] as const;

const places: readonly ((value: string) => string)[] = [
  (value) => value,
  (value) => `[${value}]`,
  (value) => `{"batch":[${value}]}`,
  (value) => `{"batch":[{"event":${value}}]}`,
  (value) => `{"properties":{"plan":${value},"$set":${value}}, "x":0}`,
  (value) => `{"properties":{"deep":[{"deeper":${value} }]}}`,
  (value) => `{"api_key":${value}\n,"extra":[[],${value}\r]}`,
];

describe("a scan accepts the same texts as JSON.parse", () => {
  for (const [name, scanner] of scanners) {
    for (const [group, texts] of Object.entries(jsonTexts)) {
      test(`${group} (${name})`, () => {
        for (const place of places) {
          for (const text of texts) {
            const bytes = Buffer.from(place(text));
            const accepted = outcomeOf(scanner, bytes).status === ScanStatus.Ok;
            expect(`${place(text)} ${accepted}`).toBe(`${place(text)} ${parses(bytes)}`);
          }
        }
      });
    }

    test(`but rejects malformed UTF-8 (${name})`, () => {
      const malformed = [
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
        "f09f98",
        "f09f9828",
        "f4908080",
        "f5808080",
        "f888808080",
        "fe",
        "ff",
        "c3a9a9",
        "e282ace2",
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

    test(`including 100,000 levels of nesting (${name})`, () => {
      const depth = 100_000;
      const arrays = `${"[".repeat(depth)}${"]".repeat(depth)}`;
      const objects = `${'{"a":'.repeat(depth)}0${"}".repeat(depth)}`;
      const mixed = `${'{"a":['.repeat(depth)}${"]}".repeat(depth)}`;
      for (const text of [arrays, objects, mixed]) {
        for (const place of places) {
          expect(outcomeOf(scanner, Buffer.from(place(text))).status).toBe(ScanStatus.Ok);
        }
        expect(outcomeOf(scanner, Buffer.from(text.slice(0, -1))).status).toBe(
          ScanStatus.InvalidJson,
        );
        expect(outcomeOf(scanner, Buffer.from(`${text}]`)).status).toBe(ScanStatus.InvalidJson);
      }
      const crossed = `${"[".repeat(depth)}{"a":0]${"]".repeat(depth)}`;
      expect(outcomeOf(scanner, Buffer.from(crossed)).status).toBe(ScanStatus.InvalidJson);
    });
  }
});
