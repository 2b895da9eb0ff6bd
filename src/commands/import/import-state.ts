// The position of an import. It is stored in a state file next to the input. After a crash, the
// next run resumes after the last line that was saved.

import { createHash } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { type FileLock, takeFileLock, writeWhole } from "../../platform/base/files.ts";
import { objectIn } from "../../platform/base/json.ts";
import { CommandError } from "../context.ts";
import type { CountsText } from "./counts.ts";

export interface ImportState {
  readonly version: 1;
  readonly target: string;
  readonly format: string;
  readonly lines: number;
  readonly fingerprint: string;
  /**
   * Number of the last line in the last request. It is saved before the request is sent. If the
   * request is repeated, it ends at this line even if the file has grown, so that the gateway
   * recognizes it.
   */
  readonly sending?: number;
  readonly finished: boolean;
  readonly counts: CountsText;
}

/** Identifies gateway and project. The text does not contain the key, user or password. */
export function targetOf(url: URL, key: string): string {
  const address = new URL(url);
  [address.username, address.password] = ["", ""];
  const project = createHash("sha256").update(key).digest("hex").slice(0, 16);
  return `${address.href} ${project}`;
}

const loopbackNames: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Describes a changed target, as the end of a sentence. All loopback names count as equal. */
export function targetDifference(before: string, now: string): string | undefined {
  const [was, is] = [partsOf(before), partsOf(now)];
  const isElsewhere = comparable(was.address) !== comparable(is.address);
  const isOtherKey = was.key !== is.key;
  if (!isElsewhere) return isOtherKey ? "it used another key" : undefined;
  return `it was sent to ${was.address}${isOtherKey ? ", with another key" : ""}`;
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

export class StateFile {
  readonly #file: string;
  #lock: FileLock | undefined = undefined;
  #saved: Promise<void> = Promise.resolve();

  constructor(file: string) {
    this.#file = file;
  }

  get name(): string {
    return this.#file;
  }

  take(): void {
    for (;;) {
      const lock = this.#taken();
      if (lock === undefined) return;
      if (lock === "busy")
        throw new CommandError(
          `another import is using ${this.#file}: wait until it ends, or name another file with --state`,
        );
      this.#lock = lock;
      if (lock.isHeld()) return;
      lock.close();
    }
  }

  async release(): Promise<void> {
    const lock = this.#lock;
    this.#lock = undefined;
    if (lock?.isHeld() === true) await rm(`${this.#file}.lock`, { force: true });
    lock?.close();
  }

  /** Locks the file. Returns undefined if it is not writable, which the first save reports. */
  #taken(): FileLock | "busy" | undefined {
    try {
      return takeFileLock(`${this.#file}.lock`);
    } catch {
      return undefined;
    }
  }

  /**
   * Returns the state, or undefined if the file does not exist. Throws a CommandError if the file
   * is not a state file.
   */
  async read(): Promise<ImportState | undefined> {
    let text: string;
    try {
      text = await readFile(this.#file, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw new CommandError(`cannot read ${this.#file}: ${(error as Error).message}`);
    }
    const state = parsed(text);
    if (state === undefined)
      throw new CommandError(
        `cannot read ${this.#file}: it is not a state file of an import: remove it, or use --restart`,
      );
    return state;
  }

  async remove(): Promise<void> {
    await rm(this.#file, { force: true });
  }

  /** Saves the state to disk. Rejects with a CommandError if the state cannot be saved. */
  save(state: ImportState): Promise<void> {
    this.#saved = this.#saved.then(async () => {
      try {
        await writeWhole(this.#file, `${JSON.stringify(state, undefined, 2)}\n`);
      } catch (error) {
        throw new CommandError(
          `cannot write the progress of the import to ${this.#file}: ${(error as Error).message}: name another file with --state`,
        );
      }
    });
    return this.#saved;
  }
}

function parsed(text: string): ImportState | undefined {
  const value = objectIn(text) as Partial<ImportState> | undefined;
  const isState =
    value?.version === 1 &&
    typeof value.target === "string" &&
    Number.isInteger(value.lines) &&
    typeof value.fingerprint === "string" &&
    Number.isInteger(value.sending ?? 0) &&
    typeof value.counts === "object";
  return isState ? (value as ImportState) : undefined;
}
