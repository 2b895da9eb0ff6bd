// A query as long as it may be, and longer: its characters are looked at once.

import fc from "fast-check";
import { expect, test } from "vitest";
import type { Compression } from "../../../src/gateway/body/codings.ts";
import { percentDecoded } from "../../../src/gateway/http/percent-decoded.ts";
import { readQuery } from "../../../src/gateway/http/query.ts";

function read(query: string) {
  const target = {
    body: { compression: undefined as Compression | undefined, queryData: "" },
    querySentAtMs: Number.NaN,
    answersNothing: false,
  };
  readQuery(query, target);
  return target;
}

// Looked for behind every ampersand, an equals sign that does not come would take an hour.
test.each(["&", "a&", "a=%41&", "%61=b&", "=&"])(
  "half a million of %s hide nothing behind them",
  (one) => {
    const query = `${one.repeat(500_000)}beacon=1&data=e30%3D&compression=gzip-js&_=1700000000000`;
    expect(read(query)).toEqual({
      body: { compression: "gzip", queryData: "e30%3D" },
      querySentAtMs: 1_700_000_000_000,
      answersNothing: true,
    });
  },
);

test("a value may hold equals signs, and a name in escapes means what it says", () => {
  expect(read("data=a=b=&%62eacon=%31").body.queryData).toBe("a=b=");
  const escaped = [..."compression"].map((letter) => `%${letter.charCodeAt(0).toString(16)}`);
  expect(read(`${escaped.join("")}=lz64`).body.compression).toBe("lz64");
});

test("escapes are decoded as a pattern would", () => {
  const pieces = fc.array(fc.constantFrom("%", "4", "1", "a", "F", "g", "%41", "%c3", "é"));
  fc.assert(
    fc.property(pieces, (texts) => {
      const text = texts.join("");
      const expected = text.replaceAll(/%([\da-f]{2})/gi, (_whole, hex: string) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      );
      expect(percentDecoded(text)).toBe(expected);
    }),
    { numRuns: 2_000 },
  );
});
