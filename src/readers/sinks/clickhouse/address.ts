// Parses the URL of a ClickHouse. User and password become headers, which are not logged.

import { readFileSync } from "node:fs";
import { StoreError } from "../../../platform/base/store-error.ts";

export interface ClickHouseAddress {
  /** URL without secrets, such as `http://host:8123`. */
  readonly shown: string;
  readonly isTls: boolean;
  /** An IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** Certificate authorities as PEM; undefined for Node's default. */
  readonly ca: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly settings: Readonly<Record<string, string>>;
}

const defaultPorts = { "http:": 8_123, "https:": 8_443 } as const;
/** Parameters that the sink sets itself. */
const reserved = ["query", "query_id", "user", "password", "database", "default_format", "role"];
const authority = "sslrootcert";
const explicitPort = /^[a-z]+:\/\/[^/?#]*?:(\d+)(?=[/?#]|$)/i;

/** Throws a StoreError that contains neither password nor user. */
export function readAddress(text: string): ClickHouseAddress {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new StoreError(
      "read ClickHouse's URL: it does not have the form https://user:password@host:8443",
    );
  const settings: Record<string, string> = {};
  for (const [name, value] of url.searchParams) {
    if (name === authority) continue;
    if (reserved.includes(name) || !/^[a-z][a-z0-9_]*$/.test(name))
      throw new StoreError(
        `read ClickHouse's URL: the parameter ${name} is not a server setting: user and password go before the host, the database is --database, the file of a certificate authority is ${authority}`,
      );
    settings[name] = value;
  }
  // `URL` drops a port that is the default of its scheme.
  const afterUser = text.replace(/^([a-z]+:\/\/)[^/?#]*@/i, "$1");
  const port = Number(explicitPort.exec(afterUser)?.[1] ?? defaultPorts[url.protocol]);
  const [user, password] = [decode(url.username), decode(url.password)];
  const path = url.pathname.replace(/\/+$/, "");
  return {
    shown: `${url.protocol}//${url.hostname}:${port}${path}`,
    isTls: url.protocol === "https:",
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port,
    path: `${path}/`,
    ca: certificatesOf(url.searchParams.get(authority)),
    headers: {
      ...(user === "" ? {} : { "x-clickhouse-user": user }),
      ...(password === "" ? {} : { "x-clickhouse-key": password }),
    },
    settings,
  };
}

function certificatesOf(file: string | null): string | undefined {
  if (file === null) return undefined;
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new StoreError(`read ${authority} of ClickHouse's URL: ${(error as Error).message}`);
  }
}

function decode(text: string): string {
  let decoded: string;
  try {
    decoded = decodeURIComponent(text);
  } catch {
    throw new StoreError("read ClickHouse's URL: a % in it is not followed by two digits");
  }
  if (!/^[\x21-\x7e]*$/.test(decoded))
    throw new StoreError(
      "read ClickHouse's URL: user and password are sent as headers, so they must be visible ASCII",
    );
  return decoded;
}
