// The folder of the Parquet files, and its lock. A folder that contains events but no positions is
// rejected, because all events would be written to it again.

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import path from "node:path";
import { type FileLock, makeFolder, sync, writeWhole } from "../../../platform/base/files.ts";
import { lockFolder } from "../folder-lock.ts";

const bookKeeping = "_penstock";
const readableMode = 0o777;
const lasting: ReadonlySet<string> = new Set([
  "EACCES",
  "EEXIST",
  "EINVAL",
  "ELOOP",
  "ENAMETOOLONG",
  "ENOENT",
  "ENOTDIR",
  "EPERM",
  "EROFS",
]);

/** Creates the folder. If this can never succeed, returns the reason. */
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
  readonly own: string;
  readonly #pid: number;
  #lock: FileLock | undefined;
  #id: string | undefined;

  constructor(folder: string, pid: number) {
    this.folder = path.resolve(folder);
    this.#pid = pid;
    this.own = path.join(this.folder, bookKeeping);
  }

  get id(): string {
    if (this.#id === undefined) throw new Error(`${this.folder} is not open`);
    return this.#id;
  }

  get isTaken(): boolean {
    return this.#id !== undefined && this.#lock?.isHeld() === true && this.#idThere() === this.#id;
  }

  /** Takes the lock. Rejects with a StandbyError if another process has it. */
  async take(): Promise<void> {
    if (this.isTaken) return;
    this.release();
    const { folder } = this;
    const there = this.#idThere();
    if (this.#id !== undefined && there !== this.#id)
      throw new Error(
        `${folder} is not the folder that the sink opened: restore the original folder, or restart the sink to write into this folder`,
      );
    if (there === undefined && existsSync(path.join(folder, "events")))
      throw new Error(
        `${folder} has events, but no ${bookKeeping}, which contains their positions: restore ${bookKeeping}, or use another folder`,
      );
    this.#id = there;
    makeFolder(this.own, readableMode);
    await (await open(path.join(this.own, "lock"), "a", 0o600)).close();
    this.#lock = lockFolder(this.own, this.#pid, `another sink writes to ${folder}`);
    this.#id = this.#idThere() ?? (await this.#named());
  }

  mustBeTaken(): void {
    if (!this.isTaken)
      throw new Error(`${this.folder} was moved or removed while the sink was writing`);
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
