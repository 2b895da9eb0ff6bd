import { randomBytes } from "node:crypto";
import { constants, zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { peakBytes, residentBytes, send, untilKeyIsKnown } from "../../kit/floods.ts";
import { key, natsWithProject, workersOn } from "../../kit/workers.ts";

const MIB = 1_048_576;
const budgetBytes = 64 * MIB;
const connections = 3;
const bodiesEach = 40;
/** Cached blocks, scanners and the heap. 120 windows of 8 MiB would take 960 MiB. */
const besideBytesMax = 160 * MIB;

/**
 * Text that barely compresses keeps the ratio of the following spaces within the limit. Because of
 * its first character, it is not read as base64.
 */
function bodyOf(spaceBytes: number): Buffer {
  const text = Buffer.concat([
    Buffer.from(`0${randomBytes(90_000).toString("hex")}`),
    Buffer.alloc(spaceBytes, " "),
  ]);
  return zstdCompressSync(text, {
    params: { [constants.ZSTD_c_windowLog]: 23, [constants.ZSTD_c_checksumFlag]: 1 },
  });
}

function withBrokenChecksum(body: Buffer): Buffer {
  const broken = Buffer.from(body);
  broken[broken.length - 1]! ^= 0xff;
  return broken;
}

test("the memory of zstd decoders is freed with their bodies", {
  timeout: 120_000,
}, async () => {
  const gateway = await workersOn(
    await natsWithProject(),
    "--inflight-bytes-max",
    String(budgetBytes),
    "--body-bytes-max",
    String(20 * MIB),
    "--inflated-bytes-max",
    String(44 * MIB),
  );
  const pid = gateway.process.pid!;
  await untilKeyIsKnown(gateway.port, key);
  const startBytes = residentBytes(pid);

  const cases: [body: Buffer, code: string][] = [
    [bodyOf(12 * MIB), "invalid_json"],
    [withBrokenChecksum(bodyOf(12 * MIB)), "invalid_encoding"],
    [bodyOf(176 * MIB), "inflated_too_large"],
  ];
  for (const [body, code] of cases) {
    const codes = new Set<string>();
    await Promise.all(
      Array.from({ length: connections }, async () => {
        for (let sent = 0; sent < bodiesEach; sent++)
          codes.add((await send(gateway.port, body, { "Content-Encoding": "zstd" })).code);
      }),
    );
    expect([...codes]).toEqual([code]);
    expect(peakBytes(pid)).toBeLessThan(startBytes + budgetBytes + besideBytesMax);
  }
});
