// Chooses the port of the effects process that `up` starts. A port from the settings must be free.
// If the default port is taken, for example by another `up`, another port is used and logged.

import { type AddressInfo, createServer } from "node:net";
import { CommandError } from "../commands/context.ts";
import type { Log } from "../platform/base/log.ts";
import { portFault } from "../platform/base/port-fault.ts";
import type { Config } from "../platform/settings/config.ts";

type Place = Pick<Config, "effectsHost" | "effectsPort">;

export async function requireEffectsPort({ effectsHost, effectsPort }: Place): Promise<void> {
  try {
    await freePort(effectsHost, effectsPort);
  } catch (error) {
    const fault = portFault(error as Error, effectsPort, "EFFECTS_PORT");
    throw new CommandError(
      `cannot listen for reads of the effects on ${effectsHost} port ${effectsPort}: ${fault}`,
    );
  }
}

/** Returns the port from the settings, or a free port if the setting is 0. */
export async function givenEffectsPort({ effectsHost, effectsPort }: Place): Promise<number> {
  return effectsPort === 0 ? await freePort(effectsHost, 0) : effectsPort;
}

/** Returns a port that was free a moment ago; undefined if no port is free. */
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
        ? "effects HTTP port unavailable: people and groups are not served"
        : "default effects port is taken: using another port";
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
