// Cuts the power of several nodes at the same moment: data that is only in the page cache is lost.
// If the page cache cannot be inspected, the nodes are only killed, and a note reports this.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestNatsServer } from "../kit/nats-server.ts";

const script = path.resolve(import.meta.dirname, "on-disk-copy.py");
const cache = path.resolve(import.meta.dirname, "../../.cache");

function isTold(folder: string): boolean {
  return spawnSync("python3", [script, "probe", folder]).status === 0;
}

export function diskFolder(): string {
  mkdirSync(cache, { recursive: true });
  const parent = [tmpdir(), cache].find(isTold) ?? tmpdir();
  const folder = mkdtempSync(path.join(parent, "penstock-faults-pages-"));
  process.once("exit", () =>
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 }),
  );
  return folder;
}

/**
 * Each node keeps only the store that was on its disk at this moment. Returns a description of the
 * lost data.
 */
export async function cutPowerOf(nodes: readonly TestNatsServer[]): Promise<string> {
  for (const node of nodes) node.freeze();
  const isImitated = nodes.every((node) => isTold(path.dirname(node.storeDir)));
  let files = 0;
  let bytes = 0;
  for (const { storeDir } of isImitated ? nodes : []) {
    const lost = JSON.parse(
      execFileSync("python3", [script, "copy", storeDir, `${storeDir}.cut`], { encoding: "utf8" }),
    ) as Readonly<Record<string, number>>;
    files += Object.keys(lost).length;
    bytes += Object.values(lost).reduce((sum, some) => sum + some, 0);
  }
  await Promise.all(nodes.map((node) => node.kill()));
  for (const { storeDir } of isImitated ? nodes : []) {
    rmSync(storeDir, { recursive: true });
    renameSync(`${storeDir}.cut`, storeDir);
  }
  return isImitated
    ? `power cut: ${bytes} bytes in ${files} files were not on the disks`
    : "the page cache cannot be looked into here: a power cut is not imitated, a kill is";
}
