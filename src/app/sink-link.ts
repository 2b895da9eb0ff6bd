import type { NatsConnection } from "@nats-io/nats-core";
import { type CommandContext, CommandError, usageExitCode } from "../commands/context.ts";
import { mustBeKnown, registeredProjects } from "../commands/registered-project.ts";
import type { Log } from "../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../platform/base/retry.ts";
import type { NatsAccess } from "../platform/nats/access.ts";
import { connectNats, type NatsLink } from "../platform/nats/link.ts";
import { NatsRefusedError, violationIn } from "../platform/nats/sign-in.ts";
import type { Config } from "../platform/settings/config.ts";
import { findAccess } from "./find-access.ts";
import { requireStreams } from "./require-streams.ts";

export interface NamedProjects {
  readonly flag: string;
  readonly ids: readonly string[];
}

interface SinkLinkOptions {
  readonly host: CommandContext["host"];
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly named: readonly NamedProjects[];
  readonly waits: (reason: string) => void;
}

interface SinkLink {
  readonly access: NatsAccess;
  readonly link: NatsLink;
}

const againMs = 1_000;
const sayAgainMs = 30_000;

/**
 * Waits for NATS, and for a registry that has projects. Rejects with a CommandError if a named
 * project is unknown: a sink would skip the events that the typo should have named, and never write
 * them.
 */
export async function sinkLink(config: Config, options: SinkLinkOptions): Promise<SinkLink> {
  const { host, log, signal, named, waits } = options;
  const warning = new SparseWarning(log, sayAgainMs);
  for (;;) {
    const access = await findAccess(config, { host, log, signal });
    const link = await connectNats({ access, log, signal });
    try {
      await requireStreams(link, config.subjectPrefix);
      await lookUp(link.connection, { config, named, log });
      return { access, link };
    } catch (error) {
      await link.close();
      if (error instanceof CommandError || error instanceof NatsRefusedError) throw error;
      const { message: reason } = error as Error;
      waits(`waiting for the registry: ${reason}`);
      warning.warn({ reason }, "waiting for the registry, to look up the named projects");
    }
    // The next connection may be to a restarted embedded server with another port.
    await pauseUntilAborted(againMs, signal);
    signal.throwIfAborted();
  }
}

interface Lookup {
  readonly config: Config;
  readonly named: readonly NamedProjects[];
  readonly log: Log;
}

/**
 * Rejects with a CommandError if a project is unknown, and with another error if that is uncertain.
 */
async function lookUp(connection: NatsConnection, { config, named, log }: Lookup): Promise<void> {
  try {
    for (const { flag, ids } of named)
      for (const project of ids)
        await mustBeKnown(connection, config, { command: `sink: ${flag}`, project });
  } catch (error) {
    if (error instanceof CommandError) {
      const known = await registeredProjects(connection, config);
      if (known.length === 0) throw new Error("it has no projects yet");
      throw new CommandError(error.message, usageExitCode);
    }
    if (violationIn(error) === undefined) throw error;
    log.warn(
      { reason: (error as Error).message },
      "no permission to read the registry: the named projects are not checked",
    );
  }
}
