// The hidden command `worker`, which `serve --workers N` runs N times and nobody runs by hand. Its
// settings come from the supervisor.

import { type CommandContext, CommandError, usageExitCode } from "../commands/context.ts";
import { runWorker } from "../gateway/workers/worker.ts";
import { createLog } from "../platform/base/log.ts";
import { startGateway } from "./gateway.ts";

export async function work({ channel, stop }: CommandContext): Promise<void> {
  if (channel.send === undefined) {
    throw new CommandError(
      "`worker` is what `serve --workers N` runs: it cannot run by itself",
      usageExitCode,
    );
  }
  const started = await runWorker({
    channel,
    stop,
    startGateway: async ({ config, index, role }, signal) => {
      const log = createLog(config.logLevel).child({ worker: index });
      return await startGateway(config, { log, signal, worker: role });
    },
  });
  if (!started) throw new CommandError("");
}
