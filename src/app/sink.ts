// The sink process: wires NATS, target, writer and the port for metrics and health, and closes them
// in the reverse order. The port responds from the start.

import type { NatsConnection } from "@nats-io/nats-core";
import type { CommandContext } from "../commands/context.ts";
import { AdminServer } from "../gateway/admin/server.ts";
import type { Lane } from "../platform/base/lane.ts";
import { createLog } from "../platform/base/log.ts";
import type { NatsLink } from "../platform/nats/link.ts";
import type { Config } from "../platform/settings/config.ts";
import type { OpenReader } from "../readers/effects/store/open.ts";
import { SinkMetrics } from "../readers/sinks/metrics/sink-metrics.ts";
import { EventPersons } from "../readers/sinks/persons/event-persons.ts";
import type { SinkTarget } from "../readers/sinks/sink-target.ts";
import { SinkCounts, type SinkStatus, SinkWriter } from "../readers/sinks/sink-writer.ts";
import { natsHasMoved } from "./find-access.ts";
import { type NamedProjects, sinkLink } from "./sink-link.ts";

interface SinkRun {
  readonly target: SinkTarget;
  /** Ids of the projects that the sink writes; undefined for all. */
  readonly projects: readonly string[] | undefined;
  /** Project ids from the command line, which must exist. Default: no ids. */
  readonly named?: readonly NamedProjects[];
  readonly lanes: readonly Lane[] | undefined;
  /** Whether to continue if events have left their stream unread. */
  readonly acceptExpired: boolean;
  /** The database with the persons of events; undefined to write events without persons. */
  readonly people?: OpenReader | undefined;
  /** Called with the connection before the target is opened. */
  readonly connected?: (connection: NatsConnection) => void;
}

const waiting: SinkStatus = {
  state: "starting",
  reasons: ["waiting for NATS"],
  hasTarget: false,
  streams: [],
};

const moving: SinkStatus = {
  ...waiting,
  reasons: ["waiting for the current write, to continue with another nats-server"],
};

/** Runs the sink until `stop` is aborted. */
export async function runSink(
  config: Config,
  { host, stop: signal }: Pick<CommandContext, "host" | "stop">,
  { target, projects, named = [], lanes, acceptExpired, people, connected }: SinkRun,
): Promise<void> {
  const log = createLog(config.logLevel);
  const metrics = new SinkMetrics();
  const persons = people && new EventPersons({ source: people, log });
  let writer: SinkWriter | undefined;
  let link: NatsLink | undefined;
  let isMoving = false;
  let starting = waiting;
  const waits = (reason: string) => {
    starting = { ...waiting, reasons: [reason] };
  };
  let toLookUp = named;
  const status = (): SinkStatus => (isMoving ? moving : (writer?.status(Date.now()) ?? starting));
  metrics.watch({
    ...{ status, target, framesBytes: () => writer?.framesBytes ?? 0 },
    personsWaitSeconds: () => persons?.waitSeconds ?? 0,
  });
  const server = new AdminServer({
    ...{ metrics, log, portName: "SINK_PORT", monotonicMs: () => performance.now() },
    readiness: async () => status().reasons,
    warnings: async () => [...standbyWarnings(status()), ...(target.warnings ?? [])],
  });
  try {
    const { sinkHost, sinkPort } = config;
    const port = await server.listen(sinkHost, sinkPort);
    log.info({ sinkHost, sinkPort: port }, "sink HTTP port listening");
    const counts = new SinkCounts((commit) => metrics.record(commit));
    while (!signal.aborted) {
      const linked = await sinkLink(config, { host, log, signal, named: toLookUp, waits });
      link = linked.link;
      // Checked once: another server may not have these projects, and the sink must continue with
      // it.
      toLookUp = [];
      const { connection } = link;
      connected?.(connection);
      writer = new SinkWriter({
        ...{ connection, prefix: config.subjectPrefix, target },
        ...{ acceptExpired, log, persons, counts },
        filter: { projects: projects === undefined ? undefined : new Set(projects), lanes },
        limits: batchLimits(config),
      });
      writer.start();
      if (!(await natsHasMoved(config, { host, ...linked, signal }))) break;
      log.warn({}, "the embedded nats-server was replaced: continuing with the new one");
      isMoving = true;
      // The target may be opened again only after all writes have ended.
      await writer.close(signal);
      writer = undefined;
      isMoving = false;
      await link.close();
    }
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
  log.info({ target: target.shown }, "the sink has ended");
}

function standbyWarnings({ standsByFor }: SinkStatus): string[] {
  return standsByFor === undefined ? [] : [`standing by: ${standsByFor}`];
}

function batchLimits({ sinkBatchEvents, sinkBatchBytes, sinkBatchAgeMs }: Config) {
  return { eventsMax: sinkBatchEvents, bytesMax: sinkBatchBytes, ageMsMax: sinkBatchAgeMs };
}
