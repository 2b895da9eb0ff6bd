// The state of a PostHog sink. The file positions.json is replaced atomically. Rejected events are
// appended to aside.ndjson.

import { constants } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import path from "node:path";
import {
  type FileLock,
  makeFolder,
  mustBePlain,
  writeWhole,
} from "../../../platform/base/files.ts";
import { StoreError } from "../../../platform/base/store-error.ts";
import { lockFolder } from "../folder-lock.ts";
import { type RejectedLine, textOf } from "../sink-records.ts";
import {
  MovedError,
  mustBeNext,
  type SinkBatch,
  type SinkIncident,
  type SinkPosition,
} from "../sink-target.ts";

interface SinkState {
  readonly version: 1;
  /** The upstream of the state. The state is rejected if the sink has a different upstream. */
  readonly upstream: string;
  readonly aside_bytes: number;
  readonly incidents: readonly SinkIncident[];
  readonly streams: readonly SinkPosition[];
}

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
const incidentsMax = 100;

export class StateFolder {
  readonly folder: string;
  readonly #upstream: string;
  readonly #pid: number;
  #lock: FileLock | undefined;
  #state: SinkState;

  constructor(folder: string, upstream: string, pid: number) {
    this.folder = path.resolve(folder);
    this.#upstream = upstream;
    this.#pid = pid;
    this.#state = emptyState(upstream);
  }

  get #file(): string {
    return path.join(this.folder, "positions.json");
  }

  get #aside(): string {
    return asideFile(this.folder);
  }

  /** Reads the state. Rejects with a StandbyError if another process has locked the folder. */
  async open(): Promise<readonly SinkPosition[]> {
    await asStoreError(`open ${this.folder}`, async () => {
      makeFolder(this.folder);
    });
    this.#takeLock();
    await asStoreError(`read ${this.#file}`, async () => {
      this.#state = (await this.#read()) ?? emptyState(this.#upstream);
      await this.#cutAside();
    });
    await asStoreError(`write ${this.#file}`, () => this.#write(this.#state));
    return this.#state.streams;
  }

  /** Stores rejected events, then positions. When it is fulfilled, both are on disk. */
  async save(batch: SinkBatch, aside: readonly RejectedLine[]): Promise<void> {
    if (this.#lock?.isHeld() !== true)
      throw new MovedError(`the lock of ${this.folder} was removed: another sink may hold it`);
    const { streams: known } = this.#state;
    mustBeNext(batch, (stream) => known.find((one) => one.stream === stream));
    await asStoreError(`write ${this.folder}`, async () => {
      const asideBytes = this.#state.aside_bytes + (await this.#addAside(aside));
      const streams = new Map(this.#state.streams.map((one) => [one.stream, one]));
      for (const position of batch.positions) streams.set(position.stream, position);
      const allIncidents = [...this.#state.incidents, ...batch.incidents];
      const incidents = new Map(allIncidents.map((one) => [JSON.stringify(one), one]));
      const state: SinkState = {
        version: 1,
        upstream: this.#upstream,
        aside_bytes: asideBytes,
        incidents: [...incidents.values()].slice(-incidentsMax),
        streams: [...streams.values()],
      };
      await this.#write(state);
      this.#state = state;
    });
  }

  close(): void {
    this.#lock?.close();
    this.#lock = undefined;
  }

  #takeLock(): void {
    if (this.#lock?.isHeld() === true) return;
    this.close();
    this.#lock = lockFolder(this.folder, this.#pid, `another sink uses ${this.folder}`);
  }

  async #read(): Promise<SinkState | undefined> {
    let text: string;
    try {
      text = await readFile(this.#file, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
    const state = stateIn(text);
    if (state === "newer")
      throw new StoreError(
        `cannot read ${this.#file}: it is from a newer release of Penstock. Start the sink of that release`,
      );
    if (state === undefined)
      throw new StoreError(
        `cannot read ${this.#file}: it is not the state of a sink. Restore the file, or name another folder in --state to start from the beginning`,
      );
    if (state.upstream !== this.#upstream)
      throw new StoreError(
        `cannot use ${this.#file}: it is the state of a sink to ${state.upstream}, not ${this.#upstream}. Use another --state folder. If both URLs lead to the same PostHog, set "upstream" in the file to ${this.#upstream}`,
      );
    return state;
  }

  async #write(state: SinkState): Promise<void> {
    await writeWhole(this.#file, `${JSON.stringify(state)}\n`);
  }

  /** Removes the lines of an incomplete batch, because the batch will be written again. */
  async #cutAside(): Promise<void> {
    const handle = await this.#openAside();
    try {
      const { size } = await handle.stat();
      const kept = Math.min(size, this.#state.aside_bytes);
      if (size > kept) await handle.truncate(kept);
      this.#state = { ...this.#state, aside_bytes: kept };
    } finally {
      await handle.close();
    }
  }

  /** Opens the file. Symbolic links are not followed, because they could point to any file. */
  async #openAside(): Promise<FileHandle> {
    mustBePlain(this.#aside);
    return await open(this.#aside, O_APPEND | O_CREAT | O_NOFOLLOW | O_WRONLY, 0o600);
  }

  async #addAside(lines: readonly RejectedLine[]): Promise<number> {
    if (lines.length === 0) return 0;
    const text = Buffer.from(lines.map((line) => `${asideLine(line)}\n`).join(""));
    const handle = await this.#openAside();
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    return text.length;
  }
}

export function asideFile(folder: string): string {
  return path.join(path.resolve(folder), "aside.ndjson");
}

function emptyState(upstream: string): SinkState {
  return { version: 1, upstream, aside_bytes: 0, incidents: [], streams: [] };
}

function stateIn(text: string): SinkState | "newer" | undefined {
  try {
    const value = JSON.parse(text) as Partial<Omit<SinkState, "version"> & { version: number }>;
    if (Number(value.version) > 1) return "newer";
    const isState =
      value.version === 1 &&
      typeof value.upstream === "string" &&
      Number.isSafeInteger(value.aside_bytes) &&
      Array.isArray(value.incidents) &&
      Array.isArray(value.streams) &&
      value.streams.every(isPosition);
    return isState ? (value as SinkState) : undefined;
  } catch {
    return undefined;
  }
}

function isPosition({ stream, epoch, created, sequence, trail }: Partial<SinkPosition>): boolean {
  return (
    typeof stream === "string" &&
    Number.isSafeInteger(epoch) &&
    typeof created === "string" &&
    Number.isSafeInteger(sequence) &&
    Array.isArray(trail)
  );
}

function asideLine(line: RejectedLine): string {
  const { text, storedAtMs, projectId, stream, sequence, reason, detail } = line;
  return JSON.stringify({
    stream,
    sequence,
    line: line.line,
    stored_at: new Date(storedAtMs).toISOString(),
    project_id: projectId,
    reason,
    detail,
    record: textOf(text),
  });
}

async function asStoreError(what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof StoreError || error instanceof MovedError) throw error;
    throw new StoreError(`cannot ${what}: ${(error as Error).message}`, { cause: error });
  }
}
