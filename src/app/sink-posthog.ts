import { createReadStream } from "node:fs";
import type { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { NatsConnection } from "@nats-io/nats-core";
import { type CommandContext, CommandError, usageExitCode } from "../commands/context.ts";
import { listProjects } from "../gateway/projects/registry/commands.ts";
import type { Lane } from "../platform/base/lane.ts";
import { createLog } from "../platform/base/log.ts";
import type { Config } from "../platform/settings/config.ts";
import { PosthogTarget } from "../readers/sinks/posthog/posthog-target.ts";
import { RegistryKeys } from "../readers/sinks/posthog/project-keys.ts";
import { asideFile } from "../readers/sinks/posthog/state-folder.ts";
import { isHere } from "../readers/sinks/posthog/upstream.ts";
import { orUsageFault } from "./options.ts";
import { type NamedProjects, runSink } from "./sink.ts";

interface PosthogRun {
  readonly url: string;
  readonly folder: string;
  /** The API keys by project. They are used instead of the keys in the registry. */
  readonly keys: ReadonlyMap<string, string>;
  readonly acceptRefused: boolean;
  readonly projects: readonly string[] | undefined;
  readonly named: readonly NamedProjects[];
  readonly lanes: readonly Lane[] | undefined;
  readonly acceptExpired: boolean;
}

export async function runPosthogSink(
  config: Config,
  context: Pick<CommandContext, "host" | "stop">,
  { url, folder, keys, acceptRefused, ...reading }: PosthogRun,
): Promise<void> {
  let nats: NatsConnection | undefined;
  const registry = new RegistryKeys(
    () => newestKeys(nats, config),
    () => performance.now(),
  );
  const keyOf = async (project: string) => keys.get(project) ?? (await registry.keyOf(project));
  const log = createLog(config.logLevel);
  const { pid } = context.host;
  const target = orUsageFault(
    () => new PosthogTarget({ url, folder, pid, keyOf, acceptRefused, log }),
  );
  if (await isHere(url, config.port))
    throw new CommandError(
      `${target.shown} is the gateway on this host (PENSTOCK_PORT is ${config.port}): the gateway would store each event again, and the sink would send it again, without end. Give another target (argument or PENSTOCK_SINK_TO)`,
      usageExitCode,
    );
  const connected = (connection: NatsConnection) => {
    nats = connection;
  };
  const named = [...reading.named, { flag: "--key", ids: [...keys.keys()] }];
  await runSink(config, context, { ...reading, named, target, connected });
}

export async function printAside(folder: string, stdout: Writable): Promise<void> {
  const file = asideFile(folder);
  try {
    await pipeline(createReadStream(file), stdout, { end: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw new CommandError(`cannot read ${file}: ${(error as Error).message}`);
  }
}

async function newestKeys(
  connection: NatsConnection | undefined,
  { subjectPrefix: prefix, replicas, hubDomain }: Config,
): Promise<ReadonlyMap<string, string>> {
  if (connection === undefined) throw new Error("not connected to NATS");
  const projects = await listProjects(connection, { prefix, replicas, hubDomain });
  return new Map(
    projects.flatMap(({ id, keys }) => {
      const newest = keys.at(-1);
      return newest === undefined ? [] : [[id, newest] as const];
    }),
  );
}
