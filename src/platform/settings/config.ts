// The settings: one table with name, unit, default and reason, and the type of the values that it
// gives. read-config.ts reads them, from PENSTOCK_* variables and from flags of the same names.

import { expansionText } from "../base/expansion.ts";
import { networksOf } from "../base/networks.ts";
import { certificateFile, keyFile, readableFile } from "../base/pem.ts";
import { posthogJsFolder } from "../base/posthog-js.ts";
import { effectsSettings } from "./effects-settings.ts";
import {
  durationMs,
  flag,
  jetStreamDomain,
  natsUrl,
  oneOf,
  subjectPrefix,
  text,
  wholeNumber,
} from "./parsers.ts";
import { type Setting, setting } from "./setting.ts";
import { sinkSettings } from "./sink-settings.ts";
import { upstreamSettings } from "./upstream-settings.ts";

const MIB = 1_048_576;

/** The table. docs/reference/settings.md is generated from it, in its order. */
export const settings = {
  host: setting({
    parse: text,
    fallback: "0.0.0.0",
    unit: "address",
    why: "where the public endpoints listen; `up` takes 127.0.0.1 unless told",
  }),
  port: setting({
    parse: wholeNumber(0, 65_535),
    fallback: "8000",
    unit: "port",
    why: "where the public endpoints listen; 0 takes any free port",
  }),
  tlsCert: setting({
    parse: certificateFile,
    fallback: undefined,
    unit: "PEM file",
    why: "the public port speaks HTTPS with this certificate (chain behind it); read again when it changes",
  }),
  tlsKey: setting({
    parse: keyFile,
    fallback: undefined,
    unit: "PEM file",
    why: "the key of that certificate, without a passphrase",
  }),
  adminHost: setting({
    parse: text,
    fallback: "127.0.0.1",
    unit: "address",
    why: "where metrics, health and the live page listen; on loopback unless you say otherwise",
  }),
  adminPort: setting({
    parse: wholeNumber(0, 65_535),
    fallback: "9464",
    unit: "port",
    why: "where metrics, health and the live page listen; 0 takes any free port",
  }),
  liveEvents: setting({
    parse: oneOf("auto", "true", "false"),
    fallback: "auto",
    unit: "auto/true/false",
    why: "whether the live page on the admin port shows events, not only counts; auto: while that is on loopback",
  }),
  natsUrl: setting({
    parse: natsUrl,
    fallback: undefined,
    unit: "url[,url]",
    why: "the NATS servers; unset: an embedded nats-server",
  }),
  natsCreds: setting({
    parse: readableFile,
    fallback: undefined,
    unit: "file",
    why: "a NATS credentials file; read again at each reconnect, like the other files for NATS",
  }),
  natsCa: setting({
    parse: certificateFile,
    fallback: undefined,
    unit: "PEM file",
    why: "whose certificates the NATS servers must have; unset: what Node trusts. Set: TLS or nothing",
  }),
  natsCert: setting({
    parse: certificateFile,
    fallback: undefined,
    unit: "PEM file",
    why: "our own certificate, for NATS servers that ask for one",
  }),
  natsKey: setting({
    parse: keyFile,
    fallback: undefined,
    unit: "PEM file",
    why: "the key of our own certificate, without a passphrase",
  }),
  natsToken: setting({
    parse: text,
    fallback: undefined,
    unit: "secret",
    why: "a NATS token; of an embedded nats-server the one it asks for, unset: a random one, kept in the data folder",
  }),
  hubDomain: setting({
    parse: jetStreamDomain,
    fallback: undefined,
    unit: "name",
    why: "beside a leaf node: the JetStream domain of the hub, whose projects count here; see deploy/nats/README.md",
  }),
  natsServer: setting({
    parse: text,
    fallback: undefined,
    unit: "file",
    why: "the nats-server to embed; unset: the one on PATH if 2.10 or newer, else the one set-up fetched",
  }),
  natsPort: setting({
    parse: wholeNumber(1, 65_535),
    fallback: undefined,
    unit: "port",
    why: "where the embedded nats-server listens, on 127.0.0.1; unset: where it did at its last start, at first a free one",
  }),
  dataDir: setting({
    parse: text,
    fallback: "./data",
    unit: "folder",
    why: "where the embedded nats-server keeps its data",
  }),
  subjectPrefix: setting({
    parse: subjectPrefix,
    fallback: "penstock",
    unit: "name",
    why: "first token of the subjects, and of the names of streams and bucket: several gateways can share one NATS",
  }),
  partitions: setting({
    parse: wholeNumber(1, 1_024),
    fallback: "1",
    unit: "streams per lane",
    why: "each is a stream with a leader of its own; projects are spread over them by a stable hash",
  }),
  replicas: setting({
    parse: wholeNumber(1, 5),
    fallback: "1",
    unit: "copies",
    why: "of each stream, on as many nodes; 3 on a cluster of three",
  }),
  streamBytesMax: setting({
    parse: wholeNumber(MIB, 2 ** 50),
    fallback: String(4_096 * MIB),
    unit: "bytes per stream",
    why: "a full stream refuses (503 store_full); the server must have this much room to promise",
  }),
  projectShare: setting({
    parse: wholeNumber(1, 100),
    fallback: "75",
    unit: "per cent of a stream",
    why: "what one project may fill of a stream (503 project_full), unless it has a share of its own (project limit --stream-share); 100: all but the reserve",
  }),
  liveAgeMax: setting({
    parse: durationMs,
    fallback: "7d",
    unit: "s, m, h, d",
    why: "live events leave after this",
  }),
  historicalAgeMax: setting({
    parse: durationMs,
    fallback: "30d",
    unit: "s, m, h, d",
    why: "imported events leave after this",
  }),
  bodyBytesMax: setting({
    parse: wholeNumber(1_024, 256 * MIB),
    fallback: String(20 * MIB),
    unit: "bytes",
    why: "a body on the wire; SDKs keep to 20 MiB",
  }),
  inflatedBytesMax: setting({
    parse: wholeNumber(1_024, 256 * MIB),
    fallback: String(100 * MIB),
    unit: "bytes",
    why: "a body after decompression, enforced while inflating",
  }),
  connectionsMax: setting({
    parse: wholeNumber(16, 10_000_000),
    fallback: undefined,
    unit: "connections",
    why: "open at a time in each process; one more closes the oldest idle one of the address that holds most; unset: the limit of open files less 256",
  }),
  addressConnectionsMax: setting({
    parse: wholeNumber(1, 10_000_000),
    fallback: undefined,
    unit: "connections",
    why: "open at a time from one address (IPv6: one /64), trusted proxies aside; unset: a quarter of PENSTOCK_CONNECTIONS_MAX",
  }),
  requestEventsMax: setting({
    parse: wholeNumber(1, 100_000_000),
    fallback: "500000",
    unit: "events",
    why: "events of one request; past it 413 too_many_events",
  }),
  expansionMax: setting({
    parse: wholeNumber(1, 1_000_000),
    fallback: "256",
    unit: "times",
    why: `bytes that a request may store for each byte that was sent; beyond that each project may store ${expansionText} a minute (503 project_full), and one request no more at all (413 expands_too_far)`,
  }),
  inflightBytesMax: setting({
    parse: wholeNumber(MIB, 64 * 1_024 * MIB),
    fallback: String(256 * MIB),
    unit: "bytes per process",
    why: "bodies in hand and lines not yet acknowledged; past it requests are refused (503 overloaded), those of up to 256 KiB past an eighth more",
  }),
  frameBytesMax: setting({
    parse: wholeNumber(1_024, 64 * MIB),
    fallback: String(512 * 1_024),
    unit: "bytes",
    why: "a frame leaves when this full, one of a large request at 256 KiB; less if the server's max_payload asks",
  }),
  frameScope: setting({
    parse: oneOf("project", "partition"),
    fallback: "project",
    unit: "project/partition",
    why: "whose small live requests share a message: those of one project, or of all in a partition",
  }),
  atomicBatches: setting({
    parse: flag,
    fallback: "true",
    unit: "true/false",
    why: "where nats-server is 2.15 or newer and it is faster, the small live frames of many projects are committed together, with one fsync; the gateway then sets allow_atomic on its streams",
  }),
  framesUnackedMax: setting({
    parse: wholeNumber(1, 65_536),
    fallback: "64",
    unit: "frames per lane",
    why: "the window of a process, of which each stream has its part, 8 at least: while that is full, lines gather",
  }),
  ackTimeoutMs: setting({
    parse: wholeNumber(10, 100_000),
    fallback: "2000",
    unit: "milliseconds",
    why: "a frame without PubAck is sent again, under the same message id",
  }),
  // Shorter than the streams' duplicate window of 2 minutes: when a frame is sent again, the stream
  // must still know its message id.
  requestTimeoutMs: setting({
    parse: wholeNumber(10, 100_000),
    // Rides out a stop of the store of five seconds, and answers before the clients of SDKs give up:
    // posthog-ruby waits for 8 s, most others for 10 s.
    fallback: "7000",
    unit: "milliseconds",
    why: "from a request's whole body to its answer; while the store is away, a request of up to 256 KiB waits this long for it; then 503 timeout or unavailable",
  }),
  drainDelayMs: setting({
    parse: wholeNumber(0, 600_000),
    fallback: "0",
    unit: "milliseconds",
    why: "from SIGTERM on, /readyz is 503 and events are still taken for so long: time for load balancers to look elsewhere",
  }),
  drainTimeoutMs: setting({
    parse: wholeNumber(10, 600_000),
    fallback: "20000",
    unit: "milliseconds",
    why: "from the end of that delay to the last answer; keep the supervisor's grace period longer than both",
  }),
  workers: setting({
    parse: wholeNumber(1, 256),
    fallback: "1",
    unit: "processes",
    why: "each takes connections on the one port and uses up to one core; limits per process hold for each",
  }),
  recordIp: setting({
    parse: flag,
    fallback: "true",
    unit: "true/false",
    why: "store the client's address",
  }),
  trustedProxies: setting({
    parse: networksOf,
    fallback: undefined,
    unit: "CIDR[,CIDR]",
    why: "proxies whose X-Forwarded-For is believed; unset: the client is whoever connects",
  }),
  proxyProtocol: setting({
    parse: flag,
    fallback: "false",
    unit: "true/false",
    why: "believe the PROXY protocol (v2) of the trusted proxies; all of them that connect must then speak it",
  }),
  posthogJs: setting({
    parse: posthogJsFolder,
    fallback: undefined,
    unit: "folder/off",
    why: "the npm package posthog-js, whose scripts are served at /static/ for pages with the HTML snippet; off: none; unset: the one in node_modules, else that of the bundle",
  }),
  ...upstreamSettings,
  ...effectsSettings,
  ...sinkSettings,
  logLevel: setting({
    parse: oneOf("trace", "debug", "info", "warn", "error", "fatal"),
    fallback: "info",
    unit: "level",
    why: "trace, debug, info, warn, error or fatal; logs are JSON lines on standard error",
  }),
} as const;

export type SettingName = keyof typeof settings;

type ValueOf<Row> =
  Row extends Setting<infer T, infer Fallback>
    ? undefined extends Fallback
      ? T | undefined
      : T
    : never;

/** The settings as values; durations are milliseconds. */
export type Config = {
  readonly [Name in SettingName]: ValueOf<(typeof settings)[Name]>;
};

/** The variable of a setting: `bodyBytesMax` becomes `PENSTOCK_BODY_BYTES_MAX`. */
export function variableOf(name: string): string {
  return `PENSTOCK_${name.replace(/[A-Z]/g, "_$&").toUpperCase()}`;
}

/** The flag of a setting: `bodyBytesMax` becomes `--body-bytes-max`. */
export function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, "-$&").toLowerCase()}`;
}
