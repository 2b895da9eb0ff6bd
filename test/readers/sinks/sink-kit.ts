import type { NatsConnection } from "@nats-io/nats-core";
import { onTestFinished } from "vitest";
import type { SinkTarget } from "../../../src/readers/sinks/sink-target.ts";
import {
  SinkCounts,
  SinkWriter,
  type SinkWriterOptions,
} from "../../../src/readers/sinks/sink-writer.ts";
import { silent } from "../../kit/processes.ts";

export const limits = { eventsMax: 40, bytesMax: 1_048_576, ageMsMax: 20 };

interface StartedSink {
  readonly writer: SinkWriter;
  readonly counts: SinkCounts;
}

export function startSink(
  connection: NatsConnection,
  target: SinkTarget,
  settings: Partial<SinkWriterOptions> = {},
): StartedSink {
  const counts = new SinkCounts();
  const writer = new SinkWriter({
    connection,
    target,
    prefix: "penstock",
    limits,
    acceptExpired: false,
    counts,
    filter: { projects: undefined, lanes: undefined },
    log: silent,
    ...settings,
  });
  onTestFinished(async () => {
    await writer.close();
    await target.close();
  });
  writer.start();
  return { writer, counts };
}
