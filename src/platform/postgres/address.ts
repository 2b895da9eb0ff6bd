import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import type { ClientConfig } from "pg";
import { StoreError } from "../base/store-error.ts";

export interface PostgresAddress {
  readonly shown: string;
  readonly config: ClientConfig;
  readonly mayBePlain: boolean;
}

const sslModes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] as const;
type SslMode = (typeof sslModes)[number];

const known = ["sslmode", "sslrootcert", "sslcert", "sslkey", "host", "application_name"];
const defaultPort = 5432;

export function readAddress(text: string): PostgresAddress {
  const url = parse(text);
  const parameters = url.searchParams;
  for (const name of parameters.keys()) {
    if (!known.includes(name))
      throw new StoreError(
        `cannot read the database's URL: unknown parameter ${name}: use ${known.join(", ")}`,
      );
  }
  const host =
    parameters.get("host") ?? (decode(url.hostname).replace(/^\[|\]$/g, "") || "localhost");
  const port = url.port === "" ? defaultPort : Number(url.port);
  const user = decode(url.username);
  const database = decode(url.pathname.slice(1)) || user;
  const password = decode(url.password);
  const isSocket = host.startsWith("/");
  const mode = isSocket ? "disable" : sslModeOf(parameters);
  return {
    shown: isSocket ? `${host}/${database}` : `${bracketed(host)}:${port}/${database}`,
    config: {
      host,
      port,
      ...(user === "" ? {} : { user }),
      ...(database === "" ? {} : { database }),
      ...(password === "" ? {} : { password }),
      ssl: mode === "disable" || mode === "allow" ? false : tlsOf(mode, parameters),
    },
    mayBePlain: mode === "prefer",
  };
}

function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/** Does not throw the error of Node's `URL`, because its message contains the password. */
function parse(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol))
    throw new StoreError(
      "cannot read the database's URL: it must have the form postgres://user:password@host:5432/database",
    );
  return url;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new StoreError("cannot read the database's URL: a % in it is not followed by two digits");
  }
}

function sslModeOf(parameters: URLSearchParams): SslMode {
  const given = parameters.get("sslmode") ?? "prefer";
  const mode = sslModes.find((one) => one === given);
  if (mode === undefined)
    throw new StoreError(
      `cannot read the database's URL: sslmode must be one of ${sslModes.join(", ")}`,
    );
  return mode;
}

/** As in libpq, `require` verifies the server only if a root certificate is set. */
function tlsOf(mode: SslMode, parameters: URLSearchParams): ConnectionOptions {
  const ca = fileOf(parameters, "sslrootcert");
  const cert = fileOf(parameters, "sslcert");
  const key = fileOf(parameters, "sslkey");
  const asks = mode.startsWith("verify") || (mode === "require" && ca !== undefined);
  return {
    rejectUnauthorized: asks,
    ...(asks && mode !== "verify-full" ? { checkServerIdentity: () => undefined } : {}),
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
}

function fileOf(parameters: URLSearchParams, name: string): string | undefined {
  const file = parameters.get(name);
  if (file === null || file === "system") return undefined;
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new StoreError(`cannot read ${name} of the database's URL: ${(error as Error).message}`);
  }
}
