// How far an import has come, in a file beside what is imported: what was acknowledged is written
// there before it counts as done, so an import that was killed goes on behind it.

import { createHash } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { type FileLock, takeFileLock } from "../../platform/base/file-lock.ts";
import { openAnew, writeWhole } from "../../platform/base/write-whole.ts";
import { CommandError } from "../context.ts";
import type { CountsText } from "./counts.ts";

export interface ImportState {
  readonly version: 1;
  /** Where it went, so that it does not go on elsewhere. */
  readonly target: string;
  readonly format: string;
  /** Lines of the file that are done. */
  readonly lines: number;
  /** Tells these lines from those of another file. */
  readonly fingerprint: string;
  /**
   * The last line of the request that ends the file, noted before it is sent: where the file has
   * grown when it is sent again, it still ends there, and is known.
   */
  readonly sending?: number;
  readonly finished: boolean;
  readonly counts: CountsText;
}

/** Names the gateway and the project, without the key, and without user and password. */
export function targetOf(url: URL, key: string): string {
  const address = new URL(url);
  [address.username, address.password] = ["", ""];
  const project = createHash("sha256").update(key).digest("hex").slice(0, 16);
  return `${address.href} ${project}`;
}

const loopbackNames: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * In which way an import to `now` does not go to where one to `before` went, as the rest of a
 * sentence; undefined: it goes there. Both are of `targetOf`. The names of this host are one.
 */
export function targetDifference(before: string, now: string): string | undefined {
  const [was, is] = [partsOf(before), partsOf(now)];
  const isElsewhere = comparable(was.address) !== comparable(is.address);
  const isOtherKey = was.key !== is.key;
  if (!isElsewhere) return isOtherKey ? "it went with another key" : undefined;
  return `it went to ${was.address}${isOtherKey ? ", and with another key" : ""}`;
}

function partsOf(target: string): { readonly address: string; readonly key: string } {
  const at = target.lastIndexOf(" ");
  return { address: target.slice(0, at), key: target.slice(at + 1) };
}

function comparable(address: string): string {
  if (!URL.canParse(address)) return address;
  const { protocol, hostname, port, pathname } = new URL(address);
  const host = loopbackNames.has(hostname) ? "localhost" : hostname;
  return `${protocol}//${host}:${port}${pathname.replace(/\/+$/, "")}`;
}

/** Keeps the newest of the states that it is given, and writes one at a time. */
export class StateFile {
  readonly #file: string;
  #lock: FileLock | undefined = undefined;
  #next: ImportState | undefined = undefined;
  #writing: Promise<void> | undefined = undefined;

  constructor(file: string) {
    this.#file = file;
  }

  get name(): string {
    return this.#file;
  }

  /** To be called first. Throws a CommandError where another import has it. */
  take(): void {
    for (;;) {
      const lock = this.#taken();
      if (lock === undefined) return;
      if (lock === "busy")
        throw new CommandError(
          `another import notes in ${this.#file} how far it is: wait for its end, or name another file with --state`,
        );
      this.#lock = lock;
      if (lock.isHeld()) return;
      // The one that had it has just removed it.
      lock.close();
    }
  }

  /** To be called at the end, whatever that was. */
  async release(): Promise<void> {
    const lock = this.#lock;
    this.#lock = undefined;
    if (lock?.isHeld() === true) await rm(this.#lockName, { force: true });
    lock?.close();
  }

  get #lockName(): string {
    return `${this.#file}.lock`;
  }

  /** Undefined where nothing can be written, which is said before anything is sent. */
  #taken(): FileLock | "busy" | undefined {
    try {
      return takeFileLock(this.#lockName);
    } catch {
      return undefined;
    }
  }

  /** Undefined where there is no file. Throws a CommandError where it holds something else. */
  async read(): Promise<ImportState | undefined> {
    let text: string;
    try {
      text = await readFile(this.#file, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw new CommandError(`read ${this.#file}: ${(error as Error).message}`);
    }
    const state = parsed(text);
    if (state === undefined) {
      throw new CommandError(
        `read ${this.#file}: it holds no state of an import: remove it, or import with --restart`,
      );
    }
    return state;
  }

  async remove(): Promise<void> {
    await rm(this.#file, { force: true });
  }

  /** Rejects with a CommandError where nothing can be written: asked before anything is sent. */
  async mustBeWritable(): Promise<void> {
    const probe = `${this.#file}.new`;
    try {
      await (await openAnew(probe)).close();
      await rm(probe);
    } catch (error) {
      throw this.#unwritable(error);
    }
  }

  #unwritable(error: unknown): CommandError {
    return new CommandError(
      `write ${this.#file}: ${(error as Error).message}: it says how far the import is; name another place with --state`,
    );
  }

  /**
   * Fulfilled when this state or a newer one is on disk, also after a power cut. Rejects with a
   * CommandError where it cannot be written.
   */
  async save(state: ImportState): Promise<void> {
    this.#next = state;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#next !== undefined) {
      const state = this.#next;
      this.#next = undefined;
      try {
        await writeWhole(this.#file, `${JSON.stringify(state, undefined, 2)}\n`);
      } catch (error) {
        throw this.#unwritable(error);
      }
    }
  }
}

function parsed(text: string): ImportState | undefined {
  try {
    const value = JSON.parse(text) as Partial<ImportState>;
    const isState =
      value.version === 1 &&
      typeof value.target === "string" &&
      Number.isInteger(value.lines) &&
      typeof value.fingerprint === "string" &&
      Number.isInteger(value.sending ?? 0) &&
      typeof value.counts === "object";
    return isState ? (value as ImportState) : undefined;
  } catch {
    return undefined;
  }
}
