import fc from "fast-check";
import { expect, test } from "vitest";
import type { Compression } from "../../../src/gateway/body/payload-form.ts";
import { readQuery } from "../../../src/gateway/http/request-head.ts";
import { percentDecoded } from "../../../src/platform/base/ascii.ts";

function read(query: string) {
  const target = {
    body: { compression: undefined as Compression | undefined, queryData: "" },
    querySentAtMs: Number.NaN,
    answersNothing: false,
    isReplay: false,
  };
  readQuery(query, target);
  return target;
}

// Searching for an equals sign after every ampersand would take an hour.
test.each(["&", "a&", "a=%41&", "%61=b&", "=&"])(
  "half a million query parameters after %s are read in linear time",
  (one) => {
    const query = `${one.repeat(500_000)}beacon=1&data=e30%3D&compression=gzip-js&_=1700000000000`;
    expect(read(query)).toEqual({
      body: { compression: "gzip", queryData: "e30%3D" },
      querySentAtMs: 1_700_000_000_000,
      answersNothing: true,
      isReplay: false,
    });
  },
);

test("a query may have equals signs in a value and percent-encoded names", () => {
  expect(read("data=a=b=&%62eacon=%31").body.queryData).toBe("a=b=");
  const escaped = [..."compression"].map((letter) => `%${letter.charCodeAt(0).toString(16)}`);
  expect(read(`${escaped.join("")}=lz64`).body.compression).toBe("lz64");
});

test("percent escapes are decoded as by a regular expression", () => {
  const pieces = fc.array(fc.constantFrom("%", "4", "1", "a", "F", "g", "%41", "%c3", "é"));
  fc.assert(
    fc.property(pieces, (texts) => {
      const text = texts.join("");
      const expected = text.replaceAll(/%([\da-f]{2})/gi, (_whole, hex: string) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      );
      expect(percentDecoded(text)).toBe(expected);
    }),
    { numRuns: 800 },
  );
});
