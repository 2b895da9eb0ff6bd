import type { ClientBase } from "pg";
import { arrayOf } from "../../../../platform/postgres/arrays.ts";
import { selectRows } from "../../../../platform/postgres/select-rows.ts";
import type { ProjectIds, ReachedStream, StreamMessage } from "../port.ts";
import { type StepRow, UuidWalk } from "../rows/uuid-walk.ts";

const reachedSql = `SELECT p.stream, p.epoch, p.created, p.sequence, t.message_id
  FROM unnest($1::text[], $2::bigint[]) AS wanted (stream, sequence)
  JOIN positions AS p ON p.stream = wanted.stream
  LEFT JOIN position_trail AS t ON t.stream = wanted.stream AND t.sequence = wanted.sequence`;

/** Looks up each row individually, because one join may scan the whole table. */
const stepsSql = `SELECT wanted.at - 1, found.first_uuid, found.merged_into
  FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS wanted (project_id, uuid, at)
  CROSS JOIN LATERAL (
    SELECT first_uuid, merged_into FROM members
    WHERE project_id = wanted.project_id AND uuid = wanted.uuid LIMIT 1
  ) AS found`;

export async function reachedIn(
  client: ClientBase,
  messages: readonly StreamMessage[],
): Promise<ReachedStream[]> {
  const rows = await selectRows(client, reachedSql, [
    arrayOf(messages.map(({ stream }) => stream)),
    arrayOf(messages.map(({ sequence }) => sequence)),
  ]);
  return rows.map(([stream, epoch, created, sequence, messageId]) => ({
    stream: stream as string,
    epoch: epoch as number,
    created: created as string,
    sequence: sequence as number,
    messageId: (messageId as string | null) ?? undefined,
  }));
}

export async function uuidsIn(
  client: ClientBase,
  ids: readonly ProjectIds[],
): Promise<(string | null)[]> {
  const walk = new UuidWalk(ids);
  while (walk.steps.length > 0) {
    const rows = await selectRows(client, stepsSql, [
      arrayOf(walk.steps.map(({ projectId }) => projectId)),
      arrayOf(walk.steps.map(({ uuid }) => uuid)),
    ]);
    walk.take(rows as unknown as StepRow[]);
  }
  return walk.shown;
}
