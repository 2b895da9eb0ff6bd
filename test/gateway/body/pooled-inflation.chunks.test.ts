import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { BodyBuffer, BodyMemory } from "../../../src/gateway/body/body-buffer.ts";
import { PooledInflation } from "../../../src/gateway/body/pooled-inflation.ts";

test("inflation in the thread pool frees each chunk after copying it", async () => {
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
