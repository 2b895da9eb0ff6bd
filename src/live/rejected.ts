// The newest rejected items for the live page. Read when the page asks for them.

import type { NatsConnection } from "@nats-io/nats-core";
import { linesOf, type RejectedItem } from "../gateway/quarantine/rejected-item.ts";
import { objectIn } from "../platform/base/json.ts";
import { managerOf, streamInfoOf } from "../platform/nats/api.ts";

export interface RejectedFilter {
  readonly project: string | undefined;
  readonly event: string | undefined;
}

interface ShownItem {
  readonly id: string;
  readonly project: string;
  readonly event: string;
  readonly receivedAt: string;
  readonly reason: string;
  readonly rule: string;
  readonly detail: string;
  /** The beginning of the item's JSON text. */
  readonly text: string;
  readonly isCut: boolean;
}

const itemsMax = 50;
/** Number of the newest sequences of a stream that are read. */
const sequencesReadMax = 50;
const textCharactersMax = 8_192;
const askTimeoutMs = 2_000;

/** Returns the newest items that match, newest first. Rejects if NATS does not respond. */
export async function newestRejected(
  connection: NatsConnection,
  streams: readonly string[],
  filter: RejectedFilter,
): Promise<ShownItem[]> {
  const manager = await managerOf(connection, { timeoutMs: askTimeoutMs });
  const found: ShownItem[] = [];
  for (const stream of streams) {
    const state = (await streamInfoOf(manager, stream))?.state;
    if (state === undefined) continue;
    const first = Math.max(state.first_seq, state.last_seq - sequencesReadMax + 1, 1);
    let left = itemsMax;
    for (let seq = state.last_seq; seq >= first && left > 0; seq--) {
      const message = await manager.streams.getMessage(stream, { seq });
      if (message === null) continue;
      const shown = linesOf(message.string())
        .map(shownItem)
        .filter((item) => matches(item, filter))
        .slice(-left);
      left -= shown.length;
      found.push(...shown);
    }
  }
  return found
    .sort((one, other) => (one.receivedAt < other.receivedAt ? 1 : -1))
    .slice(0, itemsMax);
}

function matches({ project, event }: ShownItem, filter: RejectedFilter): boolean {
  return (
    (filter.project === undefined || project === filter.project) &&
    (filter.event === undefined || event === filter.event)
  );
}

function shownItem(line: RejectedItem): ShownItem {
  const { id, project_id: project, received_at: receivedAt, reason, item } = line;
  const name = objectIn(item)?.["event"];
  return {
    id,
    project,
    receivedAt,
    reason,
    rule: line.rule ?? "",
    detail: line.detail ?? "",
    event: typeof name === "string" ? name : "",
    text: item.slice(0, textCharactersMax),
    isCut: item.length > textCharactersMax,
  };
}
