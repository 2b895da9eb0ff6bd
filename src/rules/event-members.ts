// The members of one event that the rules name, and the changes to them. Members are found for many
// events in one call of the addon. Each change is visible to the rules after it. `changes` collects
// the edits of the event's text.

import type { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";
import {
  type ConstantText,
  Found,
  FoundPath,
  FoundType,
  levelIn,
  MemberLevel,
  type MemberNames,
  RowPart,
} from "../records/found-members.ts";
import { extraTypes, type ItemView, typeAt } from "../records/item-view.ts";
import { isEmptyArray, isEmptyObject } from "../records/property-check.ts";
import {
  Extra,
  ExtraShift,
  extraOf,
  FieldShift,
  type MemberFinder,
  Row,
  TokenType,
} from "../records/table.ts";
import type { CompiledRules } from "./compile.ts";
import { lastTopPath } from "./compiled-rule.ts";
import type { SchemaMembers } from "./event-schema.ts";
import { type ItemChanges, typeOfText } from "./item-edits.ts";

const dollar = 0x24;
const State = {
  Sent: 0,
  Removed: 1,
  /** The value is in the texts of the changes. */
  Replaced: 2,
  /** The value is the hash of the sent value, which the addon writes. */
  Hashed: 3,
  /** The value is a hash, in the texts of the changes. */
  ReplacedByHash: 4,
} as const;

const entriesAtFirst = 2_048;

/** The objects of the levels. */
const levelNames = ["properties", "$set", "$set_once"] as const;
const levels = levelNames.length;

/** A member of the event itself. */
interface Field {
  readonly type: TokenType;
  readonly start: number;
  readonly end: number;
}

/**
 * An entry is a number from 1 on. The entries of found members come first, and then those of members
 * that the rules have added to the current event.
 */
export class EventMembers implements SchemaMembers {
  readonly #changes: ItemChanges;
  #rules!: CompiledRules;
  #names!: MemberNames;
  #found = new Uint32Array(entriesAtFirst * Found.Words);
  #states = new Uint8Array(entriesAtFirst);
  /** The entry with the same path before an entry, or 0. */
  #before = new Uint32Array(entriesAtFirst);
  /** The span of a replaced value in the texts of the changes, and its type. */
  #textStarts = new Uint32Array(entriesAtFirst);
  #textEnds = new Uint32Array(entriesAtFirst);
  #textTypes = new Uint8Array(entriesAtFirst);
  #entryCount = 0;
  /** End of the added entries. */
  #addedEnd = 0;
  /** A bit for each level to which a member was added. */
  #addedLevels = 0;
  #item!: ItemView;
  #first = 0;
  #end = 0;
  /** Whether the entries have the results of the event's schema. */
  #isJudged = false;
  /** Whether the addon is sure that the members pass the event's schema as they were sent. */
  isValid = false;
  /** By path: the last entry of the event that has it. `#lastOf` ignores entries of other events. */
  #last = new Uint32Array(64);
  /** A bit for each of the first paths whose member of the event itself is removed. */
  #removedFields = 0;
  /** By level: number of removed members, and the last object and its members that are left. */
  readonly #removedIn = new Uint32Array(levels);
  readonly #containerStarts = new Uint32Array(levels);
  readonly #containerMembers = new Uint32Array(levels);

  constructor(changes: ItemChanges) {
    this.#changes = changes;
  }

  /** Begins without rows. */
  begin(rules: CompiledRules): void {
    this.#rules = rules;
    this.#names = rules.names;
    this.#entryCount = 0;
    this.#end = 0;
    const paths = rules.names.levels.length;
    if (this.#last.length < paths) this.#last = new Uint32Array(2 * paths);
  }

  /**
   * Finds the members of the rows with such a task, which are those of plain items that the scanner
   * has scanned. The changes get the edits of the rows to edit, which are not to be opened.
   */
  find(scanner: MemberFinder, body: Buffer, tasks: Uint32Array): void {
    const { texts } = this.#rules;
    const { slots } = this.#names;
    const changes = this.#changes;
    for (;;) {
      changes.beginEdits(tasks);
      const count = scanner.findMembers(body, tasks, texts, slots, this.#found, changes.words);
      const fits = count * Found.Words <= this.#found.length;
      if (!fits) this.#reserve(2 * count);
      if (!changes.hasRoomForEdits(tasks) || !fits) continue;
      changes.takeEdits(tasks);
      this.#entryCount = count;
      this.#end = 0;
      return;
    }
  }

  #reserve(entries: number): void {
    const grown = <Words extends Uint8Array | Uint32Array>(from: Words, to: Words): Words => {
      to.set(from);
      return to;
    };
    this.#found = grown(this.#found, new Uint32Array(entries * Found.Words));
    this.#states = grown(this.#states, new Uint8Array(entries));
    this.#before = grown(this.#before, new Uint32Array(entries));
    this.#textStarts = grown(this.#textStarts, new Uint32Array(entries));
    this.#textEnds = grown(this.#textEnds, new Uint32Array(entries));
    this.#textTypes = grown(this.#textTypes, new Uint8Array(entries));
  }

  /** Starts with an event without any members, for rules that read none. */
  openNone(item: ItemView): void {
    this.#item = item;
    this.#first = this.#end;
    this.#addedEnd = this.#entryCount;
    this.#addedLevels = 0;
    this.#removedFields = 0;
    this.#isJudged = false;
    this.isValid = false;
  }

  /**
   * Starts with the item of a row. The rows must be opened in ascending order. Rows without an entry
   * can be omitted.
   */
  open(item: ItemView, row: number): void {
    this.openNone(item);
    this.#openSchema(row);
    const found = this.#found;
    const count = this.#entryCount;
    while (this.#end < count) {
      const at = this.#end * Found.Words;
      if (found[at + Found.Row] !== row) break;
      const path = found[at + Found.Path]!;
      this.#states[this.#end] = State.Sent;
      if (path !== FoundPath.Container && path !== FoundPath.Unnamed) {
        this.#before[this.#end] = this.#lastOf(path);
        this.#last[path] = this.#end + 1;
      }
      this.#end++;
    }
  }

  #openSchema(row: number): void {
    const at = this.#end * Found.Words;
    const found = this.#found;
    if (this.#end === this.#entryCount || found[at + Found.Row] !== row) return;
    if (found[at + Found.Path] !== FoundPath.Schema) return;
    this.#isJudged = true;
    this.isValid = (found[at + Found.Type]! & FoundType.Sure) !== 0;
    this.#end++;
    this.#first = this.#end;
  }

  /** Notes that the event has got another schema than that of its task. */
  changeSchema(): void {
    this.#isJudged = false;
    this.isValid = false;
  }

  /** Returns the last entry of the event with a path, removed or not, or 0. */
  #lastOf(path: number): number {
    const entry = this.#last[path]!;
    const isOfEvent =
      (entry > this.#first && entry <= this.#end) ||
      (entry > this.#entryCount && entry <= this.#addedEnd);
    return isOfEvent && this.#found[(entry - 1) * Found.Words + Found.Path] === path ? entry : 0;
  }

  /** Returns the member that a reader of the event sees, or 0. */
  entryOf(path: number): number {
    let entry = this.#lastOf(path);
    while (entry !== 0 && this.#states[entry - 1] === State.Removed)
      entry = this.#before[entry - 1]!;
    return entry;
  }

  has(path: number): boolean {
    if (this.entryOf(path) !== 0) return true;
    if (levelIn(path) !== 0 && this.#nextAdded(levelIn(path), 0) !== 0) return true;
    if (path > lastTopPath || this.#isFieldRemoved(path)) return false;
    return this.#fieldOf(path).type !== TokenType.Absent;
  }

  isSent(entry: number): boolean {
    return this.#states[entry - 1] === State.Sent;
  }

  isSure(entry: number): boolean {
    if (!this.#isJudged || !this.isSent(entry)) return false;
    return (this.#found[(entry - 1) * Found.Words + Found.Type]! & FoundType.Sure) !== 0;
  }

  /** Returns the buffer with the value of an entry, at [startOf, endOf). */
  bodyOf(entry: number): Buffer {
    const state = this.#states[entry - 1];
    if (state === State.Sent) return this.#item.body;
    if (state === State.Hashed) this.#writeHash(entry);
    return this.#changes.texts;
  }

  typeOf(entry: number): TokenType {
    const state = this.#states[entry - 1];
    if (state === State.Hashed) return TokenType.PlainString;
    return state === State.Sent
      ? ((this.#found[(entry - 1) * Found.Words + Found.Type]! & FoundType.Token) as TokenType)
      : (this.#textTypes[entry - 1] as TokenType);
  }

  startOf(entry: number): number {
    if (this.#states[entry - 1] === State.Hashed) this.#writeHash(entry);
    return this.#states[entry - 1] === State.Sent
      ? this.#found[(entry - 1) * Found.Words + Found.ValueStart]!
      : this.#textStarts[entry - 1]!;
  }

  endOf(entry: number): number {
    if (this.#states[entry - 1] === State.Hashed) this.#writeHash(entry);
    return this.#states[entry - 1] === State.Sent
      ? this.#found[(entry - 1) * Found.Words + Found.ValueEnd]!
      : this.#textEnds[entry - 1]!;
  }

  #levelOf(path: number): number {
    return this.#names.levels[path]!;
  }

  nextProperty(entry: number): number {
    let next = this.#next(entry === 0 ? this.#first : entry);
    while (
      next !== 0 &&
      (this.#states[next - 1] === State.Removed || !this.#isMemberOf(MemberLevel.Properties, next))
    )
      next = this.#next(next);
    return next;
  }

  /** Returns the next entry of the event after `entry` or `#first`, or 0. */
  #next(entry: number): number {
    if (entry < this.#end) return entry + 1;
    const next = Math.max(entry, this.#entryCount) + 1;
    return next > this.#addedEnd ? 0 : next;
  }

  pathAt(entry: number): number {
    return this.#found[(entry - 1) * Found.Words + Found.Path]!;
  }

  hasDollarAt(entry: number): boolean {
    if (entry > this.#entryCount) return this.nameAt(entry).startsWith("$");
    return this.#item.body[this.#nameStart(entry) + 1] === dollar;
  }

  nameAt(entry: number): string {
    if (entry > this.#entryCount) return this.#rules.pathNames[this.pathAt(entry) - 1]!.name;
    const { body } = this.#item;
    const start = this.#nameStart(entry);
    let end = start + 1;
    while (body[end] !== Ascii.Quote) end += body[end] === Ascii.Backslash ? 2 : 1;
    return JSON.parse(body.toString("utf8", start, end + 1)) as string;
  }

  #nameStart(entry: number): number {
    return this.#found[(entry - 1) * Found.Words + Found.Start]!;
  }

  /** Returns the next member with the same path that is not removed, or 0. */
  entryBefore(entry: number): number {
    let before = this.#before[entry - 1]!;
    while (before !== 0 && this.#states[before - 1] === State.Removed)
      before = this.#before[before - 1]!;
    return before;
  }

  /** Replaces a value by a part of the texts of the changes. */
  replace(entry: number, { start, end }: ConstantText): void {
    this.#states[entry - 1] = State.Replaced;
    this.#setText(entry, start, end);
  }

  /** Replaces the value of a member that is as sent by its hash. */
  hash(entry: number): void {
    this.#states[entry - 1] = State.Hashed;
  }

  /** Notes that `replace` has replaced the value by its hash. */
  noteHash(entry: number): void {
    this.#states[entry - 1] = State.ReplacedByHash;
  }

  isHashed(entry: number): boolean {
    return this.#states[entry - 1]! >= State.Hashed;
  }

  /** Adds a member that the event does not have. */
  add(path: number, { start, end }: ConstantText): void {
    const entry = this.#addedEnd + 1;
    if (entry > this.#states.length) this.#reserve(2 * entry);
    this.#before[entry - 1] = this.#lastOf(path);
    this.#addedEnd = entry;
    this.#addedLevels |= 1 << this.#levelOf(path);
    this.#found[(entry - 1) * Found.Words + Found.Path] = path;
    this.#states[entry - 1] = State.Replaced;
    this.#last[path] = entry;
    this.#setText(entry, start, end);
  }

  #setText(entry: number, start: number, end: number): void {
    this.#textStarts[entry - 1] = start;
    this.#textEnds[entry - 1] = end;
    this.#textTypes[entry - 1] = typeOfText(this.#changes.texts, start, end);
  }

  /** Writes a hash to the texts, for a rule or schema that reads it. */
  #writeHash(entry: number): void {
    const at = (entry - 1) * Found.Words;
    const value = this.#item.body.subarray(
      this.#found[at + Found.ValueStart],
      this.#found[at + Found.ValueEnd],
    );
    const start = this.#changes.addText(this.#rules.hash.ofJson(value));
    this.#states[entry - 1] = State.ReplacedByHash;
    this.#setText(entry, start, this.#changes.textsEnd);
  }

  remove(path: number): void {
    for (let entry = this.entryOf(path); entry !== 0; entry = this.entryBefore(entry))
      this.#states[entry - 1] = State.Removed;
    if (path <= lastTopPath) this.#removedFields |= 1 << path;
    this.#removeInside(path);
  }

  /** Removes all properties except the paths in `kept`. Returns whether there were others. */
  keepOnly(kept: ReadonlySet<number>, isObserved: boolean): boolean {
    let removes = false;
    for (let entry = this.nextProperty(0); entry !== 0; entry = this.nextProperty(entry)) {
      if (kept.has(this.pathAt(entry))) continue;
      if (isObserved) return true;
      removes = true;
      this.#states[entry - 1] = State.Removed;
    }
    return removes;
  }

  /** Adds the edits of all changes. `name` is a new name for an event without one, as JSON. */
  edit(name: string | undefined): void {
    const changes = this.#changes;
    this.#editMembers();
    let members = name === undefined ? "" : `"event":${name}`;
    for (let level = levels - 1; level >= 0; level--) {
      if ((this.#addedLevels & (1 << level)) === 0) continue;
      const member = this.#addTo(level);
      if (member !== "") members = members === "" ? member : `${members},${member}`;
    }
    for (let path = 1; path <= lastTopPath && this.#removedFields !== 0; path++) {
      const { type, start, end } = this.#fieldOf(path);
      if (!this.#isFieldRemoved(path) || type === TokenType.Absent) continue;
      const { nullText } = this.#rules;
      changes.replace(start, end, nullText.start, nullText.end);
      changes.scanText();
    }
    if (members === "") return;
    const { body, table, row } = this.#item;
    const [start, end] = [table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!];
    const text = changes.addText(isEmptyObject(body, start, end) ? members : `${members},`);
    changes.replace(start + 1, start + 1, text, changes.textsEnd);
    changes.scanText();
  }

  /** Adds the edits of found members, and reads the objects of each level. */
  #editMembers(): void {
    const changes = this.#changes;
    const found = this.#found;
    const removed = this.#removedIn;
    const starts = this.#containerStarts;
    this.#beginObjects();
    for (let entry = this.#first; entry < this.#end; entry++) {
      const at = entry * Found.Words;
      const path = found[at + Found.Path]!;
      const state = this.#states[entry]!;
      if (path === FoundPath.Container) {
        // The object of the event follows the object of the properties, and has precedence.
        const level = found[at + Found.Type]!;
        if (starts[level] !== found[at + Found.Container]) removed[level] = 0;
        starts[level] = found[at + Found.Container]!;
        this.#containerMembers[level] = found[at + Found.Ordinal]! - removed[level]!;
      } else if (state === State.Removed) {
        this.#cutEntry(at, path);
      } else if (state !== State.Sent) {
        const [start, end] = [found[at + Found.ValueStart]!, found[at + Found.ValueEnd]!];
        if (state === State.Hashed) changes.hash(start, end);
        else changes.replace(start, end, this.#textStarts[entry]!, this.#textEnds[entry]!);
        this.#noteType(path, this.typeOf(entry + 1));
      }
    }
  }

  #beginObjects(): void {
    // For so few elements, a loop is faster than `fill`.
    for (let level = 0; level < levels; level++)
      this.#removedIn[level] = this.#containerStarts[level] = 0;
  }

  /** Cuts the found member at a word of `#found`. */
  #cutEntry(at: number, path: number): void {
    const found = this.#found;
    const removed = this.#removedIn;
    const starts = this.#containerStarts;
    const level = this.#levelOf(path);
    if (starts[level] !== found[at + Found.Container]) {
      starts[level] = found[at + Found.Container]!;
      removed[level] = 0;
    }
    const isFirst = removed[level]! === found[at + Found.Ordinal]!;
    removed[level]!++;
    this.#cutMember(found[at + Found.Start]!, found[at + Found.ValueEnd]!, isFirst);
    this.#noteType(path, TokenType.Absent);
  }

  /** Notes the new type of a property, if the table has it. */
  #noteType(path: number, type: TokenType): void {
    const part = this.#names.rowParts[path]!;
    if (part === RowPart.None) return;
    if (part === RowPart.Span) this.#changes.scanText();
    else this.#changes.setPropertyType(part, type);
  }

  /** Cuts a member with one comma. `isFirst`: no member is left before it. */
  #cutMember(start: number, end: number, isFirst: boolean): void {
    const { body } = this.#item;
    if (isFirst) {
      let after = end;
      while (body[after]! <= Ascii.Space) after++;
      this.#changes.replace(start, body[after] === Ascii.Comma ? after + 1 : end, 0, 0);
    } else {
      let before = start - 1;
      while (body[before] !== Ascii.Comma) before--;
      this.#changes.replace(before, end, 0, 0);
    }
  }

  /** Writes the added members of a level, or returns a member of the event with them, or "". */
  #addTo(level: number): string {
    const start = this.#isFieldRemoved(level) ? 0 : this.#containerStarts[level]!;
    if (start !== 0) {
      this.#addToObject(level, start + 1);
      return "";
    }
    const added = this.#addedTexts(level);
    if (added === "") return "";
    const changes = this.#changes;
    const object = `{${added}}`;
    const field = this.#fieldOf(level);
    if (field.type === TokenType.Absent) return `"${levelNames[level]}":${object}`;
    if (level !== MemberLevel.Properties) this.#removedFields &= ~(1 << level);
    // The guards reject an event whose properties have another type.
    else if (
      field.type !== TokenType.Null &&
      !isEmptyArray(this.#item.body, field.start, field.end)
    )
      return "";
    changes.replace(field.start, field.end, changes.addText(object), changes.textsEnd);
    changes.scanText();
    return "";
  }

  /** Inserts the added members of a level at the beginning of its object. */
  #addToObject(level: number, at: number): void {
    const changes = this.#changes;
    const { commaText, pathNames } = this.#rules;
    let hasBefore = false;
    for (
      let entry = this.#nextAdded(level, 0);
      entry !== 0;
      entry = this.#nextAdded(level, entry)
    ) {
      const path = this.pathAt(entry);
      if (hasBefore) changes.replace(at, at, commaText.start, commaText.end);
      hasBefore = true;
      const name = pathNames[path - 1]!.text;
      changes.replace(at, at, name.start, name.end);
      changes.replace(at, at, this.#textStarts[entry - 1]!, this.#textEnds[entry - 1]!);
      this.#noteType(path, this.#textTypes[entry - 1] as TokenType);
    }
    if (hasBefore && this.#containerMembers[level]! > 0)
      changes.replace(at, at, commaText.start, commaText.end);
  }

  /** Returns the added members of a level as JSON, or "". */
  #addedTexts(level: number): string {
    const { texts } = this.#changes;
    let members = "";
    for (
      let entry = this.#nextAdded(level, 0);
      entry !== 0;
      entry = this.#nextAdded(level, entry)
    ) {
      const name = this.#rules.pathNames[this.pathAt(entry) - 1]!.text;
      const value = texts.toString("utf8", this.startOf(entry), this.endOf(entry));
      const member = texts.toString("utf8", name.start, name.end) + value;
      members = members === "" ? member : `${members},${member}`;
    }
    return members;
  }

  /** Returns the next added member of a level after an entry, or 0. 0 begins. */
  #nextAdded(level: number, entry: number): number {
    let next = Math.max(entry, this.#entryCount) + 1;
    for (; next <= this.#addedEnd; next++)
      if (this.#states[next - 1] !== State.Removed && this.#isMemberOf(level, next)) return next;
    return 0;
  }

  /**
   * After `edit`: writes the objects in the properties whose members were changed to the texts of
   * the changes, for a schema that reads them.
   */
  writeChangedObjects(): void {
    for (let entry = this.nextProperty(0); entry !== 0; entry = this.nextProperty(entry)) {
      if (levelIn(this.pathAt(entry)) === 0 || !this.isSent(entry)) continue;
      const changes = this.#changes;
      const value = changes.changedPart(
        this.#item.body,
        { start: this.startOf(entry), end: this.endOf(entry) },
        (one) => this.#rules.hash.ofJson(one),
      );
      const start = changes.addBytes(value);
      this.#states[entry - 1] = State.Replaced;
      this.#setText(entry, start, changes.textsEnd);
    }
  }

  /** Removes the members of an object that was removed or replaced. */
  #removeInside(path: number): void {
    const level = levelIn(path);
    if (level === 0) return;
    for (let entry = this.#next(this.#first); entry !== 0; entry = this.#next(entry))
      if (this.#isMemberOf(level, entry)) this.#states[entry - 1] = State.Removed;
  }

  #isMemberOf(level: number, entry: number): boolean {
    const path = this.pathAt(entry);
    return path !== FoundPath.Container && this.#levelOf(path) === level;
  }

  #isFieldRemoved(path: number): boolean {
    return ((this.#removedFields >>> path) & 1) !== 0;
  }

  /** Returns `$set`, `$set_once` or `$unset` of the event itself, or for 0 its properties. */
  #fieldOf(path: number): Field {
    const { table, row } = this.#item;
    const fields = table[row + Row.FieldTypes]!;
    const of = (type: TokenType, span: number): Field => ({
      type,
      start: table[span]!,
      end: table[span + 1]!,
    });
    switch (path) {
      case 0:
        return of(typeAt(fields, FieldShift.Properties), row + Row.PropertiesStart);
      case 1:
        return of(typeAt(fields, FieldShift.Set), row + Row.SetStart);
      case 2:
        return of(typeAt(fields, FieldShift.SetOnce), row + Row.SetOnceStart);
      default: {
        const unset = typeAt(extraTypes(this.#item), ExtraShift.Unset);
        return of(unset, extraOf(table, row) + Extra.UnsetStart);
      }
    }
  }
}
