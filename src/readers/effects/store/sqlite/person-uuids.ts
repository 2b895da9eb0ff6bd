import type { Value } from "../../../../platform/base/table.ts";
import type { ProjectIds, ReachedStream, StreamMessage } from "../port.ts";
import { type StepRow, UuidWalk } from "../rows/uuid-walk.ts";
import type { Statement } from "./database.ts";
import { uuidText } from "./uuid-bytes.ts";

type Prepare = (sql: string) => Statement;

const reachedSql = `SELECT p.stream, p.epoch, p.created, p.sequence, t.message_id
  FROM positions AS p LEFT JOIN position_trail AS t ON t.stream = p.stream AND t.sequence = ?2
  WHERE p.stream = ?1`;

const stepsSql = `SELECT wanted.key, found.first_uuid, found.merged_into
  FROM json_each(?2) AS wanted CROSS JOIN members AS found
  ON found.project_id = ?1 AND found.uuid = unhex(wanted.value, '-')`;

export function reachedIn(prepare: Prepare, messages: readonly StreamMessage[]): ReachedStream[] {
  return messages.flatMap(({ stream, sequence }) => {
    const row = prepare(reachedSql).get(stream, sequence);
    if (row === undefined) return [];
    const [, epoch, created, reached, messageId] = row;
    return {
      stream,
      epoch: epoch as number,
      created: created as string,
      sequence: reached as number,
      messageId: (messageId as string | null) ?? undefined,
    };
  });
}

export function uuidsIn(prepare: Prepare, ids: readonly ProjectIds[]): (string | null)[] {
  const shown: (string | null)[] = [];
  for (const one of ids) {
    const walk = new UuidWalk([one]);
    while (walk.steps.length > 0) {
      const uuids = JSON.stringify(walk.steps.map(({ uuid }) => uuid));
      walk.take(stepRows(prepare(stepsSql).iterate(one.projectId, uuids)));
    }
    for (const uuid of walk.shown) shown.push(uuid);
  }
  return shown;
}

function* stepRows(rows: Iterable<readonly Value[]>): Generator<StepRow> {
  for (const [step, firstUuid, mergedInto] of rows)
    yield [step as number, textOf(firstUuid), textOf(mergedInto)];
}

function textOf(uuid: Value | undefined): string | null {
  return uuid instanceof Uint8Array ? uuidText(uuid) : null;
}
