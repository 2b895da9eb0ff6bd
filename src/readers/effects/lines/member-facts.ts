// Reads a line member by member, in whatever order and spelling its members come. It is
// the slow way, for the records of other programs, and gives the same facts as written-lines.ts.

import { Buffer } from "node:buffer";
import { isProjectId } from "../../../platform/base/forms.ts";
import { kindOfName } from "../../../records/event-name.ts";
import { isNothing, isString } from "../../../records/item-view.ts";
import { JsonMembers } from "../../../records/json-members.ts";
import { TokenType } from "../../../records/table.ts";
import { timestampTokenMs } from "../../../records/timestamp.ts";
import { stringBeginning } from "../../../records/token-beginning.ts";
import { UuidForm, unescapedUuid, uuidBytes, uuidForm } from "../../../records/uuid.ts";
import { type Kind, kinds } from "../../../records/verdict.ts";
import { type EventFacts, Span, specialEventOf } from "../rules/event-facts.ts";
import { idText } from "../rules/id-text.ts";
import type { Rejection } from "../types.ts";
import { boundReceivedMs, boundTimeMs } from "./line-facts.ts";
import { viewed } from "./viewed-bytes.ts";

/** No name that counts has more characters; each may be escaped as \uXXXX. */
const nameBytesMax = 6 * 16;
/** The longest token that can be a project id or a kind. */
const wordBytesMax = 6 * 64 + 2;

const noBytes = Buffer.alloc(0);

/** A JSON value: body[start, end), quotes or brackets included. */
interface JsonText {
  readonly body: Buffer;
  readonly start: number;
  readonly end: number;
  readonly type: TokenType;
}

export class MemberFacts {
  readonly #members = new JsonMembers(noBytes);
  readonly #uuid = viewed(Buffer.alloc(uuidBytes));
  readonly #fields: Readonly<Record<string, Span>> = {
    uuid: new Span(),
    project_id: new Span(),
    event: new Span(),
    distinct_id: new Span(),
    timestamp: new Span(),
    received_at: new Span(),
    kind: new Span(),
    person_profile: new Span(),
  };
  readonly #groups = new Span();
  /** The project of the last line, be it a record or not; undefined where it names none. */
  projectId: string | undefined = undefined;

  /** Fills the facts from the JSON value body[start, end); else says why it is no record. */
  fill(facts: EventFacts, text: JsonText, storedAtMs: number): Rejection | undefined {
    const { body } = text;
    this.projectId = undefined;
    if (text.type !== TokenType.Object) return reject("not_a_record", "it is no object");
    facts.body = body;
    this.#readSpans(facts, text);
    this.projectId = this.#projectIdIn(body);
    const missing = ["uuid", "project_id", "event", "distinct_id"].find((name) =>
      isNothing(this.#field(name).type),
    );
    if (missing !== undefined) return reject("not_a_record", `it has no ${missing}`);
    facts.receivedAtMs = this.#receivedAtMs(body, storedAtMs);
    const timestamp = this.#field("timestamp");
    facts.timeMs = isString(timestamp.type)
      ? boundTimeMs(timestampTokenMs(body, timestamp.start, timestamp.end), facts.receivedAtMs)
      : facts.receivedAtMs;
    const fault = this.#fillNames(facts, body) ?? this.#fillKind(facts, body);
    return fault === undefined ? undefined : reject("invalid_field", fault);
  }

  #projectIdIn(body: Buffer): string | undefined {
    const id = wordAt(body, this.#field("project_id"));
    return id !== undefined && isProjectId(id) ? id : undefined;
  }

  #field(name: string): Span {
    return this.#fields[name]!;
  }

  #readSpans(facts: EventFacts, text: JsonText): void {
    const top: Readonly<Record<string, Span>> = {
      ...this.#fields,
      properties: facts.properties,
      $set: facts.set,
      $set_once: facts.setOnce,
      $unset: facts.unset,
    };
    this.#readMembers(top, text);
    const nested = {
      $set: facts.nestedSet,
      $set_once: facts.nestedSetOnce,
      $unset: facts.nestedUnset,
      $groups: this.#groups,
    };
    const { properties } = facts;
    this.#readMembers(
      nested,
      properties.type === TokenType.Object ? { body: text.body, ...properties } : undefined,
    );
    facts.groupsType = this.#groups.type;
  }

  /** Sets the spans of the members with these names; the last one of a name counts. */
  #readMembers(spans: Readonly<Record<string, Span>>, text: JsonText | undefined): void {
    for (const span of Object.values(spans)) span.type = TokenType.Absent;
    if (text === undefined) return;
    const members = this.#members;
    members.begin(text.body, text.start, text.end);
    while (members.next()) {
      if (members.nameEnd - members.nameStart > nameBytesMax) continue;
      const written = text.body.toString("utf8", members.nameStart, members.nameEnd);
      const name = members.nameHasEscape ? (JSON.parse(`"${written}"`) as string) : written;
      const span = Object.hasOwn(spans, name) ? spans[name] : undefined;
      if (span === undefined) continue;
      span.type = members.valueType;
      span.start = members.valueStart;
      span.end = members.valueEnd;
    }
  }

  #receivedAtMs(body: Buffer, storedAtMs: number): number {
    const { type, start, end } = this.#field("received_at");
    return boundReceivedMs(
      isString(type) ? timestampTokenMs(body, start, end) : Number.NaN,
      storedAtMs,
    );
  }

  #fillNames(facts: EventFacts, body: Buffer): string | undefined {
    const uuid = this.#uuidText(body);
    if (uuid === undefined) return "its uuid is no UUID";
    uuid.copy(this.#uuid.body);
    facts.uuidBody = this.#uuid.body;
    facts.uuidView = this.#uuid.view;
    facts.uuidAt = 0;
    if (this.projectId === undefined) return "its project_id is none";
    facts.projectId = this.projectId;
    takeSpan(facts.event, this.#field("event"));
    takeSpan(facts.id, this.#field("distinct_id"));
    const { start, end, type } = this.#field("distinct_id");
    facts.distinctId = type === TokenType.EmptyString ? "" : idText(body, start, end, type);
    return facts.distinctId === "" ? "its distinct_id is blank" : undefined;
  }

  #uuidText(body: Buffer): Buffer | undefined {
    const { start, end, type } = this.#field("uuid");
    if (type === TokenType.EscapedString) return unescapedUuid(body, start, end);
    if (type !== TokenType.PlainString) return undefined;
    return uuidForm(body, start + 1, end - 1) === UuidForm.None
      ? undefined
      : body.subarray(start + 1, end - 1);
  }

  #fillKind(facts: EventFacts, body: Buffer): string | undefined {
    const event = this.#field("event");
    if (!isString(event.type)) return "its event is no text";
    const name = stringBeginning(body, event.start, event.end);
    facts.special = specialEventOf(name);
    const kind = (kinds as readonly (string | undefined)[]).indexOf(
      wordAt(body, this.#field("kind")),
    );
    facts.kind = kind < 0 ? kindOfName(name) : (kind as Kind);
    const profile = this.#field("person_profile").type;
    facts.personProfile = profile !== TokenType.False;
    return isNothing(profile) || profile === TokenType.True || profile === TokenType.False
      ? undefined
      : "its person_profile is no boolean";
  }
}

function takeSpan(to: Span, { start, end, type }: Span): void {
  to.start = start;
  to.end = end;
  to.type = type;
}

/** The text of a short string; undefined for anything else. */
function wordAt(body: Buffer, { start, end, type }: Span): string | undefined {
  if (!isString(type) || end - start > wordBytesMax) return undefined;
  return JSON.parse(body.toString("utf8", start, end)) as string;
}

function reject(reason: Rejection["reason"], detail: string): Rejection {
  return { reason, detail };
}
