// What became of every event of a run, a byte each, by its number: what the gateway said, and how often the stream has it.
// The memory may be shared between threads: each writes the bytes of its own events only.

/** What the gateway said of an event. `unknown` is what a timeout or a lost connection leaves: stored or not, nobody knows. */
export type Verdict = "acknowledged" | "refused" | "unknown";

export interface StoredTally {
  readonly acknowledged: number;
  readonly refused: number;
  readonly unknown: number;
  readonly storedOnce: number;
  /** Acknowledged or refused, and stored several times with no sending of it having ended as unknown. */
  readonly storedMoreThanOnce: number;
  /** Stored several times after a sending that ended as unknown and another one: what a retry may do. */
  readonly storedAgainAfterUnknown: number;
  /** Acknowledged and not stored. */
  readonly lost: number;
  readonly storedThoughRefused: number;
  readonly storedThoughUnknown: number;
}

export interface Ledger {
  /** Notes what was said of `count` events from number `first` on. */
  note(first: number, count: number, verdict: Verdict): void;
  /** Notes that the stream has the event. Numbers beyond the run count for nothing: answers false. */
  noteStored(number: number): boolean;
  /** Whether the last that was said of the event is that it is stored. */
  isAcknowledged(number: number): boolean;
  tally(): StoredTally;
}

// Bits 0 and 1: the last verdict. Bit 2: one of them was `unknown`. Bits 3 and 4: times stored, 2 for two and more.
const verdictMask = 0b11;
const verdictBits: Readonly<Record<Verdict, number>> = { acknowledged: 1, refused: 2, unknown: 3 };
const onceUnknownBit = 0b100;
const storedShift = 3;

export function createLedger(memory: SharedArrayBuffer): Ledger {
  const events = new Uint8Array(memory);

  function note(first: number, count: number, verdict: Verdict): void {
    const bits = verdictBits[verdict] | (verdict === "unknown" ? onceUnknownBit : 0);
    for (let number = first; number < first + count; number++) {
      events[number] = (events[number]! & ~verdictMask) | bits;
    }
  }

  function noteStored(number: number): boolean {
    const before = events[number];
    if (before === undefined) return false;
    if (before >> storedShift < 2) events[number] = before + (1 << storedShift);
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
    for (const event of events) {
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
        if ((event & onceUnknownBit) === 0) counts.storedMoreThanOnce += 1;
        else counts.storedAgainAfterUnknown += 1;
      }
    }
    return counts;
  }

  return { note, noteStored, isAcknowledged, tally };
}
