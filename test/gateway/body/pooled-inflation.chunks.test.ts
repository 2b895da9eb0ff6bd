// A body is inflated chunk by chunk. The memory of a chunk is freed when it has been copied, not
// left to the garbage collector.

import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { BodyBuffer, BodyMemory } from "../../../src/gateway/body/body-buffer.ts";
import { PooledInflation } from "../../../src/gateway/body/pooled-inflation.ts";

test("frees inflated chunks once they are copied, and the body is intact", async () => {
  const body = Buffer.from(randomBytes(500_000).toString("hex"));
  let first: Buffer | undefined;
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const sink = {
    isKnown: () => true,
    begun: (bytes: Buffer) => {
      first = bytes;
    },
    hold: () => true,
    left: () => {},
    done: resolve,
  };
  const inflation = new PooledInflation("gzip", gzipSync(body), {
    bytesMax: 2_000_000,
    memory: new BodyMemory(),
    sink,
  });
  const step = (): void => inflation.step(step);
  step();
  const inflated = await promise;
  expect(inflated).toBeInstanceOf(BodyBuffer);
  expect((inflated as BodyBuffer).bytes().equals(body)).toBe(true);
  expect(first?.buffer.byteLength).toBe(0);
});
