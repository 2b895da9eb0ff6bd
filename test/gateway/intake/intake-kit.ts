// The real intake, scanner and rules on a fake publisher. The test decides when frames settle.

import { randomFillSync } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import type { BodyHint, Exchange } from "../../../src/gateway/http/port.ts";
import { createIntake } from "../../../src/gateway/intake/intake.ts";
import type { QuarantineTaker } from "../../../src/gateway/intake/quarantine-port.ts";
import type { MeteredProject, ProjectMeter } from "../../../src/gateway/projects/project.ts";
import type { FrameWaiter, Publisher } from "../../../src/gateway/publish/port.ts";
import type { ClientWarningTaker } from "../../../src/platform/base/client-warning.ts";
import type { Problem } from "../../../src/platform/base/errors.ts";
import type { FrameSink } from "../../../src/records/frame-sink.ts";
import { createNativeScanner } from "../../../src/records/native.ts";
import { JsonRecordWriter } from "../../../src/records/record.ts";
import type { BackgroundScanner } from "../../../src/records/table.ts";
import { UuidSource } from "../../../src/records/uuid.ts";
import type { CompiledRules } from "../../../src/rules/compile.ts";
import { bareExchange } from "./bare-exchange.ts";
import { FakeFrame } from "./fake-frame.ts";

export interface Sent {
  /** `stored N` or `stored N, filtered M`, or the problem's code; undefined before the answer. */
  readonly answer: string | undefined;
  /** The detail of the problem, or "". */
  readonly detail: string;
  readonly library: string;
  readonly work: Promise<void>;
}

export interface BodyOf {
  readonly name: string;
  readonly project: string;
  readonly events: number;
  readonly historical?: boolean;
  readonly padding?: number;
  /** The envelope's members are in the middle of the body, where only the scan finds them. */
  readonly hidden?: boolean;
}

interface SendOptions {
  readonly hint?: BodyHint | undefined;
  readonly deadlineMs?: number;
  readonly senderAddress?: string;
  readonly exchange?: Partial<Exchange>;
}

interface IntakeKitOptions {
  readonly createScanner?: (rows?: number) => BackgroundScanner;
  readonly projects?: readonly string[];
  readonly publisher?: Publisher;
  readonly meter?: ProjectMeter;
  readonly clientWarnings?: ClientWarningTaker;
  readonly rules?: CompiledRules;
  readonly quarantine?: QuarantineTaker;
}

const frameBytesMax = 524_288;
/** Shorter bodies are borrowed, like bodies that arrive in one piece. */
const borrowedBytesMax = 1_048_576;

const openMeter: ProjectMeter = {
  take: () => ({ giveBack() {}, countDropped() {}, countFiltered() {} }),
  refuseUnread: () => undefined,
  countStored() {},
  countUnknown() {},
};

export class IntakeKit {
  readonly placed: string[] = [];
  /** The stored lines. */
  readonly lines: string[] = [];
  readonly messageIds: string[] = [];
  heldBytes = 0;
  readonly eventsOfTurns: number[] = [];
  outcome: (project: string) => "stored" | "refused" | Promise<unknown> = () => "stored";
  streamOf: Publisher["streamOf"] = (lane) => lane;
  refusal: Publisher["refusal"] = () => undefined;
  createScanner: (rows?: number) => BackgroundScanner = createNativeScanner;
  monotonicMs: () => number = () => performance.now();
  onEvent: () => void = () => {};
  #eventsOfThisTurn = 0;
  #turnWatched = false;
  readonly #projectOf = new WeakMap<FrameSink, string>();
  readonly #intake;

  constructor(options: IntakeKitOptions = {}) {
    if (options.createScanner !== undefined) this.createScanner = options.createScanner;
    const { meter = openMeter } = options;
    const projects = new Map<string, MeteredProject>(
      (options.projects ?? ["a", "b", "c", "d"]).map((id) => [
        `key_${id}`,
        { id, name: id, keys: [`key_${id}`], enabled: true, meter, rules: options.rules },
      ]),
    );
    const records = new JsonRecordWriter({
      uuids: new UuidSource({ randomFill: (bytes) => randomFillSync(bytes) }),
    });
    this.#intake = createIntake({
      createScanner: (rows) => this.createScanner(rows),
      projects: { hasNone: false, byKey: (key) => projects.get(key), refusalOf: () => undefined },
      publisher: options.publisher ?? this.#publisher(),
      records: {
        begin: (context) => records.begin(context),
        measure: (item, verdict, record) => records.measure(item, verdict, record),
        write: (...given) => {
          this.onEvent();
          this.#countEvent();
          records.write(...given);
        },
      },
      metrics: {
        events() {},
        warnings() {},
        slowPathItems() {},
        distinctIdsCut() {},
      },
      monotonicMs: () => this.monotonicMs(),
      nextTurn: setImmediate,
      ...(options.clientWarnings === undefined ? {} : { clientWarnings: options.clientWarnings }),
      ...(options.quarantine === undefined ? {} : { quarantine: options.quarantine }),
    });
  }

  order(isMeant: (name: string) => boolean = () => true): string[] {
    const names = this.placed.map((event) => event.replace(/\d+$/, "")).filter(isMeant);
    return names.filter((name, index) => name !== names[index - 1]);
  }

  send(body: BodyOf | Buffer, options: SendOptions = {}): Sent {
    const bytes = Buffer.isBuffer(body) ? body : bodyOf(body);
    const sent = {
      answer: undefined as string | undefined,
      work: Promise.resolve(),
      library: "",
      detail: "",
    };
    const exchange: Exchange = {
      ...bareExchange,
      ...options.exchange,
      senderAddress: options.senderAddress ?? "",
      hold: (heldBytes) => {
        this.heldBytes += heldBytes;
        return true;
      },
      get library() {
        return sent.library;
      },
      set library(name) {
        sent.library = name;
      },
      deadlineMs: options.deadlineMs ?? this.monotonicMs() + 30_000,
      hint: options.hint,
      answerStored: ({ accepted, filtered }) => {
        sent.answer = `stored ${accepted}${filtered === 0 ? "" : `, filtered ${filtered}`}`;
      },
      answerProblem: ({ code, detail }: Problem) => {
        sent.answer = code;
        sent.detail = detail;
      },
    };
    const overwrite = (): void => void bytes.fill(0x20);
    const memory = bytes.length < borrowedBytesMax ? "borrowed" : "owned";
    sent.work = this.#intake(exchange, { memory, bytes }) ?? sent.work;
    if (memory === "borrowed") overwrite();
    else void sent.work.then(overwrite, () => {});
    return sent;
  }

  #countEvent(): void {
    this.#eventsOfThisTurn++;
    if (this.#turnWatched) return;
    this.#turnWatched = true;
    void setImmediate().then(() => {
      this.eventsOfTurns.push(this.#eventsOfThisTurn);
      this.#eventsOfThisTurn = 0;
      this.#turnWatched = false;
    });
  }

  #publisher(): Publisher {
    const frame = (bytes: number, project: string): FrameSink => {
      const sink = new FakeFrame(Math.max(bytes, frameBytesMax));
      this.#projectOf.set(sink, project);
      return sink;
    };
    const take = (sink: FrameSink, waiter: FrameWaiter): void => {
      const lines = sink.buffer.toString("utf8", 0, sink.length).split("\n").slice(0, -1);
      this.placed.push(...lines.map(eventNameOf));
      this.lines.push(...lines);
      const outcome = this.outcome(this.#projectOf.get(sink) ?? "");
      const settle = (how: unknown): void => {
        const { events, length } = sink;
        if (how === "refused")
          waiter.frameSettled("refused", "unavailable", events, length, length);
        else waiter.frameSettled("stored", undefined, events, length, length);
      };
      if (typeof outcome === "string") settle(outcome);
      else void outcome.then(settle);
    };
    return {
      frameBytesMax,
      recordBytesMaxOf: () => 4_194_304,
      refusalOf: () => undefined,
      refusal: () => this.refusal(),
      streamOf: (lane, id) => this.streamOf(lane, id),
      sharedFrame: (_lane, { id }, bytes) => frame(bytes, id),
      ownFrame: (_lane, { id }, bytes) => frame(bytes, id),
      join: take,
      submit: (sink, id, waiter) => {
        this.messageIds.push(id);
        take(sink, waiter);
      },
      discard: () => {},
    };
  }
}

export function bodyOf({
  name,
  project,
  events,
  historical = false,
  padding = 300,
  hidden = false,
}: BodyOf): Buffer {
  const end = JSON.stringify({
    distinct_id: "u",
    timestamp: "2020-01-01",
    properties: { padding: "x".repeat(padding) },
  });
  const batch = Array.from(
    { length: events },
    (_, index) => `{"event":"${name}${index}",${end.slice(1)}`,
  );
  const whose = { api_key: `key_${project}`, historical_migration: historical };
  const head = JSON.stringify(hidden ? { far: "x".repeat(8_192), ...whose } : whose);
  return Buffer.from(`${head.slice(0, -1)},"batch":[${batch.join()}]}`);
}

function eventNameOf(line: string): string {
  const [, name = ""] = /"event":("(?:[^"\\]|\\.)*")/.exec(line) ?? [];
  return JSON.parse(name) as string;
}

export async function until(isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error(`condition not reached: ${isSo}`);
    await setImmediate();
  }
}
