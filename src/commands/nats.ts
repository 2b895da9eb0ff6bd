// Connects a command to NATS. The timeout is short, because a user waits for the result.

import { resolve } from "node:path";
import type { JetStreamManager } from "@nats-io/jetstream";
import { jserrors } from "@nats-io/jetstream/internal";
import type { ConnectionOptions, NatsConnection } from "@nats-io/nats-core";
import { isNoteHidden, readConnectionNote } from "../platform/embedded/nats-config.ts";
import { isRunning, type ProcessHost } from "../platform/embedded/process-identity.ts";
import { type NatsAccess, shownUrls } from "../platform/nats/access.ts";
import { managerOf } from "../platform/nats/api.ts";
import {
  apiRefusal,
  connectOnce,
  NatsRefusedError,
  withoutJetStream,
} from "../platform/nats/sign-in.ts";
import type { Config } from "../platform/settings/config.ts";
import { CommandError, type ConfiguredCommand } from "./context.ts";

const connectTimeoutMs = 3_000;
export const requestTimeoutMs = 5_000;

/**
 * Returns the URL and the credentials of the NATS server in the settings. If there is none, returns
 * those of the embedded nats-server. Throws a CommandError if there is neither.
 */
export function findNats(config: Config, host: ProcessHost): NatsAccess {
  const access = runningNats(config, host);
  if (access !== undefined) return access;
  throw new CommandError(
    `cannot find NATS: no embedded nats-server runs on the data folder ${config.dataDir}, and PENSTOCK_NATS_URL is not set. Start Penstock with \`penstock up\` (in a checkout \`npm run up\`), give its folder with --data-dir, or give your NATS with --nats-url`,
  );
}

/** Like `findNats`, but returns undefined if there is no NATS server. */
export function runningNats(config: Config, host: ProcessHost): NatsAccess | undefined {
  if (config.natsUrl !== undefined) return { ...config, natsUrl: config.natsUrl };
  const note = readConnectionNote(resolve(config.dataDir));
  if (note !== undefined && note.url !== "" && isRunning(note, host)) {
    return { natsUrl: note.url, natsToken: note.token };
  }
  if (isNoteHidden(resolve(config.dataDir))) {
    throw new CommandError(
      `cannot find NATS: only the user who started Penstock may read the address of the embedded nats-server of ${config.dataDir}. Run this command as that user`,
    );
  }
  return undefined;
}

/**
 * Opens a connection, runs `work`, and closes the connection. Rejects with a NatsRefusedError if
 * NATS permanently refuses an operation. Also rejects if the connection cannot be opened.
 */
export async function withNats<T>(
  { config, context }: ConfiguredCommand,
  work: (connection: NatsConnection) => Promise<T>,
): Promise<T> {
  const access = findNats(config, context.host);
  const connection = await openNats(access);
  try {
    return await work(connection);
  } catch (error) {
    throw refusalOf(error, access, connection) ?? error;
  } finally {
    await connection.close();
  }
}

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

/**
 * Opens a connection. Rejects with a CommandError if no server responds, and with a
 * NatsRefusedError if a server refuses the connection.
 */
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
    throw new CommandError(`cannot connect to NATS at ${shownUrls(access.natsUrl)}: ${message}`);
  }
}

export function managerFor(connection: NatsConnection): Promise<JetStreamManager> {
  return managerOf(connection, { timeoutMs: requestTimeoutMs });
}
