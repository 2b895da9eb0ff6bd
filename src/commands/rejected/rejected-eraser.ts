// Erases a person from the rejected items of a project. An item is not an event, so it is unknown
// what its members mean. It is removed as a whole if one of the person's ids is a text in it, at any
// depth, or a number, object or array in a member whose name contains `id` or `alias`.

import { Buffer } from "node:buffer";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import type { RejectedItem } from "../../gateway/quarantine/rejected-item.ts";
import { Ascii } from "../../platform/base/ascii.ts";
import { findRejectedStreams, storedStream } from "../../readers/stream/stored-stream.ts";
import { distinctIdText } from "../../records/distinct-id.ts";
import { isString } from "../../records/item-view.ts";
import { JsonMembers } from "../../records/json-members.ts";
import { depthMax, TokenType } from "../../records/table.ts";
import { noCounts, type StreamCounts } from "../erase/stream-eraser.ts";
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
    if (state !== undefined) all.set(stream, noCounts(stream, state));
  }
  for await (const one of rejectedMessages(connection, { prefix, project, stop })) {
    const counts = all.get(one.name.stream);
    if (counts === undefined) continue;
    counts.scanned++;
    counts.bytes += one.message.data.length;
    const erased = one.lines.filter((line) => namesPerson(line, ids));
    if (erased.length === 0) continue;
    counts.events += erased.length;
    if (erased.length === one.lines.length) counts.deleted++;
    else counts.rewritten++;
    if (isDryRun) continue;
    const removal = { manager, connection, isErased: true };
    await removeLines(removal, one, (line) => namesPerson(line, ids));
  }
  return [...all.values()];
}

const idMember = /id|alias/i;
const containers: readonly TokenType[] = [TokenType.Object, TokenType.Array];

/** Returns whether the item or its detail has one of the ids. The ids are as stored. */
export function namesPerson(
  { item, detail = "" }: Pick<RejectedItem, "item" | "detail">,
  ids: ReadonlySet<string>,
): boolean {
  // An item that cannot be read, because it is nested too deeply, may name the person.
  const isFound =
    hasId(item, ids) ?? [...ids].some((id) => item.includes(JSON.stringify(id).slice(1, -1)));
  return isFound || [...ids].some((id) => detail.includes(`"${id}"`));
}

/** Returns whether a JSON text has one of the ids; undefined if it cannot be read. */
function hasId(item: string, ids: ReadonlySet<string>): boolean | undefined {
  if (!isJson(item)) return undefined;
  const body = Buffer.from(`[${item}]`);
  const members = new JsonMembers(body);
  const open = [{ start: 0, end: body.length, isId: false, depth: 0 }];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (one.depth > depthMax) return undefined;
    const isObject = body[one.start] === Ascii.OpenBrace;
    members.begin(body, one.start, one.end);
    while (members.next()) {
      const { nameStart, nameEnd, valueStart: start, valueEnd: end, valueType: type } = members;
      // The elements of an array belong to the member that has it.
      const isId = isObject ? idMember.test(textIn(body, nameStart - 1, nameEnd + 1)) : one.isId;
      const isContainer = containers.includes(type);
      const mayBeId = isString(type) || (isId && (isContainer || type === TokenType.Number));
      if (mayBeId && ids.has(distinctIdText(body, start, end, type).text)) return true;
      if (isContainer) open.push({ start, end, isId, depth: one.depth + 1 });
    }
  }
  return false;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function textIn(body: Buffer, start: number, end: number): string {
  return JSON.parse(body.toString("utf8", start, end)) as string;
}
