// The gateway as several processes: wires the supervisor and the one admin server that speaks for
// all workers.

import type { CommandContext } from "../commands/context.ts";
import { AdminServer } from "../gateway/admin/server.ts";
import { Supervisor } from "../gateway/workers/supervisor.ts";
import { workerCommand } from "../gateway/workers/worker-process.ts";
import type { Log } from "../platform/base/log.ts";
import { scrapeContentType, scrapeText, watchProcess } from "../platform/metrics/metric-set.ts";
import { instanceOf } from "../platform/nats/instance.ts";
import type { Config } from "../platform/settings/config.ts";
import type { Gateway } from "./gateway.ts";
import { livePageOf } from "./live.ts";

interface StartOptions {
  readonly log: Log;
  readonly tryKey?: string | undefined;
  readonly effectsPort?: (() => number | undefined) | undefined;
}

/** Does what startGateway does, in `config.workers` processes of their own. */
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
    ...{ tryKey, effectsPort },
  });
  const admin = new AdminServer({
    metrics: {
      contentType: scrapeContentType,
      text: async () => await scrapeText(await supervisor.metrics(await ownMetrics())),
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
    // Closed without a delay: no load balancer knows yet of the workers that have started.
    await close(0);
    throw error;
  }
}

/**
 * A worker is sent its settings in a message. The secrets among them must not stand in its
 * environment too.
 */
function withoutSettings(env: CommandContext["env"]): CommandContext["env"] {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("PENSTOCK_")));
}
