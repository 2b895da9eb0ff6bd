import { CommandError, usageExitCode } from "../commands/context.ts";
import { exposureOf, PortAccess, tokensOf } from "../platform/base/port-access.ts";
import { shownSetting } from "../platform/base/setting-name.ts";
import type { Config } from "../platform/settings/config.ts";

const hostSetting = { admin: "adminHost", effects: "effectsHost", sink: "sinkHost" } as const;

/**
 * Throws a CommandError if other hosts can connect to the port and no token is set.
 * PENSTOCK_ADMIN_AUTH=off turns this check off.
 */
export function portAccess(config: Config, port: keyof typeof hostSetting): PortAccess {
  const setting = hostSetting[port];
  const host = config[setting];
  if (exposureOf(host, config) === "lacks token")
    throw new CommandError(
      `cannot open the ${port} port on ${host}: other hosts can reach it there, and no token protects it. Set PENSTOCK_ADMIN_TOKEN or PENSTOCK_ADMIN_TOKEN_FILE, or ${shownSetting(setting)} to 127.0.0.1; if the network protects the port, set PENSTOCK_ADMIN_AUTH=off`,
      usageExitCode,
    );
  return new PortAccess(tokensOf(config));
}
