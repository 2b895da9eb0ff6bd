// The folder that a sink writes to: who has it, and that it stays the same one. How far the streams
// are in it is in `_penstock`, so that a folder is told from one that only has the events.

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import path from "node:path";
import { type FileLock, takeFileLock } from "../../../platform/base/file-lock.ts";
import { makeFolder } from "../../../platform/base/make-folder.ts";
import { sync, writeWhole } from "../../../platform/base/write-whole.ts";
import { holderText, noteHolder } from "../lock-holder.ts";
import { StandbyError } from "../sink-target.ts";

const bookKeeping = "_penstock";
/** Whoever the umask lets may read the files. */
const readableMode = 0o777;
/** There is no use in trying these again. Others, as a full disk or one that is away, pass. */
const lasting: ReadonlySet<string> = new Set([
  ...["EACCES", "EEXIST", "EINVAL", "ELOOP", "ENAMETOOLONG", "ENOENT", "ENOTDIR", "EPERM", "EROFS"],
]);

/** Makes the folder; why it can never be made, as text; undefined: it is there, or may yet be. */
export function whyNeverMade(folder: string): string | undefined {
  try {
    makeFolder(path.join(path.resolve(folder), bookKeeping), readableMode);
    return undefined;
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    return lasting.has(code) ? message : undefined;
  }
}

export class ParquetFolder {
  readonly folder: string;
  /** Its book-keeping. */
  readonly own: string;
  readonly #pid: number;
  #lock: FileLock | undefined;
  #id: string | undefined;

  /** `pid` is that of this process, for whoever waits for it. */
  constructor(folder: string, pid: number) {
    this.folder = path.resolve(folder);
    this.#pid = pid;
    this.own = path.join(this.folder, bookKeeping);
  }

  /** Is in the names of its files, so that those of another folder are told from them. */
  get id(): string {
    if (this.#id === undefined) throw new Error(`${this.folder} is not open`);
    return this.#id;
  }

  /** False when it was moved away, or another one is in its place. */
  get isTaken(): boolean {
    return this.#id !== undefined && this.#lock?.isHeld() === true && this.#idThere() === this.#id;
  }

  /** Makes it where it is not there. Rejects with a StandbyError while another one has it. */
  async take(): Promise<void> {
    if (this.isTaken) return;
    this.release();
    const { folder } = this;
    const there = this.#idThere();
    if (this.#id !== undefined && there !== this.#id)
      throw new Error(
        `${folder} is not the folder that it was: put that one back, or start the sink again to write into this one`,
      );
    if (there === undefined && existsSync(path.join(folder, "events")))
      throw new Error(
        `${folder} has events, but not ${bookKeeping}, which says how far they go: put it back, or name another folder`,
      );
    this.#id = there;
    makeFolder(this.own, readableMode);
    const name = path.join(this.own, "lock");
    // This says why it cannot be written, where it cannot.
    await (await open(name, "a", 0o600)).close();
    const lock = takeFileLock(name);
    const holder = path.join(this.own, "holder.json");
    if (lock === "busy")
      throw new StandbyError(`another sink writes to ${folder}${holderText(holder)}`);
    this.#lock = lock;
    noteHolder(holder, this.#pid);
    this.#id = this.#idThere() ?? (await this.#named());
  }

  mustBeTaken(): void {
    if (!this.isTaken)
      throw new Error(`${this.folder} was moved away or removed while it was written to`);
  }

  release(): void {
    this.#lock?.close();
    this.#lock = undefined;
  }

  #idThere(): string | undefined {
    const file = path.join(this.own, "folder.json");
    if (!existsSync(file)) return undefined;
    return (JSON.parse(readFileSync(file, "utf8")) as { id: string }).id;
  }

  async #named(): Promise<string> {
    const id = randomBytes(4).toString("hex");
    await writeWhole(path.join(this.own, "folder.json"), `${JSON.stringify({ version: 1, id })}\n`);
    await sync(this.folder);
    await sync(path.dirname(this.folder));
    return id;
  }
}
