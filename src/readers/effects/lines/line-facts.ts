import { Buffer } from "node:buffer";
import { kindOfName } from "../../../records/event-name.ts";
import { Part } from "../../../records/fields.ts";
import { isNothing, isString } from "../../../records/item-view.ts";
import { Line, LineFlag, type RecordView } from "../../../records/lines.ts";
import { TokenType } from "../../../records/table.ts";
import { stringBeginning } from "../../../records/token-beginning.ts";
import { UuidForm, unescapedUuid, uuidBytes, uuidForm } from "../../../records/uuid.ts";
import { Kind, kinds } from "../../../records/verdict.ts";
import { type EventFacts, type Span, SpecialEvent, specialEventOf } from "../rules/event-facts.ts";
import { cookielessId, idText } from "../rules/ids.ts";
import { isText } from "../rules/plain-texts.ts";
import type { Rejection, UsageClass } from "../types.ts";

const aheadMsMax = 86_400_000;

const needed = [
  ["uuid", Part.Uuid],
  ["project_id", Part.ProjectId],
  ["event", Part.Event],
  ["distinct_id", Part.DistinctId],
] as const;

export class LineFacts {
  readonly #ids = new RecentIds();
  readonly #uuid = Buffer.alloc(uuidBytes);
  readonly #uuidView = new DataView(this.#uuid.buffer, this.#uuid.byteOffset, uuidBytes);

  fill(facts: EventFacts, record: RecordView, storedAtMs: number): Rejection | undefined {
    const fault = record.isWritten ? undefined : faultOf(record);
    if (fault !== undefined) return fault;
    facts.projectId = record.projectId;
    facts.special = specialOf(record);
    facts.kind =
      record.kind < kinds.length ? (record.kind as Kind) : kindOfName(beginningOfName(record));
    facts.personProfile = record.has(LineFlag.PersonProfile);
    facts.distinctId = record.has(LineFlag.PlainId) ? this.#ids.textOf(record) : idOf(record);
    if (facts.distinctId === "") return reject("invalid_field", "its distinct_id is blank");
    const saidMs = record.ms(Line.ReceivedAt);
    const receivedAtMs = saidMs <= storedAtMs + aheadMsMax ? saidMs : storedAtMs;
    const timestampMs = record.ms(Line.Timestamp);
    facts.receivedAtMs = receivedAtMs;
    facts.timeMs = Number.isNaN(timestampMs) ? receivedAtMs : Math.min(timestampMs, receivedAtMs);
    return undefined;
  }

  fillRest(facts: EventFacts, record: RecordView): void {
    facts.body = record.body;
    if (record.type(Part.Uuid) === TokenType.EscapedString) {
      unescapedUuid(record.body, record.startOf(Part.Uuid), record.endOf(Part.Uuid))?.copy(
        this.#uuid,
      );
      facts.uuidBody = this.#uuid;
      facts.uuidView = this.#uuidView;
      facts.uuidAt = 0;
    } else {
      facts.uuidBody = record.body;
      facts.uuidView = record.view;
      facts.uuidAt = record.startOf(Part.Uuid) + 1;
    }
    fillSpan(facts.event, record, Part.Event);
    fillSpan(facts.id, record, Part.DistinctId);
    fillSpan(facts.properties, record, Part.Properties);
    fillSpan(facts.set, record, Part.Set);
    fillSpan(facts.setOnce, record, Part.SetOnce);
    fillSpan(facts.unset, record, Part.Unset);
    fillSpan(facts.nestedSet, record, Part.NestedSet);
    fillSpan(facts.nestedSetOnce, record, Part.NestedSetOnce);
    fillSpan(facts.nestedUnset, record, Part.NestedUnset);
    facts.groupsType = record.type(Part.Groups);
  }
}

function faultOf(record: RecordView): Rejection | undefined {
  const missing = needed.find(([, part]) => isNothing(record.type(part)));
  if (missing !== undefined) return reject("not_a_record", `it has no ${missing[0]}`);
  if (!hasUuid(record)) return reject("invalid_field", "its uuid is not a UUID");
  if (record.projectId === "") return reject("invalid_field", "its project_id is not an id");
  if (!isString(record.type(Part.Event))) return reject("invalid_field", "its event is not text");
  const { profileType: profile } = record;
  return isNothing(profile) || profile === TokenType.True || profile === TokenType.False
    ? undefined
    : reject("invalid_field", "its person_profile is not a boolean");
}

function hasUuid(record: RecordView): boolean {
  const { body } = record;
  const [start, end] = [record.startOf(Part.Uuid), record.endOf(Part.Uuid)];
  if (record.type(Part.Uuid) === TokenType.EscapedString)
    return unescapedUuid(body, start, end) !== undefined;
  return (
    record.type(Part.Uuid) === TokenType.PlainString &&
    uuidForm(body, start + 1, end - 1) !== UuidForm.None
  );
}

function specialOf(record: RecordView): SpecialEvent {
  if (record.isWritten && !record.has(LineFlag.EscapedEvent)) {
    if (record.has(LineFlag.Merge)) return SpecialEvent.Merge;
    return record.has(LineFlag.Automatic) ? SpecialEvent.Automatic : SpecialEvent.None;
  }
  return specialEventOf(beginningOfName(record));
}

function beginningOfName(record: RecordView): string {
  return stringBeginning(record.body, record.startOf(Part.Event), record.endOf(Part.Event));
}

function idOf(record: RecordView): string {
  const type = record.type(Part.DistinctId);
  if (type === TokenType.EmptyString) return "";
  return idText(record.body, record.startOf(Part.DistinctId), record.endOf(Part.DistinctId), type);
}

function fillSpan(span: Span, record: RecordView, part: Part): void {
  span.type = record.type(part);
  span.start = record.startOf(part);
  span.end = record.endOf(part);
}

function reject(reason: Rejection["reason"], detail: string): Rejection {
  return { reason, detail };
}

export function usageClassOf({ kind, personProfile, distinctId }: EventFacts): UsageClass {
  if (kind === Kind.GroupIdentify) return "group_identify";
  if (!personProfile || distinctId === cookielessId) return "anonymous";
  if (kind === Kind.Identify) return "identify";
  if (kind === Kind.Alias) return "alias";
  return kind === Kind.Survey ? "survey" : "identified";
}

const recentIdSets = 32_768;
const recentIdBytesMax = 64;

/**
 * Caches recent distinct ids as strings, so that a repeated id needs no new string. It compares the
 * bytes, because clients can choose ids with equal hashes.
 */
class RecentIds {
  readonly #texts = new Array<string>(2 * recentIdSets).fill("");

  textOf(record: RecordView): string {
    const { body } = record;
    const start = record.startOf(Part.DistinctId) + 1;
    const end = record.endOf(Part.DistinctId) - 1;
    const length = end - start;
    if (length > recentIdBytesMax) return body.toString("latin1", start, end);
    const texts = this.#texts;
    const place = 2 * (record.hashWord(Line.IdLow) & (recentIdSets - 1));
    const first = texts[place]!;
    if (isText(first, body, start, length)) return first;
    const second = texts[place + 1]!;
    if (isText(second, body, start, length)) return second;
    const text = body.toString("latin1", start, end);
    texts[place + 1] = first;
    texts[place] = text;
    return text;
  }
}
