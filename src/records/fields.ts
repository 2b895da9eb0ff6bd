// The fields of a stored record, in the order in which they are written. The reference page and the
// columns of the sinks are generated from this table. A test compares the consumer's types with it.

import { distinctIdCharactersMax } from "./distinct-id.ts";
import { mergedBytesMax, namesBytesMax } from "./person-fields.ts";
import { uuidBytes } from "./uuid.ts";
import { replacedBytesMax, replacedCharactersMax, schemaErrorsMax } from "./verdict.ts";

/** `object` and `names` (an array of strings) are JSON. `time` is UTC. */
export type FieldType =
  | "id"
  | "uuid"
  | "text"
  | "time"
  | "boolean"
  | "integer"
  | "object"
  | "names";

export const Part = {
  Uuid: 0,
  ProjectId: 1,
  Event: 2,
  DistinctId: 3,
  Ip: 4,
  Kind: 5,
  Properties: 6,
  Set: 7,
  SetOnce: 8,
  Unset: 9,
  Replaced: 10,
  NestedSet: 11,
  NestedSetOnce: 12,
  NestedUnset: 13,
  Groups: 14,
  Schema: 15,
  Count: 16,
} as const;
export type Part = Exclude<(typeof Part)[keyof typeof Part], typeof Part.Count>;

export interface RecordField {
  readonly type: FieldType;
  readonly part?: Part;
  readonly isOptional?: boolean;
  readonly from: string;
  readonly most: string;
  readonly column?: string;
  readonly description: string;
}

export const recordFields = {
  uuid: {
    type: "uuid",
    part: Part.Uuid,
    from: "`uuid`",
    most: `${uuidBytes} characters`,
    column: "uuid",
    description: "The client's uuid in lower case, or a new one of version 7.",
  },
  project_id: {
    type: "id",
    part: Part.ProjectId,
    from: "the request's key",
    most: "64 characters",
    column: "project_id",
    description: "The project whose key came with the event.",
  },
  event: {
    type: "text",
    part: Part.Event,
    from: "`event`",
    most: "no limit of its own",
    column: "event",
    description: "The name of the event.",
  },
  distinct_id: {
    type: "text",
    part: Part.DistinctId,
    from: "`distinct_id`, `$distinct_id`, or either in `properties`",
    most: `${distinctIdCharactersMax} characters`,
    column: "distinct_id",
    description: "The id of the person or device to which the event belongs.",
  },
  timestamp: {
    type: "time",
    from: "`timestamp`, `offset`, `sent_at`",
    most: "years 0 to 9999",
    column: "timestamp",
    description:
      "When the event happened, [corrected](events.md#time) for the error of the client's clock.",
  },
  timestamp_sent: {
    type: "time",
    isOptional: true,
    from: "`timestamp`",
    most: "years 0 to 9999",
    column: "timestamp_sent",
    description: "The client's own `timestamp`, if another one is stored.",
  },
  received_at: {
    type: "time",
    from: "the gateway's clock",
    most: "",
    column: "received_at",
    description: "When the request began to arrive.",
  },
  sent_at: {
    type: "time",
    isOptional: true,
    from: "the request's `sent_at`",
    most: "years 0 to 9999",
    column: "sent_at",
    description: "The client's clock when it sent the request.",
  },
  ip: {
    type: "text",
    part: Part.Ip,
    isOptional: true,
    from: "the connection, or the proxy's header",
    most: "",
    column: "ip",
    description: "The client's address, unless `PENSTOCK_RECORD_IP` is off.",
  },
  rules: {
    type: "integer",
    isOptional: true,
    from: "the [rules](../concepts/rules.md) of the project",
    most: "",
    description:
      "The version of the rules, if they changed the event or its `ip`. Sinks do not write it.",
  },
  kind: {
    type: "text",
    part: Part.Kind,
    from: "`event`",
    most: "",
    column: "kind",
    description:
      "`custom`, `pageview`, `screen`, `identify`, `alias`, `group_identify`, `survey` or `set` (the event `$set`).",
  },
  person_profile: {
    type: "boolean",
    from: "`properties.$process_person_profile`",
    most: "",
    column: "person_profile",
    description: "Whether the event creates or updates a person.",
  },
  historical: {
    type: "boolean",
    from: "the request's `historical_migration`",
    most: "",
    column: "historical",
    description: "Whether the event is in the historical lane.",
  },
  properties: {
    type: "object",
    part: Part.Properties,
    from: "`properties`",
    most: "what a record may have",
    column: "properties",
    description: "The JSON as the client sent it, or its normalised form.",
  },
  $set: {
    type: "object",
    part: Part.Set,
    isOptional: true,
    from: "`$set`, also in `properties`",
    most: `${mergedBytesMax / 1_024} KiB if the top level and \`properties\` both have it`,
    column: "set",
    description: "Properties to set on the person.",
  },
  $set_once: {
    type: "object",
    part: Part.SetOnce,
    isOptional: true,
    from: "`$set_once`, also in `properties`",
    most: `${mergedBytesMax / 1_024} KiB if the top level and \`properties\` both have it`,
    column: "set_once",
    description:
      "Properties to set on the person, unless the person already has a property of that name.",
  },
  $unset: {
    type: "names",
    part: Part.Unset,
    isOptional: true,
    from: "`$unset`, also in `properties`",
    most: `${namesBytesMax / 1_024} KiB`,
    column: "unset",
    description: "Names of properties to remove from the person.",
  },
  replaced: {
    type: "object",
    part: Part.Replaced,
    isOptional: true,
    from: "fields that cannot be stored as sent",
    most: `${replacedCharactersMax} characters of a value longer than ${replacedBytesMax} bytes`,
    description:
      "The sent values of fields that were changed or not stored: a `timestamp`, `uuid`, `offset`, `sent_at`, `session_id`, `window_id` or `options` that is invalid; a `distinct_id` that was shortened; a `$set`, `$set_once`, `$unset`, `$groups`, `$group_set` or `$group_unset` of a wrong type. If the top level and `properties` both have the field, the value is that of the top level. Sinks write `replaced` as `$replaced` in `properties`.",
  },
  schema: {
    type: "object",
    part: Part.Schema,
    isOptional: true,
    from: "a [schema](../guides/schemas.md) of the project in mode `stamp`",
    most: `${schemaErrorsMax} errors`,
    description:
      "The `version` of the schema, whether the properties are valid (`ok`), and the `errors` if they are not. Sinks write it as `$schema` in `properties`.",
  },
} as const satisfies Readonly<Record<string, RecordField>>;

export type RecordFieldName = keyof typeof recordFields;
