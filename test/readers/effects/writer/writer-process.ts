import { onTestFinished } from "vitest";
import type { StorePlace } from "../../../../src/readers/effects/store/open.ts";
import { startWriterProcess, type WriterProcess } from "../../../kit/writer-process.ts";

export function writerProcess(
  natsUrl: string,
  place: StorePlace,
  batchEvents: number,
  changedBytes?: number,
): WriterProcess {
  const started = startWriterProcess({ natsUrl, place, batchEvents, changedBytes });
  onTestFinished(() => void started.child.kill("SIGKILL"));
  return started;
}
