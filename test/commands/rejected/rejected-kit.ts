import type { TestGateway, TestGatewayOptions } from "../../kit/gateway.ts";
import { oldestNatsServer } from "../../kit/nats-server.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { type CommandRun, runCommand } from "../../kit/run-command.ts";

export const servers: readonly (readonly [string, TestGatewayOptions])[] = [
  ["the oldest supported nats-server", { nats: { binary: oldestNatsServer() } }],
  ["the default nats-server", {}],
];

/**
 * Runs a command on the gateway's streams. `typed` is entered on a terminal. `project remove` waits
 * for the short timeout of requests, and not for the gateway's.
 */
export async function run(
  { nats }: Pick<TestGateway, "nats">,
  args: readonly string[],
  typed?: string,
): Promise<CommandRun> {
  const env = {
    PENSTOCK_NATS_URL: nats.url,
    PENSTOCK_DATA_DIR: temporaryFolder(),
    PENSTOCK_REQUEST_TIMEOUT_MS: "100",
    PENSTOCK_ACK_TIMEOUT_MS: "50",
  };
  return await runCommand(env, args, typed);
}
