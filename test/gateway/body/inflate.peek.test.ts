import { deflateSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { inflateStart } from "../../../src/gateway/body/inflate.ts";

const key = "phc_aB3dE5fG7haB3dE5fG7haB3dE5fG7haB3dE5fG7hxyz";
const start = `{"api_key":"${key}","batch":[`;
const properties = { $current_url: "https://example.com/", plan: "free", seats: 3 };
const event = JSON.stringify({ event: "pageview", distinct_id: "user-1", properties });

describe("the peek at the start of a compressed body", () => {
  test.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
  ] as const)("finds the key at the start of a %s body", (coding, compress) => {
    const equal = compress(`${start}${`${event},`.repeat(50_000)}${event}]}`);
    const others = Array.from({ length: 5_000 }, (_, n) =>
      event.replace("user-1", `user-${n * 7_919}`),
    );
    for (const body of [equal, compress(`${start}${others.join(",")}]}`)]) {
      expect(inflateStart(coding, body).toString("latin1", 0, start.length)).toBe(start);
    }
  });

  test("returns nothing for a body whose first bytes expand too far", () => {
    expect(inflateStart("gzip", gzipSync(Buffer.alloc(10_000_000, " ")))).toHaveLength(0);
  });
});
