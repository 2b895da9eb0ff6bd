// Reads a record member by member, in any order and spelling. This slow path for the records of
// other programs writes the same words as the addon for a record of the gateway.

import { Buffer } from "node:buffer";
import { isProjectId } from "../platform/base/forms.ts";
import { Part, type RecordField, recordFields } from "./fields.ts";
import { isString } from "./item-view.ts";
import { JsonMembers } from "./json-members.ts";
import { Line, LineFlag, LineShift } from "./lines.ts";
import type { RecordView } from "./record-view.ts";
import { TokenType } from "./table.ts";
import { timestampTokenMs } from "./timestamp.ts";
import { kinds } from "./verdict.ts";

/** A relevant name, with each character escaped as \uXXXX. */
const nameBytesMax = 6 * 16;
/** A token that can be a project id or a kind. */
const wordBytesMax = 6 * 64 + 2;

const parts: ReadonlyMap<string, Part> = new Map(
  Object.entries(recordFields).flatMap(([name, { part }]: [string, RecordField]) =>
    part === undefined ? [] : [[name, part] as const],
  ),
);
const nestedParts: ReadonlyMap<string, Part> = new Map<string, Part>([
  ["$set", Part.NestedSet],
  ["$set_once", Part.NestedSetOnce],
  ["$unset", Part.NestedUnset],
  ["$groups", Part.Groups],
]);
const times: ReadonlyMap<string, number> = new Map([
  ["timestamp", Line.Timestamp],
  ["timestamp_sent", Line.TimestampSent],
  ["received_at", Line.ReceivedAt],
  ["sent_at", Line.SentAt],
]);

export class MemberWords {
  readonly #members = new JsonMembers(Buffer.alloc(0));

  /** Fills the record from an object. If a name is repeated, its last member counts. */
  fill(record: RecordView, start: number, end: number): void {
    const { words, at } = record;
    words.fill(0, at, at + Line.Words);
    for (const word of times.values()) record.setMs(word, Number.NaN);
    record.profileType = TokenType.Absent as TokenType;
    let flags: number = LineFlag.HasWrites;
    this.#walk(record, { start, end, parts }, (name, members) => {
      const { valueStart, valueEnd, valueType: type } = members;
      const time = times.get(name);
      if (time !== undefined)
        record.setMs(
          time,
          isString(type) ? timestampTokenMs(record.body, valueStart, valueEnd) : Number.NaN,
        );
      else if (name === "person_profile") record.profileType = type;
      else if (name === "historical")
        flags =
          type === TokenType.True ? flags | LineFlag.Historical : flags & ~LineFlag.Historical;
    });
    if (record.profileType !== TokenType.False) flags |= LineFlag.PersonProfile;
    const known = (kinds as readonly string[]).indexOf(shortText(record, Part.Kind));
    flags |= (known < 0 ? kinds.length : known) << LineShift.Kind;
    words[at + Line.Flags] = flags;
    const project = shortText(record, Part.ProjectId);
    record.projectId = isProjectId(project) ? project : "";
    if (record.type(Part.Properties) !== TokenType.Object) return;
    const properties = {
      start: record.startOf(Part.Properties),
      end: record.endOf(Part.Properties),
    };
    this.#walk(record, { ...properties, parts: nestedParts }, () => {});
  }

  /** Writes the words of the members that are parts. Calls `other` for all other members. */
  #walk(
    { body, words, at }: RecordView,
    object: { start: number; end: number; parts: ReadonlyMap<string, Part> },
    other: (name: string, members: JsonMembers) => void,
  ): void {
    const members = this.#members;
    members.begin(body, object.start, object.end);
    while (members.next()) {
      if (members.nameEnd - members.nameStart > nameBytesMax) continue;
      const written = body.toString("utf8", members.nameStart, members.nameEnd);
      const name = members.nameHasEscape ? (JSON.parse(`"${written}"`) as string) : written;
      const part = object.parts.get(name);
      if (part === undefined) {
        other(name, members);
        continue;
      }
      const types = at + Line.Types + (part >> 3);
      const shift = 4 * (part & 7);
      words[types] = (words[types]! & ~(15 << shift)) | (members.valueType << shift);
      words[at + Line.Parts + 2 * part] = members.valueStart;
      words[at + Line.Parts + 2 * part + 1] = members.valueEnd;
    }
  }
}

/** Returns "" for any value except a short string. */
function shortText(record: RecordView, part: Part): string {
  const isShort = record.endOf(part) - record.startOf(part) <= wordBytesMax;
  return isString(record.type(part)) && isShort ? record.text(part) : "";
}
