import { expect, test } from "vitest";
import { loadAddon } from "../../src/records/native.ts";

const { threadCpuMs } = loadAddon();

test("the CPU clock of a thread stops while the thread sleeps", () => {
  const beganMs = threadCpuMs();
  while (threadCpuMs() === beganMs);
  const workedMs = threadCpuMs();
  expect(workedMs).toBeGreaterThan(beganMs);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
  expect(threadCpuMs() - workedMs).toBeLessThan(250);
});
