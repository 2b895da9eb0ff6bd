// The sink process: connects NATS, target, writer, and the port for metrics and health checks.

import type { NatsConnection } from "@nats-io/nats-core";
import { type CommandContext, CommandError, usageExitCode } from "../commands/context.ts";
import { mustBeKnown, registeredProjects } from "../commands/registered-project.ts";
import { AdminServer } from "../gateway/admin/server.ts";
import type { Lane } from "../platform/base/lane.ts";
import { createLog, type Log } from "../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../platform/base/retry.ts";
import { connectNats, type NatsLink } from "../platform/nats/link.ts";
import { NatsRefusedError, violationIn } from "../platform/nats/sign-in.ts";
import type { Config } from "../platform/settings/config.ts";
import type { OpenReader } from "../readers/effects/store/open.ts";
import { SinkMetrics } from "../readers/sinks/metrics/sink-metrics.ts";
import { EventPersons } from "../readers/sinks/persons/event-persons.ts";
import type { SinkTarget } from "../readers/sinks/sink-target.ts";
import { type SinkStatus, SinkWriter } from "../readers/sinks/sink-writer.ts";
import { findAccess, natsHasMoved, requireStreams } from "./find-access.ts";
import { portAccess } from "./require-token.ts";
import { openTelemetry } from "./telemetry.ts";

interface SinkRun {
  readonly target: SinkTarget;
  readonly projects: readonly string[] | undefined;
  readonly named?: readonly NamedProjects[];
  readonly lanes: readonly Lane[] | undefined;
  readonly acceptExpired: boolean;
  readonly people?: OpenReader | undefined;
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
  reasons: ["sink waiting for the current write before it switches to another nats-server"],
};

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
    status,
    target,
    framesBytes: () => writer?.framesBytes ?? 0,
    personsWaitSeconds: () => persons?.waitSeconds ?? 0,
  });
  const server = new AdminServer({
    access: portAccess(config, "sink"),
    metrics,
    log,
    setting: "sinkPort",
    monotonicMs: () => performance.now(),
    readiness: async () => status().reasons,
    warnings: async () => {
      const { standsByFor } = status();
      const standby = standsByFor === undefined ? [] : [`standing by: ${standsByFor}`];
      return [...standby, ...(target.warnings ?? [])];
    },
  });
  const snapshot = () => metrics.snapshot();
  const telemetry = await openTelemetry(config, { name: "penstock-sink", snapshot, log });
  try {
    const { sinkHost, sinkPort } = config;
    const port = await server.listen(sinkHost, sinkPort);
    log.info({ sinkHost, sinkPort: port }, "sink HTTP port listening");
    while (!signal.aborted) {
      const linked = await sinkLink(config, { host, log, signal, named: toLookUp, waits });
      link = linked.link;
      // The projects are only checked once, because another server may not have them.
      toLookUp = [];
      const { connection } = link;
      connected?.(connection);
      writer = new SinkWriter({
        connection,
        prefix: config.subjectPrefix,
        target,
        acceptExpired,
        log,
        persons,
        onWrite: (counts) => metrics.record(counts),
        filter: { projects: projects === undefined ? undefined : new Set(projects), lanes },
        limits: {
          eventsMax: config.sinkBatchEvents,
          bytesMax: config.sinkBatchBytes,
          ageMsMax: config.sinkBatchAgeMs,
        },
      });
      writer.start();
      if (!(await natsHasMoved(config, { host, ...linked, signal }))) break;
      log.warn({}, "embedded nats-server restarted: the sink uses the new address");
      isMoving = true;
      // All writes must have ended before the target is opened again.
      await writer.close(signal);
      writer = undefined;
      isMoving = false;
      await link.close();
    }
    log.info({}, "sink stopping");
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await writer?.close();
    await target.close();
    await people?.close();
    await link?.close();
    await server.close();
    await telemetry?.close();
  }
  log.info({ target: target.shown }, "sink ended");
}

export interface NamedProjects {
  readonly flag: string;
  readonly ids: readonly string[];
}

interface SinkLinkOptions {
  readonly host: CommandContext["host"];
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly named: readonly NamedProjects[];
  readonly waits: (reason: string) => void;
}

const againMs = 1_000;
const sayAgainMs = 30_000;

/**
 * Connects to NATS. If projects are listed, also waits until the registry contains projects.
 * Rejects with a CommandError if a listed project is unknown, because the sink would permanently
 * skip its events.
 */
async function sinkLink(config: Config, options: SinkLinkOptions) {
  const { host, log, signal, named, waits } = options;
  const warning = new SparseWarning(log, sayAgainMs);
  for (;;) {
    const access = await findAccess(config, { host, log, signal });
    const link = await connectNats({ access, log, signal });
    try {
      await requireStreams(link, config.subjectPrefix);
      await lookUp(link.connection, { config, named, log });
      return { access, link };
    } catch (error) {
      await link.close();
      if (error instanceof CommandError || error instanceof NatsRefusedError) throw error;
      const { message: reason } = error as Error;
      waits(`waiting for the registry: ${reason}`);
      warning.warn(
        { reason },
        "project registry unavailable: the sink cannot look up the projects in its options yet",
      );
    }
    await pauseUntilAborted(againMs, signal);
    signal.throwIfAborted();
  }
}

interface Lookup {
  readonly config: Config;
  readonly named: readonly NamedProjects[];
  readonly log: Log;
}

/** Checks the listed projects. Rejects with a CommandError only if one is certainly unknown. */
async function lookUp(connection: NatsConnection, { config, named, log }: Lookup): Promise<void> {
  try {
    for (const { flag, ids } of named)
      for (const project of ids)
        await mustBeKnown(connection, config, { command: `sink: ${flag}`, project });
  } catch (error) {
    if (error instanceof CommandError) {
      const known = await registeredProjects(connection, config);
      if (known.length === 0) throw new Error("no project is registered yet");
      throw new CommandError(error.message, usageExitCode);
    }
    if (violationIn(error) === undefined) throw error;
    log.warn(
      { reason: (error as Error).message },
      "project registry not readable: no permission, so the projects in --projects are not checked",
    );
  }
}
