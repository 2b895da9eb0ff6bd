// The bucket of erasures. It contains the replacement of each message, the receipts, and a lock
// that allows only one erasure at a time. It must not contain a person's id or a line.

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { type JetStreamClient, type JetStreamManager, jetstream } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { pauseUntilAborted } from "../../platform/base/retry.ts";
import { apiCodes, isApiError, managerOf } from "../../platform/nats/api.ts";
import { bucketStream, bucketSubjects } from "../../platform/nats/names.ts";
import { type ErasedEntry, erasedSubjects } from "../../platform/nats/rewritten.ts";
import { CommandError, interruptedExitCode } from "../context.ts";

interface ErasureLogOptions {
  readonly bucket: string;
  readonly replicas: number;
  readonly pid: number;
  readonly times?: Partial<LockTimes>;
}

interface LockTimes {
  readonly answerMsMax: number;
  readonly beatMs: number;
  /** If a lock is unchanged for this time in ms, its owner is considered dead. */
  readonly silenceMs: number;
}

interface Opened extends Pick<ErasureLogOptions, "bucket" | "pid"> {
  readonly js: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly kv: KV;
  readonly times: LockTimes;
}

interface Holder {
  readonly id: string;
  readonly pid: number;
  readonly hostname: string;
  readonly beats: number;
}

const lockTimes: LockTimes = { answerMsMax: 5_000, beatMs: 3_000, silenceMs: 15_000 };
const pollMs = 1_000;
const lockKey = "lock";

/**
 * Thrown if another erasure may have the lock. The erasure must then stop, because its changes
 * could conflict with the other erasure.
 */
export class LostLockError extends CommandError {}

export class ErasureLog {
  readonly #js: JetStreamClient;
  readonly #manager: JetStreamManager;
  readonly #bucket: string;
  readonly #kv: KV;
  readonly #holder: Omit<Holder, "beats">;
  readonly #times: LockTimes;
  #beats = 0;
  #revision = 0;
  #entries = 0;
  #beating: NodeJS.Timeout | undefined;
  #beat: Promise<void> | undefined;
  #heldMonotonicMs = 0;
  #lost: Error | undefined;

  private constructor({ js, manager, bucket, kv, pid, times }: Opened) {
    this.#times = times;
    this.#bucket = bucket;
    this.#js = js;
    this.#manager = manager;
    this.#kv = kv;
    this.#holder = { id: randomUUID(), pid, hostname: hostname() };
  }

  static async open(
    connection: NatsConnection,
    { bucket, replicas, pid, times }: ErasureLogOptions,
  ): Promise<ErasureLog> {
    const all = { ...lockTimes, ...times };
    const js = jetstream(connection, { timeout: all.answerMsMax });
    const kv = await new Kvm(js).create(bucket, { replicas, history: 1 });
    const manager = await managerOf(connection, { timeoutMs: all.answerMsMax });
    return new ErasureLog({ js, manager, bucket, kv, pid, times: all });
  }

  get id(): string {
    return this.#holder.id;
  }

  /**
   * Takes the lock. A lock of a dead erasure is taken over. Rejects with a CommandError if another
   * erasure is running, or if `stop` aborts.
   */
  async lock(say: (line: string) => void, stop: AbortSignal): Promise<void> {
    if (!(await this.#create())) await this.#takeOver(say, stop);
    this.#beating = setInterval(() => {
      this.#beat ??= this.#beatOnce().finally(() => {
        this.#beat = undefined;
      });
    }, this.#times.beatMs);
  }

  check(): void {
    const { message } = this.#lost ?? {};
    const { silenceMs } = this.#times;
    const isSilent = this.#revision !== 0 && performance.now() - this.#heldMonotonicMs > silenceMs;
    const why = message ?? (isSilent ? `NATS has not responded for ${silenceMs} ms` : undefined);
    if (why !== undefined)
      throw new LostLockError(`erase: the lock was lost (${why}). Run the command again`);
  }

  async unlock(): Promise<void> {
    clearInterval(this.#beating);
    await this.#beat;
    if (this.#revision === 0) return;
    await this.#kv.delete(lockKey, { previousSeq: this.#revision }).catch(() => {});
  }

  /**
   * Stores an entry. The server accepts it only while this erasure has the lock, because another
   * erasure may take the lock while this process is suspended.
   */
  async note(stream: string, entry: ErasedEntry): Promise<void> {
    const subject = `${erasedSubjects(stream)}${this.id}.${++this.#entries}`;
    for (;;) {
      const lastSequence = await this.#lastSequenceHeld();
      try {
        const expect = { lastSequence };
        const timeout = this.#times.answerMsMax;
        await this.#js.publish(subject, JSON.stringify(entry), { timeout, expect });
        return;
      } catch (error) {
        if (!isApiError(error, apiCodes.streamWrongLastSequence)) throw error;
      }
    }
  }

  /**
   * Returns the last sequence of the bucket and checks the lock. Throws if the lock does not belong
   * to this erasure.
   */
  async #lastSequenceHeld(): Promise<number> {
    const { streams } = this.#manager;
    const stream = bucketStream(this.#bucket);
    const { state } = await streams.info(stream);
    // `getMessage` is used, because it reads from the leader. The KV client may use a follower.
    const last = { last_by_subj: `${bucketSubjects(this.#bucket)}${lockKey}` };
    const holder = await streams.getMessage(stream, last);
    const isOwn = holder !== null && holder.data.length > 0 && holder.json<Holder>().id === this.id;
    if (!isOwn) this.#lost ??= new Error("another erasure has taken it");
    this.check();
    return state.last_seq;
  }

  async keepReceipt(receipt: object): Promise<void> {
    await this.#kv.put(`receipt.${this.id}`, JSON.stringify(receipt));
  }

  #value(): string {
    return JSON.stringify({ ...this.#holder, beats: ++this.#beats } satisfies Holder);
  }

  async #hold(write: (value: string) => Promise<number>): Promise<void> {
    const sentMonotonicMs = performance.now();
    this.#revision = await write(this.#value());
    this.#heldMonotonicMs = sentMonotonicMs;
  }

  async #create(): Promise<boolean> {
    try {
      await this.#hold((value) => this.#kv.create(lockKey, value));
      return true;
    } catch (error) {
      if (isApiError(error, apiCodes.streamWrongLastSequence)) return false;
      throw error;
    }
  }

  async #takeOver(say: (line: string) => void, stop: AbortSignal): Promise<void> {
    const first = await this.#kv.get(lockKey);
    const { silenceMs } = this.#times;
    const untilMonotonicMs = performance.now() + silenceMs;
    let now = first;
    while (now?.operation === "PUT") {
      const { hostname: where, pid } = now.json<Holder>();
      const holder = `process ${pid} on ${where}`;
      if (now.revision !== first?.revision) throw anotherRuns(holder);
      if (performance.now() >= untilMonotonicMs) break;
      if (now === first)
        say(`waiting up to ${silenceMs / 1_000} s, because the erasure of ${holder} may still run`);
      await pauseUntilAborted(pollMs, stop);
      if (stop.aborted) throw erasureInterrupted();
      now = await this.#kv.get(lockKey);
    }
    try {
      // The update fails if the owner has renewed the lock, or if another erasure has taken it.
      await this.#hold((value) => this.#kv.update(lockKey, value, now?.revision ?? 0));
    } catch (error) {
      throw isApiError(error, apiCodes.streamWrongLastSequence) ? anotherRuns() : error;
    }
  }

  /** Renews the lock. Never rejects. Without a response, the lock may be renewed anyway. */
  async #beatOnce(): Promise<void> {
    if (this.#lost !== undefined) return;
    try {
      await this.#hold((value) => this.#kv.update(lockKey, value, this.#revision));
    } catch (error) {
      const entry = await this.#kv.get(lockKey).catch(() => undefined);
      if (entry === undefined) return;
      const isOwn = entry?.operation === "PUT" && entry.json<Holder>().id === this.id;
      if (isOwn) this.#revision = entry.revision;
      else this.#lost = error as Error;
    }
  }
}

export function erasureInterrupted(): CommandError {
  return new CommandError("erase: interrupted. Run the command again", interruptedExitCode);
}

function anotherRuns(holder?: string): CommandError {
  const who = holder === undefined ? "" : `: ${holder}`;
  return new CommandError(`erase: another erasure is running${who}. Wait until it ends`);
}
