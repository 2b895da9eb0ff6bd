import {
  Client,
  type ClientBase,
  type ClientConfig,
  type CustomTypesConfig,
  types as usualTypes,
} from "pg";
import { StoreError } from "../base/store-error.ts";
import type { PostgresAddress } from "./address.ts";
import { selectRows } from "./select-rows.ts";

const connectMsMax = 10_000;
const keepAliveMs = 10_000;
export const closeMsMax = 3_000;
const answerMsMore = 5_000;

interface ConnectOptions {
  readonly name: string;
  readonly statementMsMax: number;
  /** Maximum pause between the statements of a transaction. 0 means no limit. */
  readonly idleMsMax?: number;
  readonly schema: string;
  readonly session?: string;
}

const oids = { bool: 16, bytea: 17, int8: 20, json: 114 } as const;

/**
 * Integers are parsed to numbers, because they are all below 2^53. JSON stays text. A boolean
 * becomes 1 or 0.
 */
const types: CustomTypesConfig = {
  getTypeParser(oid: number): (text: string) => unknown {
    if (oid === oids.bool) return (text: string) => (text === "t" ? 1 : 0);
    if (oid === oids.bytea) return bytesOf;
    if (oid === oids.int8) return Number;
    if (oid === oids.json) return (text: string) => text;
    return usualTypes.getTypeParser(oid, "text");
  },
};

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text.slice(2), "hex"));
}

const noTls = "The server does not support SSL connections";

/** Opens a connection, which the caller must close. Rejects with the error of the client. */
export async function connect(address: PostgresAddress, options: ConnectOptions): Promise<Client> {
  return (await tried(address, options)).client;
}

export async function triedConfig(
  address: PostgresAddress,
  options: ConnectOptions,
): Promise<ClientConfig> {
  if (!address.mayBePlain) return configOf(address, options);
  const { client, config } = await tried(address, options);
  await client.end();
  return config;
}

async function tried(
  address: PostgresAddress,
  options: ConnectOptions,
): Promise<{ client: Client; config: ClientConfig }> {
  const config = configOf(address, options);
  try {
    return { client: await connected(config, options), config };
  } catch (error) {
    if (!address.mayBePlain || (error as Error).message !== noTls) throw error;
    const plain = { ...config, ssl: false };
    return { client: await connected(plain, options), config: plain };
  }
}

function configOf({ config }: PostgresAddress, options: ConnectOptions): ClientConfig {
  const { name, statementMsMax } = options;
  return {
    ...config,
    application_name: name,
    connectionTimeoutMillis: connectMsMax,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    query_timeout: statementMsMax + answerMsMore,
    types,
  };
}

async function connected(config: ClientConfig, options: ConnectOptions): Promise<Client> {
  const client = new Client(config);
  // Without this listener, the loss of an idle connection would end the process.
  client.on("error", () => {});
  try {
    await client.connect();
    await prepare(client, options);
    return client;
  } catch (error) {
    void client.end().catch(() => {});
    throw error;
  }
}

/** Sets the parameters with a statement, because poolers reject them in the start-up message. */
export async function prepare(
  client: ClientBase,
  { schema, session = "", statementMsMax, idleMsMax = statementMsMax }: ConnectOptions,
): Promise<void> {
  await client.query(`SET search_path = "${schema}", pg_catalog; SET jit = off;
    SET penstock.session = '${session}';
    SET statement_timeout = ${statementMsMax};
    SET idle_in_transaction_session_timeout = ${idleMsMax};
    SET client_encoding = 'UTF8'; SET standard_conforming_strings = on; SET array_nulls = on;
    SET bytea_output = 'hex'; SET extra_float_digits = 1; SET IntervalStyle = 'postgres';
    SET DateStyle = 'ISO, MDY'; SET TimeZone = 'UTC';
    SET default_transaction_isolation = 'read committed'; SET transform_null_equals = off`);
}

/** Closes a connection immediately, because the server may never respond to an orderly close. */
export function destroy(client: ClientBase): void {
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } })
    .connection;
  stream.destroy();
}

/** Rejects if the database is not in UTF-8, because such a database cannot store some texts. */
export async function requireUtf8(client: ClientBase, shown: string): Promise<void> {
  const [row] = await selectRows(client, "SHOW server_encoding");
  if (row?.[0] === "UTF8") return;
  throw new StoreError(
    `cannot open PostgreSQL at ${shown}: the database is in ${row?.[0]}, but must be in UTF8: create a database with createdb --encoding=UTF8 --template=template0, and use it`,
  );
}

export const keepAliveSql = `SELECT set_config(name, wanted, false) FROM pg_settings JOIN (VALUES
    ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'),
    ('client_connection_check_interval', '250')
  ) AS wanted (setting, wanted) ON name = wanted.setting`;
