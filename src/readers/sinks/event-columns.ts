// The columns of an event in the databases and files of the sinks, in their order. They are an
// interface that people query. What a record says has its type from the table of its fields.

import { type FieldType, type RecordField, recordFields } from "../../records/fields.ts";
import type { SinkRecord } from "./sink-target.ts";

/** What an event has of a field, by its type. A text that is absent is "", a time NaN. */
interface Values {
  readonly id: string;
  readonly uuid: string;
  readonly text: string;
  readonly time: number;
  readonly boolean: boolean;
  readonly object: Uint8Array | undefined;
  readonly names: Uint8Array | undefined;
}

export type EventColumn = {
  [Type in FieldType]: {
    readonly name: string;
    readonly type: Type;
    readonly isOptional: boolean;
    readonly of: (event: SinkRecord) => Values[Type];
  };
}[FieldType];

type ColumnField = {
  [Name in keyof typeof recordFields]: (typeof recordFields)[Name] extends { column: string }
    ? Name
    : never;
}[keyof typeof recordFields];

function column<Name extends ColumnField>(
  field: Name,
  of: (event: SinkRecord) => Values[(typeof recordFields)[Name]["type"]],
): EventColumn {
  const { column: name, type, isOptional = false }: RecordField = recordFields[field];
  return { name: name ?? field, type, isOptional, of } as EventColumn;
}

export const eventColumns: readonly EventColumn[] = [
  column("project_id", ({ projectId }) => projectId),
  column("uuid", ({ uuid }) => uuid),
  column("event", ({ event }) => event),
  column("distinct_id", ({ distinctId }) => distinctId),
  column("timestamp", ({ timestampMs }) => timestampMs),
  column("received_at", ({ receivedAtMs }) => receivedAtMs),
  { name: "stored_at", type: "time", isOptional: false, of: ({ storedAtMs }) => storedAtMs },
  column("timestamp_sent", ({ timestampSentMs }) => timestampSentMs),
  column("sent_at", ({ sentAtMs }) => sentAtMs),
  column("ip", ({ ip }) => ip),
  column("kind", ({ kind }) => kind),
  column("person_profile", ({ personProfile }) => personProfile),
  column("historical", ({ historical }) => historical),
  column("properties", ({ properties }) => properties),
  column("$set", ({ set }) => set),
  column("$set_once", ({ setOnce }) => setOnce),
  column("$unset", ({ unset }) => unset),
];

/** The column of a sink with persons. */
export const personColumn: EventColumn = {
  name: "person_uuid",
  type: "uuid",
  isOptional: true,
  of: ({ personUuid }) => personUuid,
};
