import { randomBytes } from "node:crypto";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import {
  openRegistry,
  type Registry,
  type RegistryOptions,
} from "../../../src/gateway/projects/registry/registry.ts";
import { alteredStreamInfo } from "../../kit/altered-stream-info.ts";
import { startNatsServer, type TestNatsServer } from "../../kit/nats-server.ts";

interface RegistryRig {
  readonly server: TestNatsServer;
  readonly connection: NatsConnection;
}

interface LogLine {
  readonly fields: object;
  readonly message: string;
}

/** Set before the first test of the file. */
export function registryRig(): RegistryRig {
  let server: TestNatsServer | undefined;
  let connection: NatsConnection | undefined;
  beforeAll(async () => {
    server = await startNatsServer();
    connection = await connect({
      servers: server.url,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 50,
    });
  });
  afterAll(async () => {
    await connection?.close();
    await server?.remove();
  });
  return {
    get server() {
      return server!;
    },
    get connection() {
      return connection!;
    },
  };
}

export function newPlace(): { prefix: string; replicas: number } {
  return { prefix: `t${randomBytes(6).toString("hex")}`, replicas: 1 };
}

export async function registryOn(
  { connection }: RegistryRig,
  place: { prefix: string; replicas: number },
  pollMs = 20,
  more: Partial<RegistryOptions> = {},
): Promise<Registry & { readonly lines: LogLine[] }> {
  const lines: LogLine[] = [];
  const note = (fields: object, message: string): void => void lines.push({ fields, message });
  const registry = await openRegistry({
    connection,
    ...place,
    pollMs,
    log: { info: note, warn: note, error: note },
    ...more,
  });
  onTestFinished(() => registry.close());
  return Object.assign(registry, { lines });
}

/**
 * While `isLeaderless` is true, the connection answers for the registry's stream like a member
 * without a leader.
 */
export function leaderless(
  { connection }: RegistryRig,
  isLeaderless: () => boolean,
): NatsConnection {
  return alteredStreamInfo(connection, ({ state }) =>
    isLeaderless()
      ? {
          state: { ...state, messages: 0, last_seq: 0 },
          cluster: { name: "c", replicas: [{ name: "other", current: false, active: 0 }] },
        }
      : undefined,
  );
}
