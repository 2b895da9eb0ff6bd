// What the tests of sinks share: sink writers on a nats-server, and events to be compared with what
// is in a target.

import type { NatsConnection } from "@nats-io/nats-core";
import { onTestFinished } from "vitest";
import { SinkCounts } from "../../src/sinks/sink-counts.ts";
import type { SinkTarget } from "../../src/sinks/sink-target.ts";
import { SinkWriter, type SinkWriterOptions } from "../../src/sinks/sink-writer.ts";
import { silent } from "../../testkit/processes.ts";
import type { TestFrame } from "../../testkit/stored-events.ts";

export const limits = { eventsMax: 40, bytesMax: 1_048_576, ageMsMax: 20 };

interface StartedSink {
  readonly writer: SinkWriter;
  readonly counts: SinkCounts;
}

/** Closed with the test, target and all. */
export function startSink(
  connection: NatsConnection,
  target: SinkTarget,
  settings: Partial<SinkWriterOptions> = {},
): StartedSink {
  const counts = new SinkCounts();
  const writer = new SinkWriter({
    ...{ connection, target, prefix: "penstock", limits, acceptExpired: false, counts },
    ...{ filter: { projects: undefined, lanes: undefined }, log: silent },
    ...settings,
  });
  onTestFinished(async () => {
    await writer.close();
    await target.close();
  });
  writer.start();
  return { writer, counts };
}

/** Each event once, as `project uuid lane name properties`. */
export function eventsIn(frames: readonly TestFrame[]): string[] {
  const lines = frames.flatMap(({ projectId, lane, events }) =>
    events.map((one) => {
      const { uuid, event = "seen", properties = {} } = one;
      return `${projectId} ${uuid} ${lane} ${event} ${JSON.stringify(sorted(properties))}`;
    }),
  );
  return [...new Set(lines)].sort();
}

/** With its names in order, as a database that keeps no order may give it back in any. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]));
}
