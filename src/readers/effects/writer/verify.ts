// Compares a database line by line with a database that is built from the streams. Differences that
// are caused by conflicting links or erased events are explained.

import type { AppliedStream, EffectsReader } from "../store/port.ts";
import {
  type Applied,
  appliedOf,
  RebuildError,
  type RebuildOptions,
  type Rebuilt,
  rebuild,
  untilAborted,
} from "./rebuild.ts";

interface VerifyOptions extends Omit<RebuildOptions, "applied"> {
  readonly reader: EffectsReader;
  readonly erasedProjects?: ReadonlySet<string>;
  readonly comparedMax?: number;
}

export interface Verified extends Rebuilt {
  /**
   * The first lines that only one of the databases has. The prefix `-` marks a line of the verified
   * database, and `+` a line of the rebuilt database.
   */
  readonly differences: readonly string[];
  readonly explained: readonly string[];
}

const differencesMax = 20;
const comparedMaxDefault = 67_108_864;
const textCost = 100;
const tries = 20;

/**
 * Builds a database in `into`, which must be open and empty. Returns the differences to the
 * database of `reader`. Rejects with a RebuildError if the database cannot be built.
 */
export async function verify({ reader, ...options }: VerifyOptions): Promise<Verified> {
  const { signal, into, erasedProjects = new Set(), comparedMax = comparedMaxDefault } = options;
  const { applied, lines } = await snapshotOf(reader);
  try {
    const rebuilt = await rebuild({ ...options, applied });
    const comparison = new Comparison(erasedProjects, comparedMax);
    const others = into.reader.dump("lasting")[Symbol.asyncIterator]();
    try {
      await untilAborted(comparison.run(lines, others), signal);
    } finally {
      void others.return?.();
    }
    return { ...rebuilt, ...comparison.result() };
  } finally {
    void lines.return?.();
  }
}

interface Snapshot {
  readonly applied: Applied;
  readonly lines: AsyncIterator<string>;
}

async function snapshotOf(reader: EffectsReader): Promise<Snapshot> {
  for (let nth = 0; nth < tries; nth++) {
    const before = await reader.applied();
    const applied = await appliedOf(reader);
    const dump = reader.dump("lasting")[Symbol.asyncIterator]();
    const first = await dump.next();
    if (isSame(before, await reader.applied())) return { applied, lines: prepended(first, dump) };
    await dump.return?.();
  }
  throw new RebuildError(
    "events are being applied continuously. Stop the effects process, or retry when fewer events arrive",
  );
}

function isSame(before: readonly AppliedStream[], after: readonly AppliedStream[]): boolean {
  const texts = [before, after].map((streams) =>
    streams
      .map(({ stream, epoch, sequence }) => JSON.stringify([stream, epoch, sequence]))
      .sort()
      .join(),
  );
  return texts[0] === texts[1];
}

async function* prepended<T>(
  first: IteratorResult<T, unknown>,
  rest: AsyncIterator<T>,
): AsyncGenerator<T> {
  try {
    for (let next = first; next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

type Sign = "-" | "+";

interface DumpLine {
  readonly table: string;
  readonly project_id: string;
  readonly distinct_ids?: readonly string[];
  readonly a?: string;
  readonly b?: string;
}

const refusedBegin = '{"table":"refused_links"';
const countingTables: ReadonlySet<string> = new Set(["usage_daily", "active_ids", "spikes"]);

class Comparison {
  readonly #erasedProjects: ReadonlySet<string>;
  readonly #apart = new Map<string, Sign>();
  readonly #refused = new Set<string>();
  #room: number;
  #isOver = false;

  constructor(erasedProjects: ReadonlySet<string>, room: number) {
    this.#erasedProjects = erasedProjects;
    this.#room = room;
  }

  async run(lines: AsyncIterator<string>, others: AsyncIterator<string>): Promise<void> {
    const [ours, theirs] = [this.#compared(lines), this.#compared(others)];
    for (;;) {
      const [line, other] = [await ours.next(), await theirs.next()];
      if (line.done === true && other.done === true) return;
      if (line.done === other.done && line.value === other.value) continue;
      if (line.done !== true) this.#note(line.value, "-");
      if (other.done !== true) this.#note(other.value, "+");
    }
  }

  #note(line: string, sign: Sign): void {
    const before = this.#apart.get(line);
    if (before !== undefined && before !== sign) {
      this.#apart.delete(line);
      this.#room += line.length + textCost;
    } else if (this.#hasRoom(line)) this.#apart.set(line, sign);
    else this.#isOver = true;
  }

  #hasRoom(text: string): boolean {
    const left = this.#room - text.length - textCost;
    if (left < 0) return false;
    this.#room = left;
    return true;
  }

  async *#compared(lines: AsyncIterator<string>): AsyncGenerator<string> {
    for (let next = await lines.next(); next.done !== true; next = await lines.next()) {
      if (!next.value.startsWith(refusedBegin)) {
        yield next.value;
        continue;
      }
      const { project_id: project, a = "", b = "" } = JSON.parse(next.value) as DumpLine;
      for (const key of [refusedKey(project, a), refusedKey(project, b)])
        if (!this.#refused.has(key) && this.#hasRoom(key)) this.#refused.add(key);
    }
  }

  result(): Pick<Verified, "differences" | "explained"> {
    const differences: string[] = [];
    let [ofLinks, ofErasures] = [0, 0];
    for (const [line, sign] of this.#apart) {
      const read = JSON.parse(line) as DumpLine;
      if (this.#isOfRefused(read)) ofLinks++;
      else if (this.#isOfErasure(read)) ofErasures++;
      else if (differences.length < differencesMax) differences.push(`${sign} ${line}`);
    }
    if (this.#isOver && differences.length < differencesMax)
      differences.push("and further lines that exceed the memory of the comparison");
    const explained: string[] = [];
    if (ofLinks > 0)
      explained.push(
        `${ofLinks} lines differ because of conflicting links: which link is rejected depends on the order in which the streams were read`,
      );
    if (ofErasures > 0)
      explained.push(
        `${ofErasures} lines of usage, active people and spikes differ because of an erasure: the erased events had been counted`,
      );
    return { differences, explained };
  }

  #isOfRefused({ project_id: project, distinct_ids: ids = [], a, b }: DumpLine): boolean {
    if (this.#refused.size === 0) return false;
    const all = [...ids, ...(a === undefined ? [] : [a]), ...(b === undefined ? [] : [b])];
    return all.some((id) => this.#refused.has(refusedKey(project, id)));
  }

  #isOfErasure({ table, project_id: project }: DumpLine): boolean {
    return countingTables.has(table) && this.#erasedProjects.has(project);
  }
}

function refusedKey(project: string, id: string): string {
  return `${project}\0${id}`;
}
