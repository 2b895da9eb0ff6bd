import { readdirSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { expect, test } from "vitest";
import { startTarget } from "../kit/hostile.ts";

interface Thread {
  readonly name: string;
  readonly priority: number;
}

function threadsOf(pid: number): Thread[] {
  const tasks = `/proc/${pid}/task`;
  return readdirSync(tasks).map((task) => {
    const stat = readFileSync(`${tasks}/${task}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const isMain = task === String(pid);
    return {
      name: isMain ? "main" : readFileSync(`${tasks}/${task}/comm`, "utf8").trim(),
      priority: Number(fields[16]),
    };
  });
}

test("pool threads have a lower priority than the event loop's thread", async () => {
  const { pid } = await startTarget();
  const threads = threadsOf(pid);
  const pool = threads.filter(({ name }) => name === "libuv-worker");
  expect(pool.length).toBeGreaterThan(0);
  expect(new Set(pool.map(({ priority }) => priority))).toEqual(new Set([getPriority() + 5]));
  expect(threads.find(({ name }) => name === "main")?.priority).toBe(getPriority());
});
