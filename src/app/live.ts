import { bucketName, bucketReader } from "../gateway/projects/registry/bucket.ts";
import { listProjects } from "../gateway/projects/registry/commands.ts";
import { LivePage } from "../live/live-page.ts";
import type { LiveSource } from "../live/snapshot.ts";
import type { TailSource } from "../live/tail.ts";
import { isLoopback, reachable } from "../platform/base/own-host.ts";
import { ownSignature } from "../platform/base/port-access.ts";
import { version } from "../platform/base/version.ts";
import type { NatsAccess } from "../platform/nats/access.ts";
import {
  lanes,
  manyProjects,
  partitionOf,
  rejectedLane,
  streamName,
  subjectOf,
} from "../platform/nats/names.ts";
import { connectOnce, outlastRefusals } from "../platform/nats/sign-in.ts";
import type { Config } from "../platform/settings/config.ts";
import { portAccess } from "./require-token.ts";

interface LiveSources extends Pick<LiveSource, "counts" | "clientWarnings" | "readiness"> {
  readonly publicPort: () => number | undefined;
  readonly tryKey?: string | undefined;
  readonly effectsPort?: (() => number | undefined) | undefined;
}

const streamsMax = 16;
const connectTimeoutMs = 2_000;
const projectsListedMax = 1_000;

export function livePageOf(config: Config, sources: LiveSources): LivePage {
  const { adminHost, subjectPrefix, tlsCert } = config;
  const adminAccess = portAccess(config, "admin");
  const access: NatsAccess = { ...config, natsUrl: config.natsUrl ?? "" };
  const showsEvents =
    config.liveEvents === "auto"
      ? adminAccess.needsToken || isLoopback(adminHost)
      : config.liveEvents === "true";
  return new LivePage({
    ...sources,
    about: () => ({
      version,
      publicPort: sources.publicPort(),
      scheme: tlsCert === undefined ? "http" : "https",
      ...(showsEvents && sources.tryKey !== undefined ? { tryKey: sources.tryKey } : {}),
    }),
    upMs: () => performance.now(),
    monotonicMs: () => performance.now(),
    adminHost,
    access: adminAccess,
    showsEvents,
    effectsUrl: () => effectsUrlOf(config, sources.effectsPort),
    signEffects: ownSignature(config),
    subjectPrefix,
    sourcesOf: (project) => sourcesOf(config, project),
    rejectedStreams: (project) => rejectedStreams(config, project),
    async projectIds(connection, project) {
      // If there are many projects, none is listed. Listing half a million projects takes seconds.
      if (project === undefined) {
        const bucket = await bucketReader(connection, bucketName(subjectPrefix));
        if (((await bucket.state())?.entries ?? 0) > projectsListedMax) return [];
      }
      const projects = await listProjects(connection, { ...config, prefix: subjectPrefix });
      return projects.map(({ id }) => id);
    },
    async connect() {
      const options = { name: "penstock-live", timeoutMs: connectTimeoutMs };
      const connection = await connectOnce(access, options);
      // The connection is retried after a refusal, like the gateway's own connection.
      outlastRefusals(connection);
      return connection;
    },
  });
}

function effectsUrlOf(
  { effectsHost, effectsPort }: Config,
  portBeside: () => number | undefined = () => effectsPort,
): string | undefined {
  const port = portBeside();
  return port === undefined || port === 0 ? undefined : `http://${reachable(effectsHost)}:${port}`;
}

function rejectedStreams(
  { subjectPrefix: prefix, partitions }: Config,
  project: string | undefined,
): string[] {
  const numbers =
    project === undefined
      ? Array.from({ length: Math.min(partitions, streamsMax) }, (_, partition) => partition)
      : [partitionOf(project, partitions)];
  return numbers.map((partition) => streamName(prefix, rejectedLane, partition));
}

function sourcesOf(
  { subjectPrefix: prefix, partitions }: Config,
  project: string | undefined,
): TailSource[] {
  if (project === undefined) {
    const numbers = Array.from(
      { length: Math.min(partitions, streamsMax / lanes.length) },
      (_, partition) => partition,
    );
    return lanes.flatMap((lane) =>
      numbers.map((partition) => ({ stream: streamName(prefix, lane, partition) })),
    );
  }
  const partition = partitionOf(project, partitions);
  return lanes.flatMap((lane) => {
    const stream = streamName(prefix, lane, partition);
    const names = lane === "live" ? [project, manyProjects] : [project];
    return names.map((projectId) => ({
      stream,
      subject: subjectOf(prefix, lane, { partition, projectId }),
    }));
  });
}
