// A deletion does not reach streams that copy from erased streams.

import type { NatsConnection } from "@nats-io/nats-core";
import { managerOf } from "../../platform/nats/api.ts";
import type { StreamName } from "../../readers/stream/stored-stream.ts";

const questionMs = 5_000;

export async function copiesOf(
  connection: NatsConnection,
  names: readonly StreamName[],
): Promise<string[]> {
  const erased = new Set(names.map(({ stream }) => stream));
  const found: string[] = [];
  try {
    const manager = await managerOf(connection, { timeoutMs: questionMs });
    for await (const { config } of manager.streams.list()) {
      const copied = [config.mirror, ...(config.sources ?? [])]
        .map((source) => source?.name ?? "")
        .filter((name) => erased.has(name));
      if (copied.length > 0 && !erased.has(config.name))
        found.push(`the stream ${config.name}, which copies ${copied.join(", ")}`);
    }
  } catch (error) {
    found.push(`streams that copy these, which could not be listed: ${(error as Error).message}`);
  }
  return found;
}
