import { Buffer } from "node:buffer";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { distinctIdText } from "../../src/events/distinct-id.ts";
import { TokenType } from "../../src/scan/table.ts";

function textOf(token: string, type: TokenType) {
  const body = Buffer.from(`[${token}]`);
  return distinctIdText(body, 1, body.length - 1, type);
}

describe("distinct ids become text", () => {
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
    ])("%s is stored as its text", (token, type, text) => {
      expect(textOf(token, type)).toEqual({ text, cut: false });
    });

    test.each(['" "', '"\u2003\u00a0"', '"\\t\\n"'])("%s is blank", (token) => {
      expect(
        textOf(token, token.includes("\\") ? TokenType.EscapedString : TokenType.PlainString).text,
      ).toBe("");
    });

    test("is cut to 200 characters, counted in code points, and never inside one", () => {
      fc.assert(
        fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 420 }), (sent) => {
          fc.pre(sent.trim() !== "");
          const token = JSON.stringify(sent);
          const { text, cut } = textOf(
            token,
            token.includes("\\") ? TokenType.EscapedString : TokenType.PlainString,
          );
          const characters = [...sent.replaceAll("\0", "\ufffd")];
          expect([...text]).toEqual(characters.slice(0, 200));
          expect(cut).toBe(characters.length > 200);
        }),
      );
    });

    test("of a large object or array only the beginning is read", () => {
      // What comes later is no JSON: reading it would throw.
      const numbers = `[ ${"1 , ".repeat(2_000)} ?`;
      expect(textOf(numbers, TokenType.Array)).toEqual({
        text: `[${"1,".repeat(100)}`.slice(0, 200),
        cut: true,
      });
      const string = 'x y\\"';
      expect(textOf(`{"a b" : "${string.repeat(3_000)}`, TokenType.Object).text).toBe(
        `{"a b":"${string.repeat(60)}`.slice(0, 200),
      );
      expect(textOf("[".repeat(100_000), TokenType.Array).text).toBe("[".repeat(200));
    });

    test("of a large string only the beginning is read, wherever it is cut", () => {
      // What comes later is no JSON: reading it would throw.
      const pieces = ["a", "é", "€", "😀", '\\"', "\\\\", "\\u00e9", "\\ud83d\\ude00"];
      for (const piece of pieces) {
        for (let shift = 0; shift < 14; shift++) {
          const beginning = "x".repeat(shift) + piece.repeat(5_000);
          const { text, cut } = textOf(`"${beginning}\\q\n"`, TokenType.EscapedString);
          const read = JSON.parse(`"${beginning}"`) as string;
          expect({ text, cut }).toEqual({ text: [...read].slice(0, 200).join(""), cut: true });
        }
      }
      expect(textOf(`"${" ".repeat(5_000)}x"`, TokenType.PlainString).text).toBe("");
    });

    test("a large value without white space is cut where its compact text would be", () => {
      fc.assert(
        fc.property(
          fc.array(fc.oneof(fc.string({ unit: "binary" }), fc.integer(), fc.boolean()), {
            minLength: 1,
          }),
          (value) => {
            const large = [...value, "z".repeat(5_000)];
            const text = JSON.stringify(large).toWellFormed();
            fc.pre(!text.includes("\\u"));
            expect(textOf(JSON.stringify(large, undefined, 1), TokenType.Array).text).toBe(
              [...text].slice(0, 200).join(""),
            );
          },
        ),
      );
    });
  });
});
