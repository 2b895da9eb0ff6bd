import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";
import {
  ParquetTarget,
  type ParquetTargetOptions,
} from "../../../../src/readers/sinks/parquet/parquet-target.ts";
import { silent } from "../../../kit/processes.ts";
import { eventsAt } from "../../../kit/sink-events.ts";

export async function eventsOfParquet(folder: string): Promise<string[]> {
  if (!existsSync(path.join(folder, "events"))) return [];
  return await eventsAt(`parquet:${folder}`);
}

export function newFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-parquet-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return path.join(folder, "warehouse");
}

export function parquetTarget(
  folder: string,
  options: Partial<ParquetTargetOptions> = {},
): ParquetTarget {
  return new ParquetTarget({
    folder,
    pid: process.pid,
    segmentBytesMax: 67_108_864,
    segmentAgeMsMax: 60_000,
    log: silent,
    ...options,
  });
}
