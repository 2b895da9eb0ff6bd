import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../src/records/native.ts";
import { ScanStatus } from "../../src/records/table.ts";
import { createReferenceScanner } from "../kit/reference-scanner/scanner.ts";

describe("a scan", () => {
  for (const [name, createScanner] of [
    ["native", createNativeScanner],
    ["reference", createReferenceScanner],
  ] as const) {
    test(`replaces line breaks between tokens by spaces (${name})`, () => {
      const scanner = createScanner(2);
      const spaces = " ".repeat(100_000);
      const texts = [
        '\r\n{\n"a\\n"\r:\n[1\n,\r\n{}\n,"\\r"]\n}\n',
        `{"a":1}${spaces}\n`,
        `{"a":"${spaces}"\n,"b":["\\n",\r${spaces}\n"c"]}`,
        `{"batch":[${'{"event":"a"},\n'.repeat(9_000)}0]}`,
        "\n1\n",
      ];
      for (const text of texts) {
        const body = Buffer.from(text);
        expect(scanner.scan(body)).toBe(ScanStatus.Ok);
        expect(body.equals(Buffer.from(text.replaceAll(/[\r\n]/g, " ")))).toBe(true);
      }
    });
  }
});
