import fc from "fast-check";
import { expect, test } from "vitest";
import { Base64Decoder } from "../../../src/gateway/body/step-decoder.ts";

function decoded(text: string): string {
  const decoder = new Base64Decoder(Buffer.from(text, "latin1"));
  for (;;) {
    const result = decoder.step();
    if (result === undefined) continue;
    return Buffer.isBuffer(result) ? result.toString("hex") : "not base64";
  }
}

test("the base64 decoder reads spaces as plus signs and skips line breaks", () => {
  const fill = fc.uint8Array({ minLength: 0, maxLength: 60 });
  const places = fc.array(fc.nat({ max: 260_000 }), { maxLength: 20 });
  fc.assert(
    fc.property(fill, places, fc.constantFrom("\n", "\r\n"), (bytes, breaks, lineBreak) => {
      const whole = Buffer.concat([Buffer.alloc(195_000, Buffer.from([0xfb, 0xef, 0xbe])), bytes]);
      let text = whole.toString("base64").replaceAll("+", " ");
      for (const place of breaks) text = text.slice(0, place) + lineBreak + text.slice(place);
      expect(decoded(text)).toBe(whole.toString("hex"));
    }),
    { numRuns: 30 },
  );
});

test("the base64 decoder accepts white space and rejects invalid text", () => {
  expect(decoded(" ".repeat(400_000))).toBe("fbefbe".repeat(100_000));
  expect(decoded(`e3${"\n".repeat(400_000)}0=`)).toBe("7b7d");
  expect(decoded("e30\r")).toBe("7b7d");
  expect(decoded("e3\r0")).toBe("not base64");
  expect(decoded("e*0=")).toBe("not base64");
});
