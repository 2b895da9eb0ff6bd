// `serve` and `up`: brings up NATS if it is to be embedded, then the gateway, in this process or in
// workers, and takes both down in the reverse order when told to stop.

import { resolve } from "node:path";
import { createLog, type Log } from "../base/log.ts";
import type { Project } from "../base/types.ts";
import { calledAs, shellWord } from "../cli/called-as.ts";
import { type CommandContext, CommandError, usageExitCode } from "../cli/context.ts";
import { openNats } from "../cli/nats.ts";
import { findNatsServer } from "../embedded/find-nats-server.ts";
import { type EmbeddedNats, startEmbeddedNats } from "../embedded/nats-server.ts";
import { lanes } from "../nats/names.ts";
import { ensureDemoProject } from "../projects/registry/commands.ts";
import type { Config } from "../settings/config.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { startWorkers } from "./workers.ts";

type Running = Pick<Gateway, "port" | "adminPort" | "close">;

/** Runs until `context.stop`; fulfilled when everything is down. */
export async function serve(config: Config, context: CommandContext): Promise<void> {
  await run(config, context, async () => undefined);
}

/**
 * As serve, but always with an embedded NATS and with a project to try the gateway with. Prints how
 * to do that.
 */
export async function up(config: Config, context: CommandContext): Promise<void> {
  if (config.natsUrl !== undefined) {
    throw new CommandError(
      "`up` brings a NATS of its own: unset PENSTOCK_NATS_URL, or use `serve`",
      usageExitCode,
    );
  }
  await run(config, context, demoProject);
}

async function run(
  config: Config,
  context: CommandContext,
  prepare: (effective: Config, log: Log) => Promise<Project | undefined>,
): Promise<void> {
  const log = createLog(config.logLevel);
  const embedded = config.natsUrl === undefined ? await embed(config, context, log) : undefined;
  let gateway: Running | undefined;
  try {
    const effective =
      embedded === undefined
        ? config
        : { ...config, natsUrl: embedded.url, natsToken: embedded.token };
    const project = await prepare(effective, log);
    const tryKey = project?.keys.at(-1);
    gateway =
      config.workers === 1
        ? await startGateway(effective, { log, signal: context.stop, tryKey })
        : await startWorkers(effective, context, { log, tryKey });
    if (project !== undefined)
      context.stdout.write(welcome({ config, gateway, project, program: calledHere(context) }));
    await stopped(context.stop);
    log.info({}, "stopping");
  } finally {
    await gateway?.close();
    await embedded?.close();
  }
}

async function embed(
  config: Config,
  { env, host, stop }: CommandContext,
  log: Log,
): Promise<EmbeddedNats> {
  return await startEmbeddedNats({
    dataDir: config.dataDir,
    binary: findNatsServer({ named: config.natsServer, path: env["PATH"] }),
    streamBytesTotal: config.streamBytesMax * config.partitions * lanes.length,
    host,
    log,
    port: config.natsPort,
    token: config.natsToken,
    signal: stop,
  });
}

async function demoProject(effective: Config, log: Log): Promise<Project | undefined> {
  const connection = await openNats({
    natsUrl: effective.natsUrl ?? "",
    natsToken: effective.natsToken,
  });
  try {
    const place = { prefix: effective.subjectPrefix, replicas: effective.replicas };
    const project = await ensureDemoProject(connection, place);
    if (project === undefined)
      log.warn({}, "the registry has lost projects: none is added to try things with");
    return project;
  } finally {
    await connection.close();
  }
}

function stopped(stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (stop.aborted) resolve();
    else stop.addEventListener("abort", () => resolve(), { once: true });
  });
}

function calledHere({ mainFile, env }: CommandContext): string {
  return calledAs({ mainFile, workingFolder: resolve("."), npmFolder: env["INIT_CWD"] });
}

interface Welcome {
  readonly config: Config;
  readonly gateway: Running;
  readonly project: Project;
  /** The command by which a person calls this program. */
  readonly program: string;
}

function welcome({ config, gateway, project, program }: Welcome): string {
  const address = `${config.tlsCert === undefined ? "http" : "https"}://${reachable(config.host)}:${gateway.port}`;
  const admin = `http://${reachable(config.adminHost)}:${gateway.adminPort}`;
  const key = project.keys.at(-1) ?? "";
  const event = JSON.stringify({ api_key: key, event: "hello", distinct_id: "me" });
  const dataDir = config.dataDir === "./data" ? "" : ` --data-dir ${shellWord(config.dataDir)}`;
  const prefix =
    config.subjectPrefix === "penstock" ? "" : ` --subject-prefix ${config.subjectPrefix}`;
  return `
Penstock is up at ${address}
  metrics and health   ${admin}/metrics, /readyz
  project ${project.id}, key   ${key}

Send an event:
  curl -i ${address}/capture/ -H 'Content-Type: application/json' -d ${shellWord(event)}

Watch events as they are stored, in a browser or here:
  ${admin}/
  ${program} tail${dataDir}${prefix}

`;
}

function reachable(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}
