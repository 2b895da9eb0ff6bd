// Applies the rules to each item of a body, and writes the lines of accepted items to frames. The
// functions are synchronous, because all bodies share one verdict and one cursor object.

import { Buffer } from "node:buffer";
import type { ItemErrorCode } from "../../platform/base/errors.ts";
import { SentWith } from "../../platform/base/sent-with.ts";
import { judgeItem, judgeLengths } from "../../records/guards.ts";
import { type ItemView, isPlain } from "../../records/item-view.ts";
import {
  type JsonText,
  mergedBytesMax,
  namesBytesMax,
  PersonFields,
} from "../../records/person-fields.ts";
import type { RecordWriter } from "../../records/record.ts";
import type { RecordTemplate } from "../../records/record-template.ts";
import { Header, Row, type Scanner, TokenType } from "../../records/table.ts";
import {
  forgetReplaced,
  isStorable,
  keepReplaced,
  type RequestFacts,
  refuse,
  Verdict,
  warningBit,
} from "../../records/verdict.ts";
import type { RequestOfRules } from "../../rules/apply.ts";
import type { CompiledRules } from "../../rules/compile.ts";
import { hasReadableParts, retainedText } from "../../rules/cookieless.ts";
import { type CompiledSchema, type SchemaCheck, SchemaResult } from "../../rules/event-schema.ts";
import { dropDetail, mayHaveHint, type Typos, textOf, unnamed, warningHint } from "./hints.ts";
import { type Cursor, OutOfMemoryError, PlainForm, slowItemBytesMax } from "./plain-form.ts";
import type { QuarantinedItem } from "./quarantine-port.ts";
import { hasPositionIn, type RepairedBody } from "./repaired-body.ts";
import { type Rows, RuledItems, Ruling } from "./ruled-items.ts";
import type { FilterCode } from "./tally.ts";
import type { Work } from "./work.ts";
import { rowsAtOnceMax } from "./work-size.ts";

export type Job = RequestFacts &
  RequestOfRules &
  Pick<
    Work,
    | "body"
    | "repaired"
    | "scanner"
    | "unreadableSentAt"
    | "additions"
    | "tally"
    | "recordBytesMax"
    | "template"
    | "frames"
  > &
  Partial<Pick<Work, "rules" | "changesAddress" | "addresslessTemplate">> & {
    /** Takes an item that is not stored. */
    readonly quarantine?: (item: QuarantinedItem) => void;
    readonly pending?: Pick<Work["pending"], "fail" | "failed">;
  };

interface ItemTakerOptions {
  /** Scans single items, because the other scanner still contains the table of the body. */
  readonly slowScanner: Scanner;
  /** Creates a scanner for events that rules have changed. Not needed for jobs without rules. */
  readonly createScanner?: (rows: number) => Scanner;
  readonly records: RecordWriter;
  readonly typos: Typos;
  readonly onBug: (bug: unknown) => void;
}

const bugsReportedMax = 32;
const tooLargeDetail = `The project's rules must read the event, but it exceeds the maximum of ${slowItemBytesMax} bytes for such events`;
const noSaltDetail =
  "The gateway does not have the salt of the day, which cookieless events need: send the request again later";

export class ItemTaker {
  readonly #records: RecordWriter;
  readonly #typos: Typos;
  readonly #onBug: (bug: unknown) => void;
  readonly #plainForm: PlainForm;
  readonly #personFields: PersonFields;
  readonly #verdict = new Verdict();
  readonly #otherVerdict = new Verdict();
  readonly #cursor: Cursor;
  readonly #createScanner: ((rows: number) => Scanner) | undefined;
  readonly #slowScanner: Scanner;
  #ruledSlice: RuledItems | undefined = undefined;
  #ruledSingle: RuledItems | undefined = undefined;
  /** Whether any item of the slice has a ruling. */
  #isRuled = false;
  #filterCode: FilterCode = "dropped_by_rule";
  readonly #bugsReported = new Set<string>();
  #beforeRow = 0;
  #beforeIdStart = 0;
  #beforeIdEnd = 0;

  constructor({ slowScanner, createScanner, records, typos, onBug }: ItemTakerOptions) {
    this.#slowScanner = slowScanner;
    this.#createScanner = createScanner;
    this.#records = records;
    this.#typos = typos;
    this.#onBug = onBug;
    this.#plainForm = new PlainForm(slowScanner);
    this.#personFields = new PersonFields(this.#plainForm.write);
    this.#cursor = { body: Buffer.alloc(0), table: slowScanner.table, row: 0 };
  }

  takeRows(job: Job, start: number, end: number): void {
    const cursor = this.#cursor;
    cursor.body = job.body;
    cursor.table = job.scanner.table;
    const firstItem = cursor.table[Header.FirstItem]!;
    this.#beforeRow = 0;
    this.#isRuled =
      job.rules !== undefined && this.#applyRules(job, job.rules, { first: start, end });
    for (let row = start; row < end && job.pending?.failed !== true; row++) {
      cursor.row = Header.Words + row * Row.Words;
      this.#takeItem(job, firstItem + row, row);
    }
  }

  /** Returns false if all items of the slice are unruled. */
  #applyRules(job: Job, rules: CompiledRules, { first, end }: Rows): boolean {
    const ruled = this.#ruled;
    if (job.additions !== undefined) {
      // Each item must be rewritten before the rules see it.
      ruled.forget(first);
      return true;
    }
    try {
      return ruled.takeRows(rules, job, job, { first, end });
    } catch (bug) {
      if (bug instanceof OutOfMemoryError) throw bug;
      // The items are then given to the rules one by one, so that only the faulty one fails. If the
      // rules have already counted events, they count them again.
      this.#reportOnce(bug);
      ruled.forget(first);
      return true;
    }
  }

  get #ruled(): RuledItems {
    this.#ruledSlice ??= this.#createRuled(rowsAtOnceMax, false);
    return this.#ruledSlice;
  }

  /** Takes items that were rewritten. */
  get #ruledAlone(): RuledItems {
    this.#ruledSingle ??= this.#createRuled(1, true);
    return this.#ruledSingle;
  }

  #createRuled(rowsMax: number, takesAll: boolean): RuledItems {
    const { changeItems, planRows } = this.#slowScanner;
    const createScanner = this.#createScanner!;
    return new RuledItems({ changeItems, planRows, createScanner, rowsMax, takesAll });
  }

  #takeItem(job: Job, index: number, row: number): void {
    const verdict = this.#verdict;
    let item: ItemView;
    let bytes = 0;
    try {
      const ruled = this.#ruledItem(job, row);
      if (ruled === undefined) {
        if (job.pending?.failed !== true) job.tally.filter(index, this.#filterCode);
        return;
      }
      item = this.#judge(job, ruled);
      if (isStorable(verdict)) bytes = this.#records.measure(item, verdict, this.#templateFor(job));
    } catch (bug) {
      if (bug instanceof OutOfMemoryError) throw bug;
      // Only this event is dropped. With a 503, every retry of the batch would fail as well.
      this.#reportOnce(bug);
      const detail = "The gateway failed on this event only, because of a bug: please report it";
      this.#fail(job, index, "unreadable_event", detail);
      return;
    }
    if (!isStorable(verdict)) this.#drop(job, index, item);
    else if (bytes > job.recordBytesMax) {
      const detail = `The record takes ${bytes} bytes, more than the maximum of ${job.recordBytesMax}`;
      this.#fail(job, index, "event_too_large", detail);
    } else this.#store(job, index, item, bytes);
  }

  /**
   * Returns the item for the guards: the item in the body, its plain form, or the text that the
   * rules have changed. Returns undefined if the rules filter the event. If the item cannot be
   * read, the verdict has the error.
   */
  #ruledItem(job: Job, row: number): ItemView | undefined {
    const verdict = this.#verdict;
    const cursor = this.#cursor;
    verdict.drop = undefined;
    verdict.error = undefined;
    verdict.changedByRules = job.changesAddress ?? false;
    verdict.schema = undefined;
    verdict.hidesAddress = false;
    if (!this.#isRuled) return this.#wholeItem(job, verdict) ?? cursor;
    const ruled = this.#ruledSlice!;
    const ruling = ruled.rulingOf(row);
    return ruling === Ruling.Stored ? cursor : this.#followRuling(job, row, ruling);
  }

  /** This is separate from the path of most events, so that V8 inlines that path. */
  #followRuling(job: Job, row: number, ofSlice: Ruling): ItemView | undefined {
    const verdict = this.#verdict;
    let item: ItemView = this.#cursor;
    let ruled = this.#ruled;
    let ruling = ofSlice;
    let at = row;
    if (ruling === Ruling.Unruled || ruling === Ruling.None) {
      const whole = this.#wholeItem(job, verdict);
      if (whole === undefined || ruling === Ruling.Unruled) return whole ?? item;
      item = whole;
      ruled = this.#ruledAlone;
      at = (item.row - Header.Words) / Row.Words;
      const items = { body: item.body, scanner: this.#scannerOf(job, item) };
      if (!ruled.takeRows(job.rules!, job, items, { first: at, end: at + 1 })) return item;
      ruling = ruled.rulingOf(at);
    }
    switch (ruling) {
      case Ruling.Stored:
        return item;
      case Ruling.Valid:
        return this.#validItem(item, ruled.schemaOf(at));
      case Ruling.Same:
        return this.#applySchema(job, item, ruled.checkOf(at));
      case Ruling.Edited:
        return this.#changedItem(job, ruled, at);
      case Ruling.Changed: {
        const changed = this.#changedItem(job, ruled, at);
        verdict.hidesAddress = ruled.isCookieless(at);
        return isStorable(verdict) ? this.#applySchema(job, changed, ruled.checkOf(at)) : changed;
      }
      case Ruling.TooLarge:
        refuse(verdict, "event_too_large", tooLargeDetail);
        return item;
      case Ruling.NoCookielessId:
        verdict.drop = "no_cookieless_id";
        verdict.detail = ruled.refusalOf(at);
        return item;
      case Ruling.NoSalt:
        job.pending?.fail("unavailable", noSaltDetail);
        return undefined;
      case Ruling.Filtered:
        this.#filterCode = "dropped_by_rule";
        return undefined;
      case Ruling.Quarantined:
        this.#filterCode = "quarantined";
        this.#quarantine(job, { reason: "rule", detail: "", rule: ruled.ruleOf(at)?.name });
        return undefined;
      default:
        throw new Error(`row ${at} has no ruling: ${ruling}`);
    }
  }

  /** Returns the changed item in plain form. If it cannot be read, the verdict has the error. */
  #changedItem(job: Job, ruled: RuledItems, row: number): ItemView {
    const verdict = this.#verdict;
    const item = ruled.changedItem(row);
    verdict.changedByRules = true;
    return isPlain(item) ? item : (this.#plainForm.of(item, verdict, job.tally) ?? item);
  }

  /** Returns the item in plain form, with the additions of the request; undefined on an error. */
  #wholeItem({ additions, tally, rules }: Job, verdict: Verdict): ItemView | undefined {
    const cursor = this.#cursor;
    const plain = isPlain(cursor) ? cursor : this.#plainForm.of(cursor, verdict, tally);
    if (additions === undefined || plain === undefined) return plain;
    const isCookieless = rules?.cookieless !== undefined;
    return this.#plainForm.withAdditions(plain, { members: additions, isCookieless }, verdict);
  }

  /** Returns the scanner whose table has the item. */
  #scannerOf(job: Job, item: ItemView): Scanner {
    return item === this.#cursor ? job.scanner : this.#slowScanner;
  }

  #templateFor(job: Job): RecordTemplate {
    return (this.#verdict.hidesAddress ? job.addresslessTemplate : undefined) ?? job.template;
  }

  /**
   * Applies the mode of the event's schema to what it has found. Returns undefined if the item goes
   * into quarantine.
   */
  #applySchema(job: Job, item: ItemView, check: SchemaCheck | undefined): ItemView | undefined {
    if (check === undefined) return item;
    const { schema, errors, stamp } = check;
    if (errors.length === 0) return this.#validItem(item, schema);
    this.#verdict.schema = stamp;
    schema.counts[SchemaResult.invalid]!++;
    if (schema.mode !== "quarantine") return item;
    this.#filterCode = "quarantined";
    this.#quarantine(job, { reason: "schema", detail: errors.join("; "), rule: schema.event });
    return undefined;
  }

  #validItem(item: ItemView, { counts, valid }: CompiledSchema): ItemView {
    counts[SchemaResult.valid]!++;
    this.#verdict.schema = valid.stamp;
    return item;
  }

  /** Puts the current item of the body into quarantine, if it may be stored. */
  #quarantine(job: Job, why: Pick<QuarantinedItem, "reason" | "detail" | "rule">): void {
    const text = this.#storableText(job);
    if (text !== undefined) job.quarantine?.({ ...text, ...why, rulesVersion: job.rules?.version });
  }

  /**
   * Returns the current item of the body as the client sent it. In a project with `cookieless`,
   * returns it in normal form, in which each member is there once, and removes what is not stored of
   * a cookieless event. Returns undefined if this is not possible.
   */
  #storableText(job: Job): JsonText | undefined {
    const cursor = this.#cursor;
    const { rules } = job;
    if (rules?.cookieless === undefined || job.quarantine === undefined) return textOfItem(cursor);
    if (!hasReadableParts(cursor)) return undefined;
    // The quarantine does not store such a large item.
    if (bytesOf(cursor) > slowItemBytesMax) return textOfItem(cursor);
    const verdict = this.#otherVerdict;
    const normalForm = (): ItemView | undefined => this.#plainForm.of(cursor, verdict, job.tally);
    try {
      const { additions } = job;
      const plain = normalForm();
      const whole =
        plain === undefined || additions === undefined
          ? plain
          : this.#plainForm.withAdditions(
              plain,
              { members: additions, isCookieless: true },
              verdict,
            );
      if (whole === undefined || !hasReadableParts(whole)) return undefined;
      const scanner = this.#slowScanner;
      const found = this.#ruledAlone.withoutVisitor(rules, job, { item: whole, scanner });
      if (found === undefined) return undefined;
      const { isCookieless } = found;
      const item = isCookieless || additions === undefined ? found.item : normalForm();
      if (item === undefined) return undefined;
      const body = retainedText(item, isCookieless);
      return { body, start: 0, end: body.length };
    } catch (bug) {
      if (bug instanceof OutOfMemoryError) throw bug;
      this.#reportOnce(bug);
      return undefined;
    }
  }

  /** Judges the item, unless it has an error. Returns the item. */
  #judge(job: Job, item: ItemView): ItemView {
    const verdict = this.#verdict;
    if (!isStorable(verdict)) return item;
    judgeItem(item, job, verdict);
    const sentAt = job.unreadableSentAt;
    if (sentAt !== undefined && sentAt.length > 0)
      keepReplaced(verdict, "sent_at", simpleToken(sentAt));
    if (job.additions !== undefined && isStorable(verdict)) {
      judgeLengths(item, verdict);
      this.#warnIgnored(this.#plainForm.ignored.replaced);
    }
    if (
      verdict.hasPersonFields &&
      isStorable(verdict) &&
      !this.#personFields.merge(item, verdict)
    ) {
      const detail = `Merging would exceed ${mergedBytesMax} bytes of $set or $set_once, or ${namesBytesMax} bytes of $unset`;
      refuse(verdict, "event_too_large", detail);
    }
    if (job.rules !== undefined && verdict.replaced !== "") {
      if (forgetReplaced(verdict, job.rules.partlyChanged)) verdict.changedByRules = true;
    }
    return item;
  }

  #warnIgnored(members: string): void {
    if (members === "") return;
    const verdict = this.#verdict;
    verdict.warnings |= warningBit.invalid_options;
    verdict.replaced = verdict.replaced === "" ? members : `${verdict.replaced},${members}`;
  }

  #drop(job: Job, index: number, item: ItemView): void {
    const { tally } = job;
    const { drop, error, detail } = this.#verdict;
    const typos = this.#typos;
    if (drop === "removed") tally.remove(index);
    else if (drop !== undefined) {
      const explanation = !tally.namesDrops
        ? unnamed
        : drop === "no_cookieless_id"
          ? { detail, hint: "" }
          : dropDetail(drop, item, { typos, isBatch: this.#isBatch() });
      tally.drop(index, drop, explanation);
      this.#quarantine(job, { reason: drop, detail: textOf(explanation) });
    } else if (error !== undefined) {
      this.#fail(job, index, error, detail);
    }
  }

  #fail(job: Job, index: number, error: ItemErrorCode, detail: string): void {
    job.tally.fail(index, error, { detail, hint: "" });
    this.#quarantine(job, { reason: error, detail });
  }

  #store(job: Job, index: number, item: ItemView, bytes: number): void {
    const verdict = this.#verdict;
    const sink = job.frames.sinkFor(bytes, index, sentWith(verdict, job));
    this.#records.write(item, verdict, this.#templateFor(job), sink);
    if (verdict.uuid !== "new" && item === this.#cursor) this.#compareUuid(item);
    if (job.repaired !== undefined) this.#warnOfRepairs(job.repaired);
    if (job.unreadableSentAt !== undefined && job.tally.accepted === 0)
      verdict.warnings |= warningBit.invalid_sent_at;
    const hint =
      mayHaveHint(verdict.warnings) && job.tally.namesWarnings
        ? warningHint(verdict.warnings, item, this.#typos)
        : "";
    job.tally.store(index, verdict, hint);
  }

  /** Compares only consecutive events. Comparing all would take 5 % of the time of a batch. */
  #compareUuid({ body, table, row }: ItemView): void {
    const verdict = this.#verdict;
    const { distinctIdStart, distinctIdEnd } = verdict;
    const before = this.#beforeRow;
    if (before > 0) {
      const [uuidEnd, beforeEnd] = [table[row + Row.UuidEnd]!, table[before + Row.UuidEnd]!];
      const mayBeSame = body[uuidEnd - 2] === body[beforeEnd - 2];
      if (mayBeSame && this.#isReused(row, before)) verdict.warnings |= warningBit.reused_uuid;
    }
    this.#beforeRow = row;
    this.#beforeIdStart = distinctIdStart;
    this.#beforeIdEnd = distinctIdEnd;
  }

  #isReused(row: number, before: number): boolean {
    const { body, table } = this.#cursor;
    const isSame = (start: number, end: number): boolean =>
      body.compare(
        body,
        table[before + start],
        table[before + end],
        table[row + start],
        table[row + end],
      ) === 0;
    if (!isSame(Row.UuidStart, Row.UuidEnd)) return false;
    const { distinctIdStart, distinctIdEnd } = this.#verdict;
    const [idStart, idEnd] = [this.#beforeIdStart, this.#beforeIdEnd];
    return (
      !isSame(Row.EventStart, Row.EventEnd) ||
      body.compare(body, idStart, idEnd, distinctIdStart, distinctIdEnd) !== 0
    );
  }

  #warnOfRepairs({ malformed, nonFinite }: RepairedBody): void {
    const { table, row } = this.#cursor;
    const [start, end] = [table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!];
    const verdict = this.#verdict;
    if (hasPositionIn(malformed, start, end)) verdict.warnings |= warningBit.invalid_utf8;
    if (hasPositionIn(nonFinite, start, end)) verdict.warnings |= warningBit.non_finite_number;
  }

  #isBatch(): boolean {
    const { table } = this.#cursor;
    return (
      table[Header.BatchType] !== TokenType.Absent || table[Header.RootType] === TokenType.Array
    );
  }

  #reportOnce(bug: unknown): void {
    const text = String(bug);
    if (this.#bugsReported.size >= bugsReportedMax || this.#bugsReported.has(text)) return;
    this.#bugsReported.add(text);
    this.#onBug(bug);
  }
}

function textOfItem({ body, table, row }: ItemView): JsonText {
  return { body, start: table[row + Row.ItemStart]!, end: table[row + Row.ItemEnd]! };
}

function bytesOf({ table, row }: ItemView): number {
  return table[row + Row.ItemEnd]! - table[row + Row.ItemStart]!;
}

function sentWith(verdict: Verdict, { receivedAtMs }: RequestFacts): SentWith {
  if (verdict.uuid !== "new") return SentWith.Uuid;
  const isTimeAdded = Number.isNaN(verdict.timestampSentMs) && verdict.timestampMs === receivedAtMs;
  return isTimeAdded ? SentWith.Neither : SentWith.Time;
}

function simpleToken(token: Buffer): Buffer {
  const text = token.toString("latin1", 0, 32);
  const isSimple = text.startsWith('"') || /^-?\d{1,15}(?:\.\d{1,15})?$/.test(text);
  return isSimple ? token : Buffer.from(JSON.stringify(token.toString("utf8", 0, 512)));
}
