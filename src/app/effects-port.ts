// The port that the effects beside the gateway of `up` are to take. One that was given has to be
// free, as the gateway's own has to be. The default one may be anything's, as that of another `up`
// on this machine, so another is taken then, which is told.

import { type AddressInfo, createServer } from "node:net";
import { CommandError } from "../commands/context.ts";
import type { Log } from "../platform/base/log.ts";
import { portFault } from "../platform/base/port-fault.ts";
import type { Config } from "../platform/settings/config.ts";

type Place = Pick<Config, "effectsHost" | "effectsPort">;

/** Throws a CommandError that says what is in the way. */
export async function requireEffectsPort({ effectsHost, effectsPort }: Place): Promise<void> {
  try {
    await freePort(effectsHost, effectsPort);
  } catch (error) {
    const fault = portFault(error as Error, effectsPort, "EFFECTS_PORT");
    throw new CommandError(
      `Listen for reads of the effects on ${effectsHost} port ${effectsPort}: ${fault}`,
    );
  }
}

/** Free a moment ago, as `requireEffectsPort` found; the child says what it got. */
export async function givenEffectsPort({ effectsHost, effectsPort }: Place): Promise<number> {
  return effectsPort === 0 ? await freePort(effectsHost, 0) : effectsPort;
}

/**
 * Undefined when they can have none, which is told too. Free a moment ago; the child says what it
 * got.
 */
export async function defaultEffectsPort(
  { effectsHost, effectsPort }: Place,
  log: Pick<Log, "warn">,
): Promise<number | undefined> {
  try {
    return await freePort(effectsHost, effectsPort);
  } catch (error) {
    const reason = portFault(error as Error, effectsPort, "EFFECTS_PORT");
    const port = await freePort(effectsHost, 0).catch(() => undefined);
    const message =
      port === undefined
        ? "the effects are not shown over HTTP"
        : "the effects are shown on another port";
    log.warn({ effectsHost, effectsPort, instead: port, reason }, message);
    return port;
  }
}

function freePort(host: string, port: number): Promise<number> {
  const probe = createServer();
  return new Promise((resolve, reject) => {
    probe.once("error", reject);
    probe.listen({ host, port, exclusive: true }, () => {
      const { port: found } = probe.address() as AddressInfo;
      probe.close(() => resolve(found));
    });
  });
}
