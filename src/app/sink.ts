// The process of a sink: wires NATS, target, writer and the port for metrics and health, and takes
// them down in the reverse order. The port answers from the start on.

import type { NatsConnection } from "@nats-io/nats-core";
import { AdminServer } from "../admin/server.ts";
import { createLog } from "../base/log.ts";
import type { Lane } from "../base/types.ts";
import type { CommandContext } from "../cli/context.ts";
import type { OpenReader } from "../effects/store/open.ts";
import { connectNats, type NatsLink } from "../nats/link.ts";
import type { Config } from "../settings/config.ts";
import { SinkMetrics } from "../sinks/metrics/sink-metrics.ts";
import { EventPersons } from "../sinks/persons/event-persons.ts";
import { SinkCounts } from "../sinks/sink-counts.ts";
import type { SinkTarget } from "../sinks/sink-target.ts";
import { type SinkStatus, SinkWriter } from "../sinks/sink-writer.ts";
import { aborted, findAccess } from "./find-access.ts";

interface SinkRun {
  readonly target: SinkTarget;
  /** Undefined: all. */
  readonly projects: readonly string[] | undefined;
  readonly lanes: readonly Lane[] | undefined;
  /** Goes on behind events that left their stream unread. */
  readonly acceptExpired: boolean;
  /** Asked for the persons of events; undefined: they get none. */
  readonly people?: OpenReader | undefined;
  /** Told of the connection before the target is opened. */
  readonly connected?: (connection: NatsConnection) => void;
}

const waiting: SinkStatus = { state: "starting", reasons: ["waiting for NATS"], streams: [] };

/** Runs until `stop`. */
export async function runSink(
  config: Config,
  { host, stop: signal }: Pick<CommandContext, "host" | "stop">,
  { target, projects, lanes, acceptExpired, people, connected }: SinkRun,
): Promise<void> {
  const log = createLog(config.logLevel);
  const metrics = new SinkMetrics();
  const persons = people && new EventPersons({ source: people, log });
  let writer: SinkWriter | undefined;
  let link: NatsLink | undefined;
  const status = (): SinkStatus => writer?.status(Date.now()) ?? waiting;
  metrics.watch({
    ...{ status, target, framesBytes: () => writer?.framesBytes ?? 0 },
    personsWaitSeconds: () => persons?.waitSeconds ?? 0,
  });
  const server = new AdminServer({
    ...{ metrics, log, portName: "SINK_PORT", monotonicMs: () => performance.now() },
    readiness: async () => status().reasons,
    warnings: async () => [
      ...(status().state === "standing by"
        ? ["standing by: another sink writes to the target"]
        : []),
      ...(target.warnings ?? []),
    ],
  });
  try {
    const { sinkHost, sinkPort } = config;
    const port = await server.listen(sinkHost, sinkPort);
    log.info({ sinkHost, sinkPort: port }, "shows metrics and health");
    link = await connectNats({
      access: await findAccess(config, { host, log, signal }),
      ...{ log, signal },
    });
    connected?.(link.connection);
    writer = new SinkWriter({
      ...{ connection: link.connection, prefix: config.subjectPrefix, target, acceptExpired, log },
      persons,
      filter: { projects: projects === undefined ? undefined : new Set(projects), lanes },
      limits: {
        eventsMax: config.sinkBatchEvents,
        bytesMax: config.sinkBatchBytes,
        ageMsMax: config.sinkBatchAgeMs,
      },
      counts: new SinkCounts((commit) => metrics.hear(commit)),
    });
    writer.start();
    await aborted(signal);
    log.info({}, "stopping");
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await writer?.close();
    await target.close();
    await people?.close();
    await link?.close();
    await server.close();
  }
}
