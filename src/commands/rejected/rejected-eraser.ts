// Erases a person from the rejected items of a project. An item is not an event, so it is unknown
// what its members mean. It is removed as a whole if one of the person's ids is a text in it, at any
// depth, or a number in a member whose name contains `id` or `alias`.

import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import type { RejectedLine } from "../../gateway/quarantine/rejected-item.ts";
import { findRejectedStreams, storedStream } from "../../readers/stream/stored-stream.ts";
import { storedIdText } from "../../records/distinct-id.ts";
import type { StreamCounts } from "../erase/stream-eraser.ts";
import { rejectedMessages, removeLines } from "./rejected-messages.ts";

interface RejectedErasure {
  readonly manager: JetStreamManager;
  readonly connection: NatsConnection;
  readonly prefix: string;
  readonly project: string;
  readonly ids: ReadonlySet<string>;
  readonly isDryRun: boolean;
  readonly stop: AbortSignal;
}

/** Erases the person, and overwrites the removed items in the store. Returns counts per stream. */
export async function eraseRejected(erasure: RejectedErasure): Promise<StreamCounts[]> {
  const { manager, connection, prefix, project, ids, isDryRun, stop } = erasure;
  const all = new Map<string, StreamCounts>();
  for (const { stream } of await findRejectedStreams(manager, prefix)) {
    const state = await storedStream(manager, stream).state();
    if (state === undefined) continue;
    all.set(stream, {
      ...{ stream, from: state.firstSequence, to: state.lastSequence },
      ...{ scanned: 0, bytes: 0, events: 0, deleted: 0, rewritten: 0, doubtful: 0 },
    });
  }
  for await (const one of rejectedMessages(connection, { prefix, project, stop })) {
    const counts = all.get(one.name.stream);
    if (counts === undefined) continue;
    counts.scanned++;
    counts.bytes += one.message.data.length;
    const doomed = one.lines.filter((line) => namesPerson(line, ids));
    if (doomed.length === 0) continue;
    counts.events += doomed.length;
    if (doomed.length === one.lines.length) counts.deleted++;
    else counts.rewritten++;
    if (isDryRun) continue;
    const removal = { manager, connection, isErased: true };
    await removeLines(removal, one, (line) => namesPerson(line, ids));
  }
  return [...all.values()];
}

const idMember = /id|alias/i;

function namesPerson({ item, detail = "" }: RejectedLine, ids: ReadonlySet<string>): boolean {
  let isFound = false;
  try {
    JSON.parse(item, (name, value: unknown) => {
      const isId = typeof value === "string" || (typeof value === "number" && idMember.test(name));
      if (isId && ids.has(storedIdText(String(value)))) isFound = true;
      return value;
    });
  } catch {
    // A text that cannot be parsed, because it is nested too deeply, may name the person.
    isFound = [...ids].some((id) => item.includes(JSON.stringify(id).slice(1, -1)));
  }
  return isFound || [...ids].some((id) => detail.includes(`"${id}"`));
}
