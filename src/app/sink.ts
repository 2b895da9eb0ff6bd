// The process of a sink: wires NATS, target, writer and the port for metrics and health, and takes
// them down in the reverse order. The port answers from the start on.

import type { NatsConnection } from "@nats-io/nats-core";
import { AdminServer } from "../admin/server.ts";
import { createLog, type Log } from "../base/log.ts";
import type { Lane } from "../base/types.ts";
import type { CommandContext } from "../cli/context.ts";
import type { OpenReader } from "../effects/store/open.ts";
import { connectNats, type NatsLink } from "../nats/link.ts";
import { listProjects } from "../projects/registry/commands.ts";
import type { Config } from "../settings/config.ts";
import { SinkMetrics } from "../sinks/metrics/sink-metrics.ts";
import { EventPersons } from "../sinks/persons/event-persons.ts";
import { SinkCounts } from "../sinks/sink-counts.ts";
import type { SinkTarget } from "../sinks/sink-target.ts";
import { type SinkStatus, SinkWriter } from "../sinks/sink-writer.ts";
import { findAccess, natsHasMoved } from "./find-access.ts";

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

/** So many projects are named in a warning. */
const namedMax = 10;
const waiting: SinkStatus = {
  state: "starting",
  reasons: ["waiting for NATS"],
  hasTarget: false,
  streams: [],
};

const moving: SinkStatus = {
  ...waiting,
  reasons: ["waiting for what is being written, to go on with another nats-server"],
};

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
  let isMoving = false;
  const status = (): SinkStatus => (isMoving ? moving : (writer?.status(Date.now()) ?? waiting));
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
    log.info({ sinkHost, sinkPort: port }, "shows metrics and health");
    const counts = new SinkCounts((commit) => metrics.hear(commit));
    while (!signal.aborted) {
      const access = await findAccess(config, { host, log, signal });
      link = await connectNats({ access, log, signal });
      connected?.(link.connection);
      await warnOfUnknown(link, { config, projects, log });
      const { connection } = link;
      writer = new SinkWriter({
        ...{
          connection,
          prefix: config.subjectPrefix,
          target,
          acceptExpired,
          log,
          persons,
          counts,
        },
        filter: { projects: projects === undefined ? undefined : new Set(projects), lanes },
        limits: {
          eventsMax: config.sinkBatchEvents,
          bytesMax: config.sinkBatchBytes,
          ageMsMax: config.sinkBatchAgeMs,
        },
      });
      writer.start();
      if (!(await natsHasMoved(config, { host, access, link, signal }))) break;
      log.warn({}, "the embedded nats-server is another one now: going on with that");
      isMoving = true;
      // The target is to be opened again only when nothing is being written.
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
}

function standbyWarnings({ standsByFor }: SinkStatus): string[] {
  return standsByFor === undefined ? [] : [`standing by: ${standsByFor}`];
}

/** What is passed over for a misspelt name is never written, also once the name is right. */
async function warnOfUnknown(
  { connection }: NatsLink,
  run: { readonly config: Config; readonly projects: SinkRun["projects"]; readonly log: Log },
): Promise<void> {
  const { config, projects = [], log } = run;
  if (projects.length === 0) return;
  const { subjectPrefix: prefix, replicas, hubDomain } = config;
  // Not every sink may read the registry.
  const known = await listProjects(connection, { prefix, replicas, hubDomain }).catch(() => []);
  const unknown = projects.filter((one) => !known.some(({ id }) => id === one));
  if (known.length > 0 && unknown.length > 0)
    log.warn(
      { unknown, projects: known.slice(0, namedMax).map(({ id }) => id) },
      "the registry has no project of this name: events of projects that are not named are passed over, and never written later",
    );
}
