import { type CommandContext, CommandError, usageExitCode } from "../commands/context.ts";
import { AdminServer } from "../gateway/admin/server.ts";
import { Supervisor } from "../gateway/workers/supervisor.ts";
import { runWorker } from "../gateway/workers/worker.ts";
import { workerCommand } from "../gateway/workers/worker-process.ts";
import { createLog, type Log } from "../platform/base/log.ts";
import { scrapeContentType, scrapeText, watchProcess } from "../platform/metrics/metric-set.ts";
import { instanceOf } from "../platform/nats/instance.ts";
import type { Config } from "../platform/settings/config.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { livePageOf } from "./live.ts";
import { withoutSettings } from "./options.ts";
import { portAccess } from "./require-token.ts";
import { openTelemetry } from "./telemetry.ts";

interface StartOptions {
  readonly log: Log;
  readonly tryKey?: string | undefined;
  readonly effectsPort?: (() => number | undefined) | undefined;
}

export async function startWorkers(
  config: Config,
  { env, mainFile, stop }: CommandContext,
  { log, tryKey, effectsPort }: StartOptions,
): Promise<Pick<Gateway, "port" | "adminPort" | "close">> {
  const program = { file: mainFile, args: [workerCommand], env: withoutSettings(env) };
  const supervisor = new Supervisor({ config, program, log, signal: stop });
  const ownMetrics = watchProcess();
  const instance = instanceOf(config);
  let publicPort: number | undefined;
  const live = livePageOf(config, {
    counts: () => supervisor.counts(),
    clientWarnings: () => supervisor.clientWarnings(),
    readiness: () => supervisor.readiness(),
    publicPort: () => publicPort,
    tryKey,
    effectsPort,
  });
  const snapshot = async () => await supervisor.metrics(await ownMetrics());
  const telemetry = await openTelemetry(config, { name: "penstock", snapshot, log });
  const admin = new AdminServer({
    access: portAccess(config, "admin"),
    metrics: {
      contentType: scrapeContentType,
      text: async () => await scrapeText(await snapshot()),
    },
    readiness: () => supervisor.readiness(),
    warnings: () => supervisor.warnings(),
    publicPort: () => publicPort,
    instance,
    live: (request, response) => live.answer(request, response),
    log,
    monotonicMs: () => performance.now(),
  });
  const close = async (drainDelayMs?: number): Promise<void> => {
    const closed = supervisor.close(drainDelayMs);
    admin.readinessChanged();
    await closed;
    await telemetry?.close();
    await live.close();
    await admin.close();
  };
  const adminPort = await admin.listen(config.adminHost, config.adminPort);
  try {
    const { port, streamCreated } = await supervisor.start();
    publicPort = port;
    instance.stream_created = streamCreated;
    const { host, adminHost, workers } = config;
    log.info({ host, port, adminHost, adminPort, workers }, "all workers listen");
    return { port, adminPort, close };
  } catch (error) {
    // The drain delay is 0, because no load balancer knows the workers yet.
    await close(0);
    throw error;
  }
}

export async function work({ channel, stop }: CommandContext): Promise<void> {
  if (channel.send === undefined)
    throw new CommandError(
      "`worker` is an internal command of `serve --workers N` and cannot be run alone",
      usageExitCode,
    );
  const started = await runWorker({
    channel,
    stop,
    startGateway: async ({ config, index, role }, signal) => {
      const log = createLog(config.logLevel).child({ worker: index });
      return await startGateway(config, { log, signal, worker: role });
    },
  });
  if (!started) throw new CommandError("");
}
