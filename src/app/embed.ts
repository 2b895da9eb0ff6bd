// Starts the embedded nats-server of a data folder, for a gateway or for the duration of a command.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { type CommandContext, type ConfiguredCommand, note } from "../commands/context.ts";
import { runningNats } from "../commands/nats.ts";
import { createLog, type Log } from "../platform/base/log.ts";
import { findOrFetchNatsServer } from "../platform/embedded/find-nats-server.ts";
import { type EmbeddedNats, startEmbeddedNats } from "../platform/embedded/nats-server.ts";
import { lanes } from "../platform/nats/names.ts";
import type { Config } from "../platform/settings/config.ts";

export async function embed(
  config: Config,
  { env, host, stop }: CommandContext,
  { log, isTemporary = false }: { readonly log: Log; readonly isTemporary?: boolean },
): Promise<EmbeddedNats> {
  return await startEmbeddedNats({
    dataDir: config.dataDir,
    binary: await findOrFetchNatsServer({ named: config.natsServer, path: env["PATH"] }),
    streamBytesTotal:
      (config.streamBytesMax * lanes.length + config.rejectedBytes) * config.partitions,
    host,
    log,
    port: config.natsPort,
    token: config.natsToken,
    isTemporary,
    signal: stop,
  });
}

/**
 * Runs `work`. If the settings contain no NATS URL and no nats-server runs on the data folder,
 * starts one for the duration of `work`. A folder without a store needs `isNew`, else the command
 * reports that it finds no NATS.
 */
export async function withEmbedded(
  command: ConfiguredCommand,
  { isNew }: { readonly isNew: boolean },
  work: (command: ConfiguredCommand) => Promise<void>,
): Promise<void> {
  const { config, context } = command;
  const dataDir = resolve(config.dataDir);
  const hasStore = existsSync(join(dataDir, "jetstream"));
  if (runningNats(config, context.host) !== undefined || !(isNew || hasStore))
    return await work(command);
  note(command, `starting nats-server on the data folder ${dataDir} for this command`);
  const embedded = await embed(config, context, { log: createLog("warn") });
  try {
    await work({
      config: { ...config, natsUrl: embedded.url, natsToken: embedded.token },
      context,
    });
  } finally {
    await embedded.close();
  }
}
