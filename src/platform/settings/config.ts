import { networksOf } from "../base/addresses.ts";
import { expansionText } from "../base/errors.ts";
import { certificateFile, keyFile, posthogJsFolder, readableFile } from "../base/pem.ts";
import {
  durationMs,
  effectsUrl,
  flag,
  httpUrl,
  jetStreamDomain,
  keyValues,
  natsUrl,
  oneOf,
  portToken,
  portTokenFile,
  ratio,
  type Setting,
  setting,
  subjectPrefix,
  text,
  wholeNumber,
} from "./parsers.ts";

const MIB = 1_048_576;
const collector = "http://127.0.0.1:4318";

/** docs/reference/settings.md is generated from this table, in the same order. */
export const settings = {
  host: setting({
    parse: text,
    fallback: "0.0.0.0",
    unit: "address",
    why: "host of the public port; `up` defaults to 127.0.0.1",
  }),
  port: setting({
    parse: wholeNumber(0, 65_535),
    fallback: "8000",
    unit: "port",
    why: "public port; 0 picks a free port",
  }),
  tlsCert: setting({
    parse: certificateFile,
    fallback: undefined,
    unit: "PEM file",
    why: "TLS certificate of the public port, followed by its chain; reloaded when the file changes",
  }),
  tlsKey: setting({
    parse: keyFile,
    fallback: undefined,
    unit: "PEM file",
    why: "private key of that certificate, without a passphrase",
  }),
  adminHost: setting({
    parse: text,
    fallback: "127.0.0.1",
    unit: "address",
    why: "host of the admin port: metrics, health and the live page",
  }),
  adminPort: setting({
    parse: wholeNumber(0, 65_535),
    fallback: "9464",
    unit: "port",
    why: "admin port; 0 picks a free port",
  }),
  liveEvents: setting({
    parse: oneOf("auto", "true", "false"),
    fallback: "auto",
    unit: "auto/true/false",
    why: "whether the live page on the admin port shows events in addition to counts; auto: only if that port is on loopback or needs a token",
  }),
  adminAuth: setting({
    parse: oneOf("auto", "off"),
    fallback: "auto",
    unit: "auto/off",
    why: "whether the ports of gateway, effects and sink need a token; auto: if a token is set, and always if the port is not on loopback: the process then does not start without one; off: never, for a network that protects the ports",
  }),
  adminToken: setting({
    parse: portToken,
    fallback: undefined,
    unit: "secret",
    why: "token for everything on the ports of gateway, effects and sink, sent as Authorization: Bearer",
  }),
  adminTokenFile: setting({
    parse: portTokenFile,
    fallback: undefined,
    unit: "file",
    why: "file with that token instead; several tokens, one per line, are all valid",
  }),
  readToken: setting({
    parse: portToken,
    fallback: undefined,
    unit: "secret",
    why: "read-only token for numbers, as for Prometheus: metrics, status and usage, but not events, people and groups",
  }),
  readTokenFile: setting({
    parse: portTokenFile,
    fallback: undefined,
    unit: "file",
    why: "file with that token instead; several tokens, one per line, are all valid",
  }),
  natsUrl: setting({
    parse: natsUrl,
    fallback: undefined,
    unit: "url[,url]",
    why: "URLs of the NATS servers; unset: an embedded nats-server",
  }),
  natsCreds: setting({
    parse: readableFile,
    fallback: undefined,
    unit: "file",
    why: "NATS credentials file; all files for NATS are reloaded at each reconnect",
  }),
  natsCa: setting({
    parse: certificateFile,
    fallback: undefined,
    unit: "PEM file",
    why: "CA certificates for the NATS servers; if set, TLS is required; unset: the CAs that Node trusts",
  }),
  natsCert: setting({
    parse: certificateFile,
    fallback: undefined,
    unit: "PEM file",
    why: "client certificate, for NATS servers that require one",
  }),
  natsKey: setting({
    parse: keyFile,
    fallback: undefined,
    unit: "PEM file",
    why: "private key of the client certificate, without a passphrase",
  }),
  natsToken: setting({
    parse: text,
    fallback: undefined,
    unit: "secret",
    why: "NATS token, for an external or the embedded nats-server; unset: the embedded nats-server uses a random token, which is stored in the data folder",
  }),
  hubDomain: setting({
    parse: jetStreamDomain,
    fallback: undefined,
    unit: "name",
    why: "on a leaf node: the JetStream domain of the hub; the gateway then uses the project registry of the hub; see deploy/nats/README.md",
  }),
  natsServer: setting({
    parse: text,
    fallback: undefined,
    unit: "file",
    why: "nats-server binary to embed; unset: the nats-server on PATH if it is 2.10 or newer, else the downloaded nats-server of setup",
  }),
  natsPort: setting({
    parse: wholeNumber(1, 65_535),
    fallback: undefined,
    unit: "port",
    why: "port of the embedded nats-server on 127.0.0.1; unset: its previous port, or a free port at the first start",
  }),
  dataDir: setting({
    parse: text,
    fallback: "./data",
    unit: "folder",
    why: "data folder of the embedded nats-server",
  }),
  subjectPrefix: setting({
    parse: subjectPrefix,
    fallback: "penstock",
    unit: "name",
    why: "first token of subjects, stream names and the bucket name; installations that share a NATS need different prefixes",
  }),
  partitions: setting({
    parse: wholeNumber(1, 1_024),
    fallback: "1",
    unit: "streams per lane",
    why: "number of partitions; each has one stream per lane, with its own leader; a stable hash assigns each project to a partition",
  }),
  replicas: setting({
    parse: wholeNumber(1, 5),
    fallback: "1",
    unit: "copies",
    why: "replicas of each stream, on different nodes; 3 on a cluster of three",
  }),
  streamBytesMax: setting({
    parse: wholeNumber(MIB, 2 ** 50),
    fallback: String(4_096 * MIB),
    unit: "bytes per stream",
    why: "maximum size of a stream; a full stream rejects events (503 store_full); the NATS server must be able to reserve this size for each stream",
  }),
  projectShare: setting({
    parse: wholeNumber(1, 100),
    fallback: "75",
    unit: "per cent of a stream",
    why: "maximum share of a stream per project, in per cent (503 project_full), unless project limit --stream-share sets another share; 100: the whole stream except its last tenth, which all projects share",
  }),
  liveAgeMax: setting({
    parse: durationMs,
    fallback: "7d",
    unit: "s, m, h, d",
    why: "retention of live events",
  }),
  historicalAgeMax: setting({
    parse: durationMs,
    fallback: "30d",
    unit: "s, m, h, d",
    why: "retention of imported events",
  }),
  rejectedBytes: setting({
    parse: wholeNumber(0, 2 ** 50),
    fallback: String(64 * MIB),
    unit: "bytes per stream",
    why: "maximum size of a stream of rejected events, which are retained for penstock rejected; a full stream discards its oldest items; 0: rejected events are only counted",
  }),
  rejectedAgeMax: setting({
    parse: durationMs,
    fallback: "7d",
    unit: "s, m, h, d",
    why: "retention of rejected events",
  }),
  bodyBytesMax: setting({
    parse: wholeNumber(1_024, 256 * MIB),
    fallback: String(20 * MIB),
    unit: "bytes",
    why: "maximum body size as received; SDKs send at most 20 MiB",
  }),
  inflatedBytesMax: setting({
    parse: wholeNumber(1_024, 256 * MIB),
    fallback: String(100 * MIB),
    unit: "bytes",
    why: "maximum body size after decompression, enforced during decompression",
  }),
  connectionsMax: setting({
    parse: wholeNumber(16, 10_000_000),
    fallback: undefined,
    unit: "connections",
    why: "maximum open connections per process; a further connection replaces the oldest idle connection of the address with the most connections; unset: the limit of open files minus 256",
  }),
  addressConnectionsMax: setting({
    parse: wholeNumber(1, 10_000_000),
    fallback: undefined,
    unit: "connections",
    why: "maximum open connections per address (IPv6: per /64), except trusted proxies; unset: a quarter of PENSTOCK_CONNECTIONS_MAX",
  }),
  requestEventsMax: setting({
    parse: wholeNumber(1, 100_000_000),
    fallback: "500000",
    unit: "events",
    why: "maximum events per request; above it, requests get 413 too_many_events",
  }),
  expansionMax: setting({
    parse: wholeNumber(1, 1_000_000),
    fallback: "256",
    unit: "times",
    why: `maximum stored bytes per received byte; a project may exceed it by ${expansionText} per minute, and then gets 503 project_full; a single request that exceeds it by more than ${expansionText} gets 413 expands_too_far`,
  }),
  inflightBytesMax: setting({
    parse: wholeNumber(MIB, 64 * 1_024 * MIB),
    fallback: String(256 * MIB),
    unit: "bytes per process",
    why: "maximum bytes in flight, which are bodies in memory and unacknowledged lines; above it, requests get 503 overloaded; requests of up to 256 KiB may use an additional eighth",
  }),
  frameBytesMax: setting({
    parse: wholeNumber(1_024, 64 * MIB),
    fallback: String(512 * 1_024),
    unit: "bytes",
    why: "size at which a frame of small requests is sent; frames of large requests are sent at 256 KiB; smaller if the max_payload of the server requires it",
  }),
  frameScope: setting({
    parse: oneOf("project", "partition"),
    fallback: "project",
    unit: "project/partition",
    why: "scope in which small live requests share a message: a project, or a partition",
  }),
  atomicBatches: setting({
    parse: flag,
    fallback: "true",
    unit: "true/false",
    why: "whether small live frames of different projects are committed together with one fsync, if nats-server is 2.15 or newer and the gateway measures that this is faster; sets allow_atomic on the streams",
  }),
  framesUnackedMax: setting({
    parse: wholeNumber(1, 65_536),
    fallback: "64",
    unit: "frames per lane",
    why: "maximum unacknowledged frames per process, divided between the streams, with at least 8 per stream; while the window is full, lines are gathered into larger frames",
  }),
  ackTimeoutMs: setting({
    parse: wholeNumber(10, 100_000),
    fallback: "2000",
    unit: "milliseconds",
    why: "time after which a frame without PubAck is resent with the same message id",
  }),
  // This must be less than the duplicate window of the streams (2 minutes), so that JetStream
  // recognizes a repeated frame.
  requestTimeoutMs: setting({
    parse: wholeNumber(10, 100_000),
    // The default is longer than an interruption of the store of five seconds. It is shorter than
    // the timeouts of SDKs, which are 8 s in posthog-ruby and 10 s in most others.
    fallback: "7000",
    unit: "milliseconds",
    why: "maximum time from a complete body to its response (503 timeout); while the store is unreachable, requests of up to 256 KiB wait this long (503 unavailable)",
  }),
  drainDelayMs: setting({
    parse: wholeNumber(0, 600_000),
    fallback: "0",
    unit: "milliseconds",
    why: "time after SIGTERM in which /readyz is 503 and events are still accepted, so that load balancers remove the gateway",
  }),
  drainTimeoutMs: setting({
    parse: wholeNumber(10, 600_000),
    fallback: "20000",
    unit: "milliseconds",
    why: "maximum time from the end of PENSTOCK_DRAIN_DELAY_MS to the last response; the grace period of systemd or Kubernetes must exceed the sum of the two",
  }),
  workers: setting({
    parse: wholeNumber(1, 256),
    fallback: "1",
    unit: "processes",
    why: "number of worker processes on the public port; each uses up to one core, and limits per process apply to each",
  }),
  recordIp: setting({
    parse: flag,
    fallback: "true",
    unit: "true/false",
    why: "whether the client address is stored with each event",
  }),
  trustedProxies: setting({
    parse: networksOf,
    fallback: undefined,
    unit: "CIDR[,CIDR]",
    why: "addresses of proxies whose X-Forwarded-For is trusted; unset: the peer address is the client address",
  }),
  proxyProtocol: setting({
    parse: flag,
    fallback: "false",
    unit: "true/false",
    why: "whether trusted proxies send the PROXY protocol (v2); if set, all trusted proxies must send it",
  }),
  posthogJs: setting({
    parse: posthogJsFolder,
    fallback: undefined,
    unit: "folder/off",
    why: "folder of the npm package posthog-js, whose scripts are served at /static/ for the HTML snippet; off: not served; unset: the one in node_modules or in the npm package",
  }),
  upstreamUrl: setting({
    parse: httpUrl("https://us.i.posthog.com"),
    fallback: undefined,
    unit: "url",
    why: "PostHog server that answers requests for flags, configuration, scripts, surveys and recordings; unset: the gateway answers them itself, with every feature off",
  }),
  upstreamTimeoutMs: setting({
    parse: wholeNumber(100, 120_000),
    fallback: "5000",
    unit: "ms",
    why: "timeout of a request to the upstream; then the gateway returns a cached response, or 503 upstream_unavailable",
  }),
  upstreamRequestsMax: setting({
    parse: wholeNumber(1, 10_000),
    fallback: "128",
    unit: "requests",
    why: "maximum concurrent requests to the upstream per process; further requests get a cached response, or 503 upstream_unavailable",
  }),
  upstreamKeptBytesMax: setting({
    parse: wholeNumber(0, 2 ** 32),
    fallback: "67108864",
    unit: "bytes",
    why: "maximum bytes of upstream responses that each process caches for outages of the upstream: half for flags, a quarter each for scripts and configuration; 0: no cache",
  }),
  upstreamKeptAge: setting({
    parse: durationMs,
    fallback: "1d",
    unit: "duration",
    why: "maximum age of a cached response that is returned while the upstream is unavailable",
  }),
  effectsUrl: setting({
    parse: effectsUrl,
    fallback: "sqlite:",
    unit: "url",
    why: "database of people and groups: sqlite:<file>, sqlite: for effects.sqlite in the data folder, or postgres://user:password@host/database",
  }),
  effectsHost: setting({
    parse: text,
    fallback: "127.0.0.1",
    unit: "address",
    why: "host of the HTTP port of `penstock effects`; anyone who can reach it can read people, groups and usage",
  }),
  effectsPort: setting({
    parse: wholeNumber(0, 65_535),
    fallback: "9465",
    unit: "port",
    why: "HTTP port of `penstock effects`, with its metrics and health; 0 picks a free port",
  }),
  effectsLargeBytesMax: setting({
    parse: wholeNumber(0, 1_073_741_824),
    fallback: "67108864",
    unit: "bytes",
    why: "maximum total bytes, per project, of the properties of people and groups with more than 64 KiB each; a write to such a person or group delays all other projects by milliseconds; rebuild and verify need the same value",
  }),
  sinkTo: setting({
    parse: text,
    fallback: undefined,
    unit: "url",
    why: "target of `penstock sink`; unlike a password in an argument, a password in this variable is not visible in the process list",
  }),
  sinkHost: setting({
    parse: text,
    fallback: "127.0.0.1",
    unit: "address",
    why: "host of the metrics and health of `penstock sink`",
  }),
  sinkPort: setting({
    parse: wholeNumber(0, 65_535),
    fallback: "9466",
    unit: "port",
    why: "port of the metrics and health of `penstock sink`; 0 picks a free port",
  }),
  sinkBatchEvents: setting({
    parse: wholeNumber(1, 1_000_000),
    fallback: "10000",
    unit: "events",
    why: "maximum events per commit of `penstock sink`; PENSTOCK_SINK_BATCH_BYTES and PENSTOCK_SINK_BATCH_AGE_MS also end a batch",
  }),
  sinkBatchBytes: setting({
    parse: wholeNumber(65_536, 268_435_456),
    fallback: "16777216",
    unit: "bytes",
    why: "maximum bytes of messages per batch of `penstock sink`, which holds up to four batches; a single message may exceed it",
  }),
  sinkBatchAgeMs: setting({
    parse: wholeNumber(1, 60_000),
    fallback: "1000",
    unit: "milliseconds",
    why: "maximum time that the first event of a batch of `penstock sink` waits for other events; bounds the delay of an event",
  }),
  sinkFileBytes: setting({
    parse: wholeNumber(65_536, 68_719_476_736),
    fallback: "536870912",
    unit: "bytes",
    why: "uncompressed bytes of events at which `penstock sink parquet` writes files; the sink needs up to three times as much disk space",
  }),
  sinkFileSeconds: setting({
    parse: wholeNumber(1, 86_400),
    fallback: "600",
    unit: "seconds",
    why: "age of the oldest event that is not in a file yet, at which `penstock sink parquet` writes files; bounds the delay of an event. Streams must retain events for longer",
  }),
  logLevel: setting({
    parse: oneOf("trace", "debug", "info", "warn", "error", "fatal"),
    fallback: "info",
    unit: "level",
    why: "log level: trace, debug, info, warn, error or fatal; logs are JSON lines on standard error",
  }),
  otelExporterOtlpEndpoint: setting({
    parse: httpUrl(collector),
    fallback: undefined,
    unit: "url",
    why: `OTLP receiver over HTTP, such as ${collector}; turns on the export of traces to <url>/v1/traces and of metrics to <url>/v1/metrics`,
  }),
  otelExporterOtlpTracesEndpoint: setting({
    parse: httpUrl(`${collector}/v1/traces`),
    fallback: undefined,
    unit: "url",
    why: "complete URL for traces; turns on their export alone",
  }),
  otelExporterOtlpMetricsEndpoint: setting({
    parse: httpUrl(`${collector}/v1/metrics`),
    fallback: undefined,
    unit: "url",
    why: "complete URL for metrics; turns on their export alone",
  }),
  otelExporterOtlpProtocol: setting({
    parse: oneOf("http/protobuf"),
    fallback: "http/protobuf",
    unit: "protocol",
    why: "protocol of the export; gRPC is not supported",
  }),
  otelExporterOtlpHeaders: setting({
    parse: keyValues,
    fallback: undefined,
    unit: "key=value[,key=value]",
    why: "headers of the export, such as a token; values are percent-encoded",
  }),
  otelServiceName: setting({
    parse: text,
    fallback: undefined,
    unit: "name",
    why: "service.name of the export; unset: penstock, penstock-effects or penstock-sink",
  }),
  otelResourceAttributes: setting({
    parse: keyValues,
    fallback: undefined,
    unit: "key=value[,key=value]",
    why: "further attributes of the resource; values are percent-encoded",
  }),
  otelTracesSampler: setting({
    parse: oneOf(
      "always_on",
      "always_off",
      "traceidratio",
      "parentbased_always_on",
      "parentbased_always_off",
      "parentbased_traceidratio",
    ),
    fallback: "parentbased_traceidratio",
    unit: "sampler",
    why: "which requests are traced, at most 100 per second and process: always_on, always_off or traceidratio; with the prefix parentbased_, a traceparent of the client decides for its request",
  }),
  otelTracesSamplerArg: setting({
    parse: ratio,
    fallback: "0.01",
    unit: "ratio",
    why: "share of requests that traceidratio traces, from 0 to 1",
  }),
  otelMetricExportInterval: setting({
    parse: wholeNumber(100, 86_400_000),
    fallback: "60000",
    unit: "milliseconds",
    why: "interval between two exports of metrics",
  }),
  otelSdkDisabled: setting({
    parse: flag,
    fallback: "false",
    unit: "true/false",
    why: "turns off the export even if an endpoint is set",
  }),
} as const;

export type SettingName = keyof typeof settings;

type ValueOf<Row> =
  Row extends Setting<infer T, infer Fallback>
    ? undefined extends Fallback
      ? T | undefined
      : T
    : never;

export type Config = {
  readonly [Name in SettingName]: ValueOf<(typeof settings)[Name]>;
} & {
  /** Errors of OpenTelemetry's variables, whose values were ignored; may be absent. */
  readonly ignored?: readonly string[];
};
