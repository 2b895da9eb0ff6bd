import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { distinctIdText, storedIdText } from "../../src/records/distinct-id.ts";
import { TokenType } from "../../src/records/table.ts";
import { codePoint } from "../kit/code-points.ts";

function textOf(token: string, type: TokenType) {
  const body = Buffer.from(`[${token}]`);
  return distinctIdText(body, 1, body.length - 1, type);
}

describe("conversion to text", () => {
  describe("a distinct id", () => {
    test.each([
      ["12", TokenType.Number, "12"],
      ["1.50", TokenType.Number, "1.50"],
      ["12345678901234567890", TokenType.Number, "12345678901234567890"],
      ["true", TokenType.True, "true"],
      ["false", TokenType.False, "false"],
      ['[ 1, "a" ]', TokenType.Array, '[1,"a"]'],
      ['{ "id" : 12345678901234567890 }', TokenType.Object, '{"id":12345678901234567890}'],
      ['"a\\u0000b"', TokenType.EscapedString, "a\ufffdb"],
      ['"tab\\tand \\"quotes\\""', TokenType.EscapedString, 'tab\tand "quotes"'],
    ])("is stored as its JSON text: %s", (token, type, text) => {
      expect(textOf(token, type)).toEqual({ text, cut: false });
    });

    test.each(['" "', '"\u2003\u00a0"', '"\\t\\n"'])("is blank: %s", (token) => {
      expect(
        textOf(token, token.includes("\\") ? TokenType.EscapedString : TokenType.PlainString).text,
      ).toBe("");
    });

    test("is shortened with a hash beyond 400 characters", () => {
      fc.assert(
        fc.property(fc.string({ unit: codePoint, minLength: 1, maxLength: 820 }), (sent) => {
          fc.pre(sent.trim() !== "");
          const clean = sent.replaceAll("\0", "\ufffd");
          expect(textOf(JSON.stringify(sent), typeOf(sent))).toEqual(expected(clean));
        }),
      );
    });

    test.each(["x", "é", "€", "😀", "\n", '"'])(
      "of 400 characters %j is stored unchanged",
      (letter) => {
        const whole = `a${letter.repeat(399)}`;
        const long = `${whole}${letter}`;
        expect(textOf(JSON.stringify(whole), typeOf(whole))).toEqual({ text: whole, cut: false });
        expect(textOf(JSON.stringify(long), typeOf(long))).toEqual(expected(long));
        const escaped = Array.from(long.split(""), escapeOf).join("");
        expect(textOf(`"${escaped}"`, TokenType.EscapedString)).toEqual(expected(long));
      },
    );

    test("of more than 400 characters stays distinct if one character differs", () => {
      for (const length of [401, 4_000, 8_190, 8_191, 20_000]) {
        const one = "x".repeat(length);
        const places = [...new Set([0, 199, 200, 355, 356, 399, 400, length - 1])];
        const others = places.map((at) => `${one.slice(0, at)}y${one.slice(at + 1)}`);
        const texts = [one, `${one}x`, ...others].map(
          (id) => textOf(JSON.stringify(id), TokenType.PlainString).text,
        );
        expect(new Set(texts).size).toBe(2 + places.length);
        for (const text of texts) expect([...text]).toHaveLength(400);
      }
    });

    test.each([400, 401, 5_000, 8_190, 8_191, 30_000])(
      "of %d characters has the same text in a look-up as in a record",
      (length) => {
        const id = "é1".repeat(length).slice(0, length);
        expect(storedIdText(id)).toBe(textOf(JSON.stringify(id), TokenType.PlainString).text);
      },
    );

    test("is parsed only at its start if it is a large object", () => {
      // The rest is not JSON, so parsing it would throw.
      const numbers = `[ ${"1 , ".repeat(4_000)} ?`;
      const { text, cut } = textOf(numbers, TokenType.Array);
      expect([text.slice(0, 356), cut]).toEqual([`[${"1,".repeat(200)}`.slice(0, 356), true]);
      expect(textOf("[".repeat(100_000), TokenType.Array).text).toMatch(/^\[{356}~[\w-]{43}$/);
    });

    test("is parsed only at its start if it is a large string", () => {
      const pieces = ["a", "é", "€", "😀", '\\"', "\\\\", "\\u00e9", "\\ud83d\\ude00"];
      for (const piece of pieces) {
        for (let shift = 0; shift < 14; shift++) {
          const beginning = "x".repeat(shift) + piece.repeat(9_000);
          const { text, cut } = textOf(`"${beginning}\\q\n"`, TokenType.EscapedString);
          const read = JSON.parse(`"${beginning}"`) as string;
          const first = [...read].slice(0, 356).join("");
          expect([text.slice(0, first.length), cut]).toEqual([first, true]);
          expect(text.slice(first.length)).toMatch(/^~[\w-]{43}$/);
        }
      }
      expect(textOf(`"${" ".repeat(9_000)}x"`, TokenType.PlainString).text).toBe("");
    });
  });
});

function typeOf(text: string): TokenType {
  return JSON.stringify(text).includes("\\") ? TokenType.EscapedString : TokenType.PlainString;
}

function escapeOf(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function expected(id: string): { text: string; cut: boolean } {
  const characters = [...id];
  if (characters.length <= 400) return { text: id, cut: false };
  const hash = createHash("sha256").update(id).digest("base64url");
  return { text: `${characters.slice(0, 356).join("")}~${hash}`, cut: true };
}
