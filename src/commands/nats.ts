// Connects a command to the gateway's NATS: the one that the settings name, else the embedded one
// of the data folder. Unlike the gateway, a command gives up soon, because a person waits for it.

import { resolve } from "node:path";
import { jserrors } from "@nats-io/jetstream/internal";
import type { ConnectionOptions, NatsConnection } from "@nats-io/nats-core";
import { isNoteHidden, readConnectionNote } from "../platform/embedded/nats-config.ts";
import { isRunning, type ProcessHost } from "../platform/embedded/process-identity.ts";
import { type NatsAccess, shownUrls } from "../platform/nats/access.ts";
import {
  apiRefusal,
  connectOnce,
  NatsRefusedError,
  withoutJetStream,
} from "../platform/nats/sign-in.ts";
import type { Config } from "../platform/settings/config.ts";
import { CommandError } from "./context.ts";

const connectTimeoutMs = 3_000;

/** Throws a CommandError when the settings name no NATS and no embedded one runs. */
export function findNats(config: Config, host: ProcessHost): NatsAccess {
  if (config.natsUrl !== undefined) return { ...config, natsUrl: config.natsUrl };
  const note = readConnectionNote(resolve(config.dataDir));
  if (note !== undefined && note.url !== "" && isRunning(note, host)) {
    return { natsUrl: note.url, natsToken: note.token };
  }
  if (isNoteHidden(resolve(config.dataDir))) {
    throw new CommandError(
      `find NATS: where the embedded nats-server of ${config.dataDir} listens may be read by the user who started Penstock alone: run this as that user`,
    );
  }
  throw new CommandError(
    `find NATS: no embedded nats-server runs on the data folder ${config.dataDir}, and PENSTOCK_NATS_URL is not set. Start Penstock with \`penstock up\` (in a checkout \`npm run up\`), name its folder with --data-dir, or name your NATS with --nats-url`,
  );
}

/**
 * Runs `work` with a connection, and closes it. Rejects as `openNats`, and with a NatsRefusedError
 * also if NATS refuses for good what the work asks for.
 */
export async function withNats<T>(
  access: NatsAccess,
  work: (connection: NatsConnection) => Promise<T>,
): Promise<T> {
  const connection = await openNats(access);
  try {
    return await work(connection);
  } catch (error) {
    throw refusalOf(error, access, connection) ?? error;
  } finally {
    await connection.close();
  }
}

/** The error if it means that NATS refuses for good what a command needs; else undefined. */
export function refusalOf(
  error: unknown,
  access: NatsAccess,
  connection: NatsConnection,
): NatsRefusedError | undefined {
  const isWithout =
    error instanceof jserrors.JetStreamNotEnabled && connection.info?.jetstream !== true
      ? withoutJetStream
      : undefined;
  const reason = isWithout ?? apiRefusal(error, access);
  return reason && new NatsRefusedError({ server: connection.getServer(), ...reason });
}

/** Throws a CommandError when NATS does not answer, a NatsRefusedError when it refuses. */
export async function openNats(
  access: NatsAccess,
  more: Partial<ConnectionOptions> = {},
): Promise<NatsConnection> {
  try {
    return await connectOnce(access, {
      name: "penstock-cli",
      timeoutMs: connectTimeoutMs,
      ...more,
    });
  } catch (error) {
    if (error instanceof NatsRefusedError) throw error;
    const { message } = error as Error;
    throw new CommandError(`connect to NATS at ${shownUrls(access.natsUrl)}: ${message}`);
  }
}
