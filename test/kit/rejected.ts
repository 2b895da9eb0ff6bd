// Reads the lane `rejected` of a test gateway.

import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { linesOf, type RejectedItem } from "../../src/gateway/quarantine/rejected-item.ts";
import { rejectedLane, streamName } from "../../src/platform/nats/names.ts";
import { type TestGateway, type TestProject, until } from "./gateway.ts";

export const rejectedStream = streamName("penstock", rejectedLane, 0);

/** Returns all stored items of a project, oldest first; none if there is no stream yet. */
export async function rejectedOf(
  { nats }: Pick<TestGateway, "nats">,
  { id }: Pick<TestProject, "id">,
): Promise<RejectedItem[]> {
  const token = nats.token === undefined ? {} : { token: nats.token };
  const connection = await connect({ servers: nats.url, ...token });
  try {
    const manager = await jetstreamManager(connection);
    const info = await manager.streams.info(rejectedStream).catch(() => undefined);
    const found: RejectedItem[] = [];
    if (info === undefined) return found;
    for (let seq = Math.max(1, info.state.first_seq); seq <= info.state.last_seq; seq++) {
      const message = await manager.streams.getMessage(rejectedStream, { seq });
      if (message?.subject.endsWith(`.${id}`)) found.push(...linesOf(message.string()));
    }
    return found;
  } finally {
    await connection.close();
  }
}

/** Waits until the project has this number of stored items, and returns them. */
export async function untilRejected(
  gateway: Pick<TestGateway, "nats">,
  project: Pick<TestProject, "id">,
  count: number,
): Promise<RejectedItem[]> {
  let found: RejectedItem[] = [];
  await until(async () => {
    found = await rejectedOf(gateway, project);
    return found.length >= count;
  });
  return found;
}

/** Returns the value of one series, such as `penstock_rejected_total{reason="no_event"}`. */
export function seriesValue(metrics: string, series: string): number {
  const line = metrics.split("\n").find((one) => one.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? Number.NaN);
}
