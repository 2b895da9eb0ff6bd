import { createConnection, type Socket } from "node:net";
import { expect, test } from "vitest";
import { residentBytes } from "../../kit/floods.ts";
import { event, expectUnharmed, raw, request, startTarget } from "../../kit/hostile.ts";

const wanted = 10_000;
const otherFiles = 200;
const bytesEachMax = 4_096;

function openFilesMax(): number {
  const report = process.report.getReport() as {
    userLimits?: { open_files?: { soft: number | "unlimited" } };
  };
  const limit = report.userLimits?.open_files?.soft;
  return typeof limit === "number" ? limit : Number.POSITIVE_INFINITY;
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host: "127.0.0.1", port }, () => resolve(socket));
    socket.on("error", reject);
  });
}

test("10,000 idle connections use little memory", {
  timeout: 120_000,
}, async () => {
  const target = await startTarget("--address-connections-max", "1000000");
  for (let count = 0; count < 300; count++)
    await raw(target.port, [request(event(`before ${count}`))]);
  const count = Math.min(wanted, openFilesMax() - otherFiles);
  expect(count).toBeGreaterThan(otherFiles);
  const before = residentBytes(target.pid);
  const sockets: Socket[] = [];
  try {
    while (sockets.length < count) {
      const more = Math.min(500, count - sockets.length);
      sockets.push(...(await Promise.all(Array.from({ length: more }, () => open(target.port)))));
    }
    expect((await raw(target.port, [request(event("among them"))])).statuses).toEqual([200]);
    expect(sockets.filter((socket) => socket.destroyed)).toEqual([]);
    expect(residentBytes(target.pid) - before).toBeLessThan(count * bytesEachMax + 8 * 1_048_576);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  await expectUnharmed(target);
});
