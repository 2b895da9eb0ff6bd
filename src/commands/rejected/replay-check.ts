// Prepares a rejected item for a replay with the gateway's own code: whether it is valid now, the
// time and uuid that its event gets, and whether the rules of the project would store it.

import { Buffer } from "node:buffer";
import { randomFillSync } from "node:crypto";
import { type Explanation, Typos, textOf } from "../../gateway/intake/hints.ts";
import { ItemTaker, type Job } from "../../gateway/intake/items.ts";
import { PlainForm } from "../../gateway/intake/plain-form.ts";
import { type FilterCode, Tally } from "../../gateway/intake/tally.ts";
import type { RejectedItem } from "../../gateway/quarantine/rejected-item.ts";
import type { ItemErrorCode } from "../../platform/base/errors.ts";
import type { DropCode } from "../../platform/base/warnings.ts";
import { type ItemView, isPlain } from "../../records/item-view.ts";
import { createNativeScanner } from "../../records/native.ts";
import { JsonRecordWriter, type RecordWriter } from "../../records/record.ts";
import { Header, Row, ScanStatus } from "../../records/table.ts";
import { UuidSource } from "../../records/uuid.ts";
import { Verdict } from "../../records/verdict.ts";
import type { CompiledRules } from "../../rules/compile.ts";
import { type MemberPath, withMember, withoutMember } from "./item-text.ts";

/** The changes of `--set` and `--remove`, in the order of the arguments of each. */
export interface Changes {
  readonly set: readonly { readonly path: MemberPath; readonly value: string }[];
  readonly remove: readonly MemberPath[];
}

type Prepared =
  /** The JSON text to send. */
  { readonly kind: "valid"; readonly text: string } | ({ readonly kind: "invalid" } & Note);

/** Why an item is not stored. The detail may be empty. */
interface Note {
  readonly code: string;
  readonly detail: string;
}

const scannedRows = 16;
/** Larger than any record of an item in quarantine. The gateway checks the limit again. */
const recordBytesMax = 16_777_216;

export class ReplayCheck {
  readonly #scanner = createNativeScanner(scannedRows);
  readonly #plainForm = new PlainForm(createNativeScanner(scannedRows));
  readonly #records = new JsonRecordWriter({
    uuids: new UuidSource({ randomFill: (bytes) => randomFillSync(bytes) }),
  });
  #timestampMs = Number.NaN;
  #hasUuid = false;
  readonly #taker: ItemTaker;
  readonly #ruledTaker: ItemTaker;

  constructor() {
    const records: RecordWriter = {
      begin: (context) => this.#records.begin(context),
      measure: (_, { timestampMs, uuid }) => {
        this.#timestampMs = timestampMs;
        this.#hasUuid = uuid !== "new";
        return 0;
      },
      write: () => {},
    };
    const takerOf = (written: RecordWriter) =>
      new ItemTaker({
        slowScanner: createNativeScanner(scannedRows),
        createScanner: createNativeScanner,
        records: written,
        typos: new Typos(),
        onBug: (bug) => {
          throw bug;
        },
      });
    this.#taker = takerOf(records);
    this.#ruledTaker = takerOf({ ...records, measure: () => 0 });
  }

  /**
   * Returns why the gateway would not store a prepared text under these rules, with a code such as
   * `rule wrong-orders` or `dropped_by_rule`; undefined if it would. A replay is not from a bot.
   */
  filteredBy(text: string, line: RejectedItem, rules: CompiledRules): Note | undefined {
    return rules.readsEvents ? this.#judge(text, line, rules) : undefined;
  }

  /**
   * Returns the text to send. Its event gets the time that it would have got when it was received:
   * a replay corrects no clock and knows no time of receipt. An event without a uuid gets the id of
   * the item, so that a second replay sends the same uuid. `rules` are those of the project.
   */
  prepare(
    line: RejectedItem,
    { set, remove }: Changes,
    rules: CompiledRules | undefined,
  ): Prepared {
    let text = line.item;
    if (text.startsWith("{")) {
      for (const path of remove) text = withoutMember(text, path);
      for (const { path, value } of set) text = withMember(text, path, value);
      if (line.sdk !== undefined) text = this.#ofV1(text, line.sdk, rules);
    }
    const note = this.#judge(text, line);
    if (note !== undefined) return { kind: "invalid", ...note };
    text = withMember(text, ["timestamp"], JSON.stringify(timeText(this.#timestampMs)));
    text = withoutMember(text, ["offset"]);
    if (!this.#hasUuid) text = withMember(text, ["uuid"], JSON.stringify(line.id));
    return { kind: "valid", text };
  }

  /** Adds to `properties` what an event of the newer protocol has next to them or in headers. */
  #ofV1(text: string, sdk: object, rules: CompiledRules | undefined): string {
    const item = this.#scanned(text);
    const verdict = new Verdict();
    const plain = isPlain(item) ? item : this.#plainForm.of(item, verdict, new Tally());
    if (plain === undefined) return text;
    const members = JSON.stringify(sdk).slice(1, -1);
    const isCookieless = rules?.cookieless !== undefined;
    const added = this.#plainForm.withAdditions(plain, { members, isCookieless }, verdict);
    if (added === undefined || added === item) return text;
    const { body, table, row } = added;
    return body.toString("utf8", table[row + Row.ItemStart], table[row + Row.ItemEnd]);
  }

  #judge(
    text: string,
    { lane, received_at, skew_ms: skewMs = 0 }: RejectedItem,
    rules?: CompiledRules,
  ) {
    const { body } = this.#scanned(text);
    const receivedAtMs = Date.parse(received_at);
    const tally = new OneNote();
    const frame = { buffer: Buffer.alloc(0), length: 0, events: 0, commit() {}, rollback() {} };
    const job: Job = {
      body,
      scanner: this.#scanner,
      tally,
      receivedAtMs,
      recordBytesMax,
      skewMs,
      needsTimestamp: false,
      isEngage: false,
      unreadableSentAt: undefined,
      repaired: undefined,
      additions: undefined,
      lane,
      isBot: false,
      // The gateway receives a replay now, from an operator.
      visitor: {
        address: "",
        userAgent: "",
        request: { needsTimestamp: false, isEngage: false, receivedAtMs: Date.now(), skewMs: 0 },
        zoneLookups: { failed: 0 },
      },
      rules,
      quarantine: ({ reason, rule = "", detail }) => {
        tally.quarantined = { code: `${reason} ${rule}`, detail };
      },
      frames: { sinkFor: () => frame, endTurn() {}, finish() {}, abandon() {} },
      template: this.#records.begin({
        projectId: "replay",
        lane,
        receivedAtMs,
        sentAtMs: Number.NaN,
        clientAddress: "",
      }),
    };
    const taker = rules === undefined ? this.#taker : this.#ruledTaker;
    taker.takeRows(job, 0, 1);
    return tally.note;
  }

  #scanned(text: string): ItemView {
    const body = Buffer.from(`{"batch":[${text}]}`);
    const status = this.#scanner.scan(body);
    if (status !== ScanStatus.Ok) throw new Error(`cannot scan a rejected item: status ${status}`);
    return { body, table: this.#scanner.table, row: Header.Words };
  }
}

/** Returns a time as ISO 8601, in the years 0 to 9999. */
function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

class OneNote extends Tally {
  note: Note | undefined = undefined;
  quarantined: Note | undefined = undefined;

  override filter(_: number, code: FilterCode): void {
    this.note = (code === "quarantined" ? this.quarantined : undefined) ?? { code, detail: "" };
  }

  override drop(_: number, code: DropCode, explanation: Explanation): void {
    this.note = { code, detail: textOf(explanation) };
  }

  override remove(): void {
    this.note = { code: "performance_event", detail: "$performance_event is not stored" };
  }

  override fail(_: number, code: ItemErrorCode, explanation: Explanation): void {
    this.note = { code, detail: textOf(explanation) };
  }
}
