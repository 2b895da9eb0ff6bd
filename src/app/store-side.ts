import { randomBytes } from "node:crypto";
import { storedEvents } from "../gateway/projects/registry/loss-mark.ts";
import { openRegistry, type Registry } from "../gateway/projects/registry/registry.ts";
import { UsageWriter } from "../gateway/projects/usage/usage.ts";
import { Streams } from "../gateway/streams/ensure.ts";
import { StreamWatch } from "../gateway/streams/watch.ts";
import { connectNats, type NatsLink } from "../platform/nats/link.ts";
import { StreamStates } from "../platform/nats/readiness.ts";
import { logVersionFaults } from "../platform/nats/versions.ts";
import type { GatewayBase } from "./gateway-base.ts";

export interface StoreSide {
  readonly link: NatsLink;
  readonly streams: StreamStates;
  readonly watch: StreamWatch;
  readonly registry: Registry;
  readonly processId: string;
}

const processIdBytes = 12;

export async function openStoreSide(base: GatewayBase): Promise<StoreSide> {
  const { config, log, signal, worker, clock, metrics, status, closers } = base;
  const link = await connectNats({
    access: { ...config, natsUrl: config.natsUrl ?? "" },
    log,
    signal,
  });
  closers.add(() => link.close());
  status.isConnected = () => link.connected;
  if (worker !== "joining") logVersionFaults(link, config.replicas, log);
  status.setBusy("checking the streams");
  await new Streams({ link, settings: config, log }).ensure(signal);
  const streams = new StreamStates(config.subjectPrefix, config.partitions);
  const { monotonicMs } = clock;
  const watch = new StreamWatch({ link, settings: config, streams, metrics, log, monotonicMs });
  closers.add(() => watch.close());
  status.setBusy("reading the project registry");
  const registry = await readRegistry(base, link);
  await watch.askedOnce;
  const processId = randomBytes(processIdBytes).toString("base64url");
  const usage = new UsageWriter({
    connection: link.connection,
    prefix: config.subjectPrefix,
    replicas: config.replicas,
    processId,
    meters: () => registry.meters(),
    exists: (projectId) => registry.has(projectId),
    log,
    wallMs: clock.wallMs,
  });
  closers.add(() => usage.close());
  return { link, streams, watch, registry, processId };
}

async function readRegistry(
  { config, log, signal, status, clock, closers, registryPollMs: pollMs }: GatewayBase,
  link: NatsLink,
): Promise<Registry> {
  const { connection } = link;
  const { subjectPrefix: prefix, replicas, hubDomain } = config;
  const registry = await openRegistry({
    connection,
    prefix,
    replicas,
    hubDomain,
    log,
    signal,
    pollMs,
    wallMs: () => clock.wallMs(),
    refusal: (error) => link.refusal(error),
    // If the streams contain events of a missing project, the registry has lost projects. This
    // cannot be checked on a leaf node, because its registry is on the hub.
    ...(hubDomain === undefined ? { storedEvents: () => storedEvents(connection, prefix) } : {}),
  });
  status.warnings = () => registry.warnings;
  closers.add(() => registry.close());
  return registry;
}
