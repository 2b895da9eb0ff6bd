// The state of every event of a run, by the event's number, in one byte. If the stream has more
// copies than attempts, the gateway has duplicated the event. Threads can share the memory, because
// each thread writes only its own events.

/** `unknown` follows a timeout or a lost connection: the event may be stored or not. */
export type Verdict = "acknowledged" | "refused" | "unknown";

export interface StoredTally {
  readonly acknowledged: number;
  readonly refused: number;
  readonly unknown: number;
  readonly storedOnce: number;
  /** Events with more stored copies than attempts that may have stored the event. */
  readonly storedMoreThanOnce: number;
  /**
   * Events with several stored copies. A retry after an unknown outcome may cause them.
   */
  readonly storedAgainAfterUnknown: number;
  readonly lost: number;
  readonly storedThoughRefused: number;
  readonly storedThoughUnknown: number;
}

export interface Ledger {
  /**
   * Records the response to one attempt for `count` events, beginning with number `first`. After a
   * rejection, an unknown event stays unknown.
   */
  note(first: number, count: number, verdict: Verdict): void;
  /**
   * Records that the stream has the event. Returns false for numbers beyond the run, which are
   * ignored.
   */
  noteStored(number: number): boolean;
  isAcknowledged(number: number): boolean;
  tally(): StoredTally;
}

// Bits 0 and 1: the verdict. Bits 2 to 4: attempts that may have stored the event. Bits 5 to 7:
// stored copies. The value 7 means seven or more.
const verdictMask = 0b11;
const verdictBits: Readonly<Record<Verdict, number>> = { refused: 1, unknown: 2, acknowledged: 3 };
const sendingsShift = 2;
const storedShift = 5;
const countMax = 7;

export function createLedger(memory: SharedArrayBuffer): Ledger {
  const events = new Uint8Array(memory);

  function note(first: number, count: number, verdict: Verdict): void {
    const said = verdictBits[verdict];
    const mayHaveStored = verdict !== "refused";
    for (let number = first; number < first + count; number++) {
      const before = events[number]!;
      const after = (before & ~verdictMask) | Math.max(before & verdictMask, said);
      events[number] =
        mayHaveStored && sendingsOf(before) < countMax ? after + (1 << sendingsShift) : after;
    }
  }

  function noteStored(number: number): boolean {
    const before = events[number];
    if (before === undefined) return false;
    if (before >> storedShift < countMax) events[number] = before + (1 << storedShift);
    return true;
  }

  function isAcknowledged(number: number): boolean {
    return (events[number]! & verdictMask) === verdictBits.acknowledged;
  }

  function tally(): StoredTally {
    const counts = {
      acknowledged: 0,
      refused: 0,
      unknown: 0,
      storedOnce: 0,
      storedMoreThanOnce: 0,
      storedAgainAfterUnknown: 0,
      lost: 0,
      storedThoughRefused: 0,
      storedThoughUnknown: 0,
    };
    // A loop by index, because iterating over shared memory takes five times as long.
    for (let number = 0; number < events.length; number++) {
      const event = events[number]!;
      if (event === 0) continue;
      const verdict = event & verdictMask;
      const stored = event >> storedShift;
      if (verdict === verdictBits.acknowledged) {
        counts.acknowledged += 1;
        if (stored === 0) counts.lost += 1;
      } else if (verdict === verdictBits.unknown) {
        counts.unknown += 1;
        if (stored > 0) counts.storedThoughUnknown += 1;
      } else {
        if (verdict === verdictBits.refused) counts.refused += 1;
        if (stored > 0) counts.storedThoughRefused += 1;
      }
      if (stored === 1) counts.storedOnce += 1;
      if (stored > 1) {
        if (stored > sendingsOf(event)) counts.storedMoreThanOnce += 1;
        else counts.storedAgainAfterUnknown += 1;
      }
    }
    return counts;
  }

  return { note, noteStored, isAcknowledged, tally };
}

function sendingsOf(event: number): number {
  return (event >> sendingsShift) & countMax;
}
