// How a command on the side reaches the gateway's NATS: the one the settings name, else the embedded one of the data
// folder. Gives up soon, unlike the gateway, because someone sits and waits.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { connect, credsAuthenticator, type NatsConnection, tokenAuthenticator } from "@nats-io/transport-node";
import type { Config } from "../config.ts";
import { readConnectionNote } from "../embedded/nats-config.ts";
import { isRunning, type ProcessHost } from "../embedded/process-identity.ts";
import { CommandError } from "./context.ts";

export interface NatsAddress {
  readonly natsUrl: string;
  readonly natsToken?: string | undefined;
  readonly natsCreds?: string | undefined;
}

const connectTimeoutMs = 3_000;

/** Throws a CommandError when there is neither. */
export function findNats(config: Config, host: ProcessHost): NatsAddress {
  if (config.natsUrl !== undefined) {
    return { natsUrl: config.natsUrl, natsToken: config.natsToken, natsCreds: config.natsCreds };
  }
  const note = readConnectionNote(resolve(config.dataDir));
  if (note !== undefined && note.url !== "" && isRunning(note, host)) {
    return { natsUrl: note.url, natsToken: note.token };
  }
  throw new CommandError(
    `find NATS: no embedded nats-server runs on the data folder ${config.dataDir}, and PENSTOCK_NATS_URL is not set. Start Penstock with \`npm run up\`, name its folder with --data-dir, or name your NATS with --nats-url`,
  );
}

/** Throws a CommandError when NATS does not answer. */
export async function openNats({ natsUrl, natsToken, natsCreds }: NatsAddress): Promise<NatsConnection> {
  try {
    return await connect({
      servers: natsUrl.split(",").map((server) => server.trim()),
      name: "penstock-cli",
      timeout: connectTimeoutMs,
      maxReconnectAttempts: -1,
      ...(natsToken === undefined ? {} : { authenticator: tokenAuthenticator(natsToken) }),
      ...(natsCreds === undefined ? {} : { authenticator: credsAuthenticator(readFileSync(natsCreds)) }),
    });
  } catch (error) {
    // A url may hold a name and a password: user:password@host.
    const places = natsUrl.replaceAll(/[^/,@\s]+@/g, "");
    throw new CommandError(`connect to NATS at ${places}: ${(error as Error).message}`);
  }
}
