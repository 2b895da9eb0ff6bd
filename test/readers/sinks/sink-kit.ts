import type { NatsConnection } from "@nats-io/nats-core";
import { onTestFinished } from "vitest";
import type { SinkTarget } from "../../../src/readers/sinks/sink-target.ts";
import {
  type CommitCounts,
  SinkWriter,
  type SinkWriterOptions,
} from "../../../src/readers/sinks/sink-writer.ts";
import { silent } from "../../kit/processes.ts";

export const limits = { eventsMax: 40, bytesMax: 1_048_576, ageMsMax: 20 };

interface SinkCounts {
  events: number;
  duplicates: number;
  rejected: number;
  commits: number;
}

interface StartedSink {
  readonly writer: SinkWriter;
  readonly counts: SinkCounts;
}

export function startSink(
  connection: NatsConnection,
  target: SinkTarget,
  settings: Partial<SinkWriterOptions> = {},
): StartedSink {
  const counts = { events: 0, duplicates: 0, rejected: 0, commits: 0 };
  const count = ({ batch, outcome }: CommitCounts): void => {
    counts.events += outcome.written;
    counts.duplicates += outcome.duplicates;
    counts.rejected += batch.rejected.length + outcome.refused;
    counts.commits++;
  };
  const writer = new SinkWriter({
    connection,
    target,
    prefix: "penstock",
    limits,
    acceptExpired: false,
    onWrite: (written) => written && count(written),
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
