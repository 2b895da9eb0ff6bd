import { isPair } from "../base/pem.ts";
import type { Config } from "./config.ts";

const ofServersElsewhere = [
  ["natsCreds", "PENSTOCK_NATS_CREDS"],
  ["natsCa", "PENSTOCK_NATS_CA"],
  ["natsCert", "PENSTOCK_NATS_CERT"],
  ["natsKey", "PENSTOCK_NATS_KEY"],
  ["hubDomain", "PENSTOCK_HUB_DOMAIN"],
] as const;

/** Returns a message for each invalid combination of valid settings. */
export function faultsBetween(config: Config): string[] {
  const faults: string[] = [];
  if (config.ackTimeoutMs > config.requestTimeoutMs) {
    faults.push("PENSTOCK_ACK_TIMEOUT_MS: must not be longer than PENSTOCK_REQUEST_TIMEOUT_MS");
  }
  if (config.inflightBytesMax < config.bodyBytesMax + config.inflatedBytesMax) {
    // With a smaller budget, a body within its limits would always get a 503.
    faults.push(
      "PENSTOCK_INFLIGHT_BYTES_MAX: must be at least the sum of PENSTOCK_BODY_BYTES_MAX and PENSTOCK_INFLATED_BYTES_MAX",
    );
  }
  return [...faults, ...portFaults(config), ...natsFaults(config), ...publicPortFaults(config)];
}

const everyAddress = ["0.0.0.0", "::"];

/** Two ports that are 0 are valid, because each becomes a free port. */
function portFaults({ host, port, adminHost, adminPort }: Config): string[] {
  const areOnOneAddress =
    host === adminHost || [host, adminHost].some((name) => everyAddress.includes(name));
  if (port === 0 || port !== adminPort || !areOnOneAddress) return [];
  return [`PENSTOCK_PORT and PENSTOCK_ADMIN_PORT: both are ${port}; they must differ`];
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
  if (proxyProtocol && trustedProxies.length === 0) {
    faults.push(
      "PENSTOCK_PROXY_PROTOCOL: needs PENSTOCK_TRUSTED_PROXIES; without it any client could claim any address",
    );
  }
  if (proxyProtocol && cert !== undefined) {
    // A proxy sends its PROXY header before the TLS handshake. A header inside the TLS stream would
    // come from the client.
    faults.push("PENSTOCK_PROXY_PROTOCOL: cannot be combined with PENSTOCK_TLS_CERT");
  }
  return faults;
}

function natsFaults(config: Config): string[] {
  const faults: string[] = [];
  const { natsUrl: url, natsCert: cert, natsKey: key } = config;
  if (config.natsPort !== undefined && url !== undefined) {
    faults.push(
      "PENSTOCK_NATS_PORT: is the port of an embedded nats-server, and cannot be combined with PENSTOCK_NATS_URL",
    );
  }
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
  if (identities.filter((identity) => identity !== undefined).length > 1) {
    faults.push(
      "PENSTOCK_NATS_TOKEN, PENSTOCK_NATS_CREDS and a user in PENSTOCK_NATS_URL: set only one of them",
    );
  }
  return faults;
}
