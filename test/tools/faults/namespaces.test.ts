import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { networkInterfaces } from "node:os";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { removeStaleNamespaces } from "../../faults/namespaces.ts";
import { networkKindsHere } from "./network-kinds.ts";

const folder = "/var/run/netns";
const signals = ["SIGTERM", "SIGKILL"] as const;
const canMake = networkKindsHere().includes("namespaces");

function namespacesOf(pid: number | undefined): string[] {
  return existsSync(folder)
    ? readdirSync(folder).filter((name) => name.startsWith(`penstock-${pid}-`))
    : [];
}

function linksOf(namespaces: readonly string[]): string[] {
  const blocks = new Set(namespaces.map((name) => name.split("-")[2]));
  return Object.keys(networkInterfaces()).filter((link) =>
    blocks.has(/^pstk(\d+)-/.exec(link)?.[1] ?? "none"),
  );
}

describe("the namespaces of a fault run", () => {
  test.each(signals)("are removed by the next run after %s", async (signal) => {
    if (!canMake) return;
    const script = path.join(import.meta.dirname, "network-of-a-run-that-dies.ts");
    const run = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    // Otherwise the remains of a failed test would keep the runner from ending.
    onTestFinished(() => void run.kill("SIGKILL"));
    const sleeper = await new Promise<number>((resolve, reject) => {
      run.stdout
        .setEncoding("utf8")
        .on("data", (text: string) => resolve(Number(/made (\d+)/.exec(text)?.[1])));
      run.once("close", () => reject(new Error("make a network: it ended")));
    });
    const namespaces = namespacesOf(run.pid);
    expect(namespaces).toHaveLength(3);
    // A link is listed only after it has its address.
    await expect.poll(() => linksOf(namespaces)).toHaveLength(2);

    const ended = new Promise((resolve) => run.once("close", resolve));
    run.kill(signal);
    await ended;
    if (signal === "SIGKILL") removeStaleNamespaces();
    expect(namespacesOf(run.pid)).toEqual([]);
    expect(linksOf(namespaces)).toEqual([]);
    await expect.poll(() => existsSync(`/proc/${sleeper}`), { timeout: 30_000 }).toBe(false);
  });
});
