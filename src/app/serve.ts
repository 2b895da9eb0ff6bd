// The commands `serve` and `up`. They start the embedded NATS server if the settings contain no
// NATS URL. Then they start the gateway, either in this process or in workers.

import { once } from "node:events";
import { resolve } from "node:path";
import { calledAs, isDefaultDataDir, shellWord } from "../commands/called-as.ts";
import { type CommandContext, CommandError, usageExitCode } from "../commands/context.ts";
import type { Project } from "../gateway/projects/project.ts";
import { demoKey, ensureDemoProject } from "../gateway/projects/registry/commands.ts";
import { createLog, type Log } from "../platform/base/log.ts";
import { isLoopback, reachable } from "../platform/base/own-host.ts";
import type { EmbeddedNats } from "../platform/embedded/nats-server.ts";
import { connectNats } from "../platform/nats/link.ts";
import type { Config } from "../platform/settings/config.ts";
import { requireNamedFolder } from "./effects.ts";
import {
  defaultEffectsPort,
  type EffectsChild,
  requireEffectsPort,
  startEffectsChild,
} from "./effects-child.ts";
import { embed } from "./embed.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { portAccess } from "./require-token.ts";
import { startWorkers } from "./workers.ts";

type Running = Pick<Gateway, "port" | "adminPort" | "close">;

export async function serve(config: Config, context: CommandContext): Promise<void> {
  await run(config, context, { prepare: async () => undefined });
}

/**
 * Runs the gateway with an embedded NATS server and a sample project. If the default port of the
 * effects is in use, another port is used. If a port from the settings is in use, `up` fails.
 */
export async function up(
  config: Config,
  context: CommandContext,
  options: { readonly isEffectsPortGiven: boolean; readonly acceptExpired: boolean },
): Promise<void> {
  if (config.natsUrl !== undefined)
    throw new CommandError(
      "`up` starts its own nats-server, but PENSTOCK_NATS_URL is set: unset it, or use `serve`",
      usageExitCode,
    );
  requireNamedFolder(config);
  const { isEffectsPortGiven, acceptExpired } = options;
  let givenPort: number | undefined;
  const prepare = async (effective: Config, log: Log) => {
    if (isEffectsPortGiven) givenPort = await requireEffectsPort(config);
    return await demoProject(effective, log, context.stop);
  };
  const effectsPort = isEffectsPortGiven ? async () => givenPort : defaultEffectsPort;
  await run(config, context, { prepare, effectsPort, acceptExpired });
}

interface Kind {
  readonly prepare: (effective: Config, log: Log) => Promise<Project | undefined>;
  readonly effectsPort?: (config: Config, log: Log) => Promise<number | undefined>;
  readonly acceptExpired?: boolean;
}

async function run(
  config: Config,
  context: CommandContext,
  { prepare, effectsPort: portOf, acceptExpired = false }: Kind,
): Promise<void> {
  portAccess(config, "admin");
  if (portOf !== undefined) portAccess(config, "effects");
  const log = createLog(config.logLevel);
  const embedded = config.natsUrl === undefined ? await embed(config, context, { log }) : undefined;
  let gateway: Running | undefined;
  let effects: EffectsChild | undefined;
  try {
    const effective =
      embedded === undefined
        ? config
        : { ...config, natsUrl: embedded.url, natsToken: embedded.token };
    const project = await prepare(effective, log);
    const tryKey = project?.keys.at(-1);
    let effectsPort: number | undefined;
    const shown = { tryKey, ...(portOf && { effectsPort: () => effectsPort }) };
    gateway =
      config.workers === 1
        ? await startGateway(effective, { log, signal: context.stop, ...shown })
        : await startWorkers(effective, context, { log, ...shown });
    effectsPort = await portOf?.(config, log);
    if (embedded !== undefined) noteAnswers(embedded, { config, gateway, effectsPort, log });
    if (project !== undefined) {
      const { mainFile, env } = context;
      const npmFolder = env["INIT_CWD"];
      const program = calledAs({ mainFile, workingFolder: resolve("."), npmFolder });
      const isDefaultData = isDefaultDataDir(config.dataDir, mainFile);
      context.stdout.write(
        welcome({ config, gateway, project, program, isDefaultData, effectsPort }),
      );
    }
    if (portOf !== undefined) {
      const settings = { ...effective, effectsPort: effectsPort ?? effective.effectsPort };
      effects = startEffectsChild(settings, context, { log, acceptExpired });
    }
    if (!context.stop.aborted) await once(context.stop, "abort");
    log.info({}, "gateway stopping");
  } finally {
    await closeAll(gateway, effects, embedded);
  }
}

/** Closes everything, even if an error occurs. Then throws the first error. */
async function closeAll(
  gateway: Running | undefined,
  effects: EffectsChild | undefined,
  embedded: EmbeddedNats | undefined,
): Promise<void> {
  // The next start applies events that the gateway stores after the effects have stopped.
  const closed = await Promise.allSettled([gateway?.close(), effects?.close()]);
  closed.push(...(await Promise.allSettled([embedded?.close()])));
  const failed = closed.find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}

interface Answering {
  readonly config: Config;
  readonly gateway: Running;
  readonly effectsPort: number | undefined;
  readonly log: Log;
}

/** Writes the ports to the data folder. `doctor` reads them, and so does a second start. */
function noteAnswers(embedded: EmbeddedNats, { config, gateway, effectsPort, log }: Answering) {
  const { port, adminPort } = gateway;
  try {
    embedded.noteAnswers({ url: addressOf(config, port), port, adminPort, effectsPort });
  } catch (error) {
    const { message: reason } = error as Error;
    log.warn(
      { reason },
      "gateway ports not recorded in the data folder: doctor will not find them",
    );
  }
}

export function addressOf({ tlsCert, host }: Config, port: number): string {
  return `${tlsCert === undefined ? "http" : "https"}://${reachable(host)}:${port}`;
}

export async function demoProject(
  effective: Config,
  log: Log,
  signal: AbortSignal,
): Promise<Project | undefined> {
  const access = { natsUrl: effective.natsUrl ?? "", natsToken: effective.natsToken };
  const link = await connectNats({ access, log, signal });
  try {
    const place = { prefix: effective.subjectPrefix, replicas: effective.replicas };
    const project = await ensureDemoProject(link.connection, place);
    if (project === undefined)
      log.warn({}, "project registry has lost projects: the sample project is not added");
    return project;
  } finally {
    await link.close();
  }
}

interface Welcome {
  readonly config: Config;
  readonly gateway: Running;
  readonly project: Project;
  readonly program: string;
  readonly isDefaultData: boolean;
  readonly effectsPort: number | undefined;
}

function welcome(facts: Welcome): string {
  const { config, gateway, project, program, isDefaultData, effectsPort } = facts;
  const address = addressOf(config, gateway.port);
  const admin = `http://${reachable(config.adminHost)}:${gateway.adminPort}`;
  const key = project.keys.at(-1) ?? "";
  const event = JSON.stringify({ api_key: key, event: "hello", distinct_id: "me" });
  const dataDir = isDefaultData ? "" : ` --data-dir ${shellWord(config.dataDir)}`;
  const prefix =
    config.subjectPrefix === "penstock" ? "" : ` --subject-prefix ${config.subjectPrefix}`;
  const persons = `http://${reachable(config.effectsHost)}:${effectsPort}/projects/${project.id}/persons`;
  const people =
    effectsPort === undefined
      ? ""
      : `
See the person that its events make:
  curl ${shellWord(`${persons}?distinct_id=me`)}
`;
  const isPublic = project.enabled && project.keys.includes(demoKey) && !isLoopback(config.host);
  const warning = isPublic
    ? `
Warning: this port is open on ${config.host}, and the key ${demoKey} is public. Anyone who
reaches the port can send events with it. To reject them:
  ${program} project disable ${project.id}${dataDir}${prefix}
`
    : "";
  return `
Penstock is up at ${address}
  metrics and health   ${admin}/metrics, /readyz
  project ${project.id}, key   ${key}

Send an event:
  curl -i ${address}/capture/ -H 'Content-Type: application/json' -d ${shellWord(event)}

Watch events as they are stored, in a browser or here:
  ${admin}/
  ${program} tail${dataDir}${prefix}
${people}${warning}
`;
}
