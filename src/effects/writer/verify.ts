// Whether a database says what the streams say: makes another one out of the streams, as far as the
// first one has applied them, and compares both line by line.

import type { AppliedStream, EffectsReader } from "../store/port.ts";
import type { Recording } from "../types.ts";
import { type RebuildOptions, rebuild } from "./rebuild.ts";

interface VerifyOptions extends Omit<RebuildOptions, "recording"> {
  readonly reader: EffectsReader;
}

interface Verified {
  readonly messages: number;
  readonly missing: number;
  /** The first lines that only one of both has: `-` before those of the database, `+` otherwise. */
  readonly differences: readonly string[];
}

const differencesMax = 20;
/** Lines that are remembered until their counterpart comes. */
const apartMax = 10_000;
const tries = 20;

/**
 * `into` is an open and empty database for the comparison. Rejects with an Error in plain words
 * when events are applied all the while, and with a RebuildError when the streams do not hold
 * enough.
 */
export async function verify({ reader, ...options }: VerifyOptions): Promise<Verified> {
  const { recording, lines } = await snapshotOf(reader);
  try {
    const rebuilt = await rebuild({ ...options, recording });
    const others = options.into.reader.dump()[Symbol.asyncIterator]();
    return { ...rebuilt, differences: await differencesOf(lines, others) };
  } finally {
    await lines.return?.();
  }
}

interface Snapshot {
  readonly recording: Recording;
  readonly lines: AsyncIterator<string>;
}

/** What was applied and what came of it, of one moment: nothing was applied in between. */
async function snapshotOf(reader: EffectsReader): Promise<Snapshot> {
  for (let nth = 0; nth < tries; nth++) {
    const before = await reader.applied();
    const recording = await reader.recording();
    const dump = reader.dump()[Symbol.asyncIterator]();
    // The dump is of the moment in which its first line is read.
    const first = await dump.next();
    if (isSame(before, await reader.applied())) return { recording, lines: again(first, dump) };
    await dump.return?.();
  }
  throw new Error(
    "verify: events are being applied all the while; stop the effects process for the time, or try when less comes in",
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

async function* again<T>(
  first: IteratorResult<T, unknown>,
  rest: AsyncIterator<T>,
): AsyncGenerator<T> {
  try {
    for (let next = first; next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

/** Both have their lines in one order, so what differs comes at about the same place. */
async function differencesOf(
  lines: AsyncIterator<string>,
  others: AsyncIterator<string>,
): Promise<string[]> {
  // In order of their coming; `-` and `+` before a line are what was seen on one side alone.
  const apart = new Set<string>();
  const note = ({ done, value }: IteratorResult<string, unknown>, sign: "-" | "+"): void => {
    if (done === true) return;
    const counterpart = `${sign === "-" ? "+" : "-"} ${value}`;
    if (!apart.delete(counterpart)) apart.add(`${sign} ${value}`);
  };
  for (;;) {
    const [line, other] = [await lines.next(), await others.next()];
    if ((line.done === true && other.done === true) || apart.size > apartMax) break;
    if (line.done === other.done && line.value === other.value) continue;
    note(line, "-");
    note(other, "+");
  }
  await others.return?.();
  return [...apart].slice(0, differencesMax);
}
