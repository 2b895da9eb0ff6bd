import { lettersApart, nearest, typosMax } from "../base/near-name.ts";
import { isPair } from "../base/pem.ts";
import { tokensOf } from "../base/port-access.ts";
import { flagOf, isOfOpenTelemetry, variableOf } from "../base/setting-name.ts";
import { type Config, type SettingName, settings } from "./config.ts";

export type ConfigResult =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly faults: readonly string[] };

const ofTests = "PENSTOCK_TEST_";
const ownWord = "PENSTOCK";
const prefix = `${ownWord}_`;

/**
 * Reads all settings, and returns the errors of all invalid values. A flag has precedence over a
 * variable. An unknown PENSTOCK_* variable is an error, because a misspelt limit would silently
 * have no effect. An invalid variable of OpenTelemetry is ignored, as its specification requires:
 * a platform may set it for all programs.
 */
export function readConfig(
  env: Readonly<Record<string, string | undefined>>,
  flags: Readonly<Record<string, string | undefined>>,
): ConfigResult {
  const names = Object.keys(settings) as SettingName[];
  const faults: string[] = [];
  const ignored: string[] = [];
  const values: Record<string, unknown> = {};
  for (const name of names) {
    const row = settings[name];
    const fromFlag = flags[name];
    const fromEnv = env[variableOf(name)];
    const isEmpty = fromEnv === "" && isOfOpenTelemetry(name);
    const given = fromFlag ?? (isEmpty ? undefined : fromEnv) ?? row.fallback;
    if (given === undefined) continue;
    try {
      values[name] = row.parse(given);
    } catch (error) {
      const { message } = error as Error;
      if (fromFlag !== undefined) faults.push(`${flagOf(name)}: ${message}`);
      else if (isOfOpenTelemetry(name)) {
        if (row.fallback !== undefined) values[name] = row.parse(row.fallback);
        const instead = row.fallback === undefined ? "" : `, and the default ${row.fallback} used`;
        ignored.push(`${variableOf(name)}: ${message}: it is ignored${instead}`);
      } else faults.push(`${variableOf(name)}: ${message}`);
    }
  }
  if (ignored.length > 0) values["ignored"] = ignored;
  faults.push(...unknownVariables(Object.keys(env), names.map(variableOf)));
  if (faults.length === 0) faults.push(...faultsBetween(values as unknown as Config));
  return faults.length === 0
    ? { ok: true, config: values as unknown as Config }
    : { ok: false, faults };
}

/** The errors do not contain values, because a value may be a secret. */
function unknownVariables(variables: readonly string[], known: readonly string[]): string[] {
  return variables.flatMap((variable) => {
    const own = ownNameOf(variable);
    if (own === undefined || own.startsWith(ofTests) || known.includes(variable)) return [];
    const meant = meantBy(own, known);
    const hint = meant === undefined ? "" : `: did you mean ${meant}?`;
    return [`${variable}: no such setting${hint}`];
  });
}

function ownNameOf(variable: string): string | undefined {
  if (variable.startsWith(prefix)) return variable;
  const word = /^[A-Z0-9]*/.exec(variable)![0];
  const isOurs = word === ownWord || isSlipOfOwnWord(word);
  if (!isOurs && !variable.startsWith(ownWord)) return undefined;
  const rest = isOurs ? variable.slice(word.length + 1) : variable.slice(ownWord.length);
  return rest === "" ? undefined : prefix + rest;
}

function isSlipOfOwnWord(word: string): boolean {
  // A variable such as OPENSTACK_X is not a typo, although only two letters differ.
  const most = word.startsWith("P") ? 2 : 1;
  return lettersApart(word, ownWord, most) <= most;
}

function meantBy(variable: string, known: readonly string[]): string | undefined {
  const given = variable.slice(prefix.length);
  const most = typosMax(given);
  const apart = (name: string): number => {
    const wanted = name.slice(prefix.length);
    return Math.min(
      lettersApart(given, wanted, most),
      lettersApart(inOrder(given), inOrder(wanted), most),
    );
  };
  return nearest(known, apart, most);
}

function inOrder(name: string): string {
  return name.split("_").sort().join("_");
}

const ofServersElsewhere = [
  ["natsCreds", "PENSTOCK_NATS_CREDS"],
  ["natsCa", "PENSTOCK_NATS_CA"],
  ["natsCert", "PENSTOCK_NATS_CERT"],
  ["natsKey", "PENSTOCK_NATS_KEY"],
  ["hubDomain", "PENSTOCK_HUB_DOMAIN"],
] as const;

function faultsBetween(config: Config): string[] {
  const faults: string[] = [];
  if (config.ackTimeoutMs > config.requestTimeoutMs)
    faults.push("PENSTOCK_ACK_TIMEOUT_MS: must not be longer than PENSTOCK_REQUEST_TIMEOUT_MS");
  if (config.inflightBytesMax < config.bodyBytesMax + config.inflatedBytesMax) {
    // With a smaller budget, a request with the largest allowed body would always get a 503.
    faults.push(
      "PENSTOCK_INFLIGHT_BYTES_MAX: must be at least the sum of PENSTOCK_BODY_BYTES_MAX and PENSTOCK_INFLATED_BYTES_MAX",
    );
  }
  return [
    ...faults,
    ...portFaults(config),
    ...tokenFaults(config),
    ...natsFaults(config),
    ...publicPortFaults(config),
  ];
}

const everyAddress = ["0.0.0.0", "::"];

/**
 * Returns an error if both ports are the same. Two ports of 0 may be used together, because 0 means
 * any free port.
 */
function portFaults({ host, port, adminHost, adminPort }: Config): string[] {
  const areOnOneAddress =
    host === adminHost || [host, adminHost].some((name) => everyAddress.includes(name));
  if (port === 0 || port !== adminPort || !areOnOneAddress) return [];
  return [`PENSTOCK_PORT and PENSTOCK_ADMIN_PORT: both are ${port}; they must differ`];
}

function tokenFaults(config: Config): string[] {
  const { adminToken, adminTokenFile, readToken, readTokenFile } = config;
  const faults: string[] = [];
  if (adminToken !== undefined && adminTokenFile !== undefined)
    faults.push("PENSTOCK_ADMIN_TOKEN and PENSTOCK_ADMIN_TOKEN_FILE: set only one of them");
  if (readToken !== undefined && readTokenFile !== undefined)
    faults.push("PENSTOCK_READ_TOKEN and PENSTOCK_READ_TOKEN_FILE: set only one of them");
  const { admin, read } = tokensOf({ ...config, adminAuth: "auto" });
  if (config.adminAuth === "off" && admin.length + read.length > 0)
    faults.push(
      "PENSTOCK_ADMIN_AUTH: must not be off if a token is set, because no request would need it",
    );
  if (read.some((token) => admin.includes(token)))
    faults.push("PENSTOCK_READ_TOKEN: must differ from PENSTOCK_ADMIN_TOKEN");
  return faults;
}

function publicPortFaults({
  tlsCert: cert,
  tlsKey: key,
  trustedProxies = [],
  proxyProtocol,
}: Config): string[] {
  const faults: string[] = [];
  if ((cert === undefined) !== (key === undefined)) {
    faults.push("PENSTOCK_TLS_CERT and PENSTOCK_TLS_KEY: set both or neither");
  } else if (cert !== undefined && key !== undefined && !isPair(cert, key)) {
    faults.push("PENSTOCK_TLS_KEY: is not the private key of the certificate in PENSTOCK_TLS_CERT");
  }
  if (proxyProtocol && trustedProxies.length === 0)
    faults.push(
      "PENSTOCK_PROXY_PROTOCOL: needs PENSTOCK_TRUSTED_PROXIES; otherwise any client could claim any address",
    );
  if (proxyProtocol && cert !== undefined) {
    // A proxy sends its PROXY header before the TLS handshake. If there were one inside of the TLS
    // stream, it would be from the client.
    faults.push("PENSTOCK_PROXY_PROTOCOL: cannot be combined with PENSTOCK_TLS_CERT");
  }
  return faults;
}

function natsFaults(config: Config): string[] {
  const faults: string[] = [];
  const { natsUrl: url, natsCert: cert, natsKey: key } = config;
  if (config.natsPort !== undefined && url !== undefined)
    faults.push(
      "PENSTOCK_NATS_PORT: is the port of an embedded nats-server, and cannot be combined with PENSTOCK_NATS_URL",
    );
  for (const [name, variable] of ofServersElsewhere) {
    if (config[name] !== undefined && url === undefined)
      faults.push(`${variable}: needs PENSTOCK_NATS_URL`);
  }
  if ((cert === undefined) !== (key === undefined)) {
    faults.push("PENSTOCK_NATS_CERT and PENSTOCK_NATS_KEY: set both or neither");
  } else if (cert !== undefined && key !== undefined && !isPair(cert, key)) {
    faults.push(
      "PENSTOCK_NATS_KEY: is not the private key of the certificate in PENSTOCK_NATS_CERT",
    );
  }
  if (
    config.natsToken !== undefined &&
    url === undefined &&
    !/^(?!\$2)[\x21-\x7e]+$/.test(config.natsToken)
  ) {
    // nats-server treats a token that begins with $2 as a bcrypt hash.
    faults.push(
      "PENSTOCK_NATS_TOKEN: for an embedded nats-server, must be printable ASCII without spaces and must not begin with $2",
    );
  }
  const identities = [config.natsToken, config.natsCreds, url?.includes("@") ? url : undefined];
  if (identities.filter((identity) => identity !== undefined).length > 1)
    faults.push(
      "PENSTOCK_NATS_TOKEN, PENSTOCK_NATS_CREDS and a user in PENSTOCK_NATS_URL: set only one",
    );
  return faults;
}
