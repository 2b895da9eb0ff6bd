// Decides where to continue reading a stream, and reports how the stream has changed. The trail
// identifies messages by their ids, because sequences can repeat and clocks can be wrong. If the
// trail is not sufficient for a decision, the reader stops.

import { msOfTime } from "./frame.ts";
import type { AskedStream, StreamState } from "./stored-stream.ts";

export interface TrailEntry {
  readonly sequence: number;
  readonly messageId: string;
  readonly storedAtMs: number;
}

/**
 * The latest messages that were read, oldest first. If the last entry has no id, it contains the
 * sequence up to which losses were reported.
 */
type Trail = readonly TrailEntry[];

export const trailLength = 1_000;

/**
 * Returns the trail with the message added. It may change the given trail. A message that replaces
 * an erased message is ignored if it is not after the last entry.
 */
export function trailWith(trail: TrailEntry[], { sequence, messageId, storedAtMs }: TrailEntry) {
  if (sequence <= (trail.at(-1)?.sequence ?? 0)) return trail;
  trail.push({ sequence, messageId, storedAtMs });
  return trail.length > 2 * trailLength ? trail.slice(-trailLength) : trail;
}

export function trailReportedTo(trail: Trail, sequence: number): Trail {
  return [...trail, { sequence, messageId: "", storedAtMs: trail.at(-1)?.storedAtMs ?? 0 }];
}

/** Returns the sequence up to which losses after the position were reported, or 0. */
export function reportedTo(position: { readonly sequence: number; readonly trail: Trail }): number {
  const last = position.trail.at(-1);
  return last?.messageId === "" && last.sequence > position.sequence ? last.sequence : 0;
}

export function messagesIn(trail: Trail): Trail {
  return trail.filter(({ messageId }) => messageId !== "");
}

/** Changes of a stream that its reader did not cause. Tables and metrics contain these names. */
export const incidentKinds = [
  "stream_made_anew",
  "tail_lost",
  "expired_unread",
  "begun_late",
  "place_unknown",
  "copy_accepted",
  "unknown_schema",
] as const;

export type IncidentKind = (typeof incidentKinds)[number];

export interface StreamPosition {
  /** Incremented when the stream was recreated or truncated, because sequences then repeat. */
  readonly epoch: number;
  readonly created: string;
  readonly sequence: number;
  readonly trail: Trail;
}

export interface Incident {
  readonly kind: IncidentKind;
  readonly epoch: number;
  readonly sequence: number;
  readonly messages: number;
  readonly detail: string;
}

interface Resume {
  readonly position: StreamPosition;
  readonly incidents: readonly Incident[];
  readonly fault: string | undefined;
}

interface Comparison {
  readonly at: number | undefined;
  readonly newest: number;
}

interface Uncertainty {
  readonly held: number;
  readonly gone: number;
  /** True if all messages of the stream are newer than the trail. Assumes correct clocks. */
  readonly isNewer: boolean;
  readonly predatesTrail: boolean;
  /**
   * Sequence of the last message that may have been read and is not newer than the trail. It is 0
   * if there is no such message or if `isNewer` is true.
   */
  readonly olderTo: number;
}

export interface ReaderWords {
  readonly action: string;
  readonly stays: string;
  readonly reread: (olderTo: number) => string;
}

interface ResumeOptions {
  readonly acceptExpired: boolean;
  /** Sequence of the first erased message that is no longer in the stream but has a replacement. */
  readonly replacementsFrom?: number;
  readonly words?: ReaderWords | undefined;
}

const noWords: ReaderWords = { action: "", stays: "", reread: () => "" };

/**
 * Returns where to continue. If the stream was never read, `position` is undefined. Rejects if NATS
 * does not respond.
 */
export async function resume(
  position: StreamPosition | undefined,
  stream: AskedStream,
  state: StreamState,
  options: ResumeOptions,
): Promise<Resume> {
  if (position === undefined) return begin({ ...options, epoch: 1 }, state, []);
  // No message was read, so it does not matter that the stream is new.
  if (position.sequence === 0 && position.created !== state.created)
    return begin({ ...options, epoch: position.epoch }, state, []);
  const trail = messagesIn(position.trail);
  const comparison = await compare(trail, stream, state);
  const isOther = position.created !== state.created || lostFrom(position, state, comparison);
  const isAsked = isOther && (comparison.at ?? -1) < 0;
  const uncertainty = isAsked ? await uncertaintyOf(trail, stream, state) : noUncertainty;
  return decide(position, state, { ...options, comparison, uncertainty });
}

interface Facts extends ResumeOptions {
  readonly comparison: Comparison;
  readonly uncertainty: Uncertainty;
}

function decide(position: StreamPosition, state: StreamState, facts: Facts): Resume {
  const { comparison, uncertainty, words = noWords } = facts;
  const trail = messagesIn(position.trail);
  const at = comparison.at ?? -1;
  const isAnother = position.created !== state.created && at < 0;
  const isUncertain = at < 0 && uncertainty.held + uncertainty.gone > 0;
  // If the stream is newer than the trail, it was recreated. If it is older, it may be a copy, so
  // an operator must decide.
  const predatesTrail = isAnother && uncertainty.predatesTrail;
  if (isAnother && !predatesTrail && (trail.length === 0 || uncertainty.isNewer || !isUncertain)) {
    const epoch = position.epoch + 1;
    const incident = {
      kind: "stream_made_anew",
      epoch,
      sequence: state.firstSequence - 1,
      messages: 0,
      detail: `the stream was recreated at ${state.created}; the old stream was read up to message ${position.sequence}`,
    } as const;
    return begin({ ...facts, epoch }, state, [incident]);
  }
  const known = { ...position, created: state.created };
  if (!isAnother && !lostFrom(position, state, comparison))
    return checkExpired(known, state, facts, []);
  if (isUncertain || predatesTrail) return uncertain(position, state, facts);
  const sequence = at >= 0 ? trail[at]!.sequence : state.firstSequence - 1;
  const back: StreamPosition = {
    ...known,
    epoch: position.epoch + 1,
    sequence,
    trail: trail.slice(0, at + 1),
  };
  const messages = position.sequence - sequence;
  const incident = {
    kind: "tail_lost",
    epoch: back.epoch,
    sequence,
    messages,
    detail: `the stream has lost ${messages} read messages, from ${sequence + 1} to ${position.sequence}; ${words.stays}`,
  } as const;
  return checkExpired(back, state, facts, [incident]);
}

function begin(
  {
    epoch,
    replacementsFrom,
  }: Pick<ResumeOptions, "replacementsFrom"> & Pick<StreamPosition, "epoch">,
  state: StreamState,
  before: readonly Incident[],
): Resume {
  const { created, firstSequence, beginsAt } = state;
  const sequence = firstSequence - 1;
  const messages = firstSequence - beginsAt;
  const from = replacementsFrom ?? firstSequence;
  const trail = from < firstSequence ? trailReportedTo([], sequence) : [];
  const position: StreamPosition = { epoch, created, sequence: from - 1, trail };
  const late: Incident[] = [
    {
      kind: "begun_late",
      epoch,
      sequence,
      messages,
      detail: `${messages} messages had left the stream before it was first read`,
    },
  ];
  return { position, incidents: messages > 0 ? [...before, ...late] : before, fault: undefined };
}

/**
 * Stops unless the operator accepts the uncertainty. If reading started at a sequence that is too
 * high, messages would be skipped.
 */
function uncertain(
  position: StreamPosition,
  state: StreamState,
  { acceptExpired, uncertainty, words: { action, reread } = noWords }: Facts,
): Resume {
  const { created, firstSequence } = state;
  const { held, gone, olderTo, predatesTrail } = uncertainty;
  const epoch = position.epoch + 1;
  const sequence = firstSequence - 1;
  const those = [
    ...(held > 0 ? [`its ${held} messages from ${firstSequence} to ${sequence + held}`] : []),
    ...(gone > 0 ? [`the ${gone} that have left it`] : []),
  ].join(" and ");
  const is =
    predatesTrail && position.created !== created
      ? `it was created at ${created}, before the last of these messages was stored, so it is an older copy or a stream of another NATS`
      : "it is an older copy or another stream";
  const unknown = held + gone > 0 ? `, and it is unknown whether ${those} were read` : "";
  const what = `the stream was read up to ${position.sequence}, but has none of the newest read messages: ${is}${unknown}`;
  const again = reread(olderTo);
  const fault = `${what}: ${action} from message ${firstSequence}; ${again}`;
  const incident = {
    // Only an incident of the kind `copy_accepted` marks messages as already counted. After a
    // `place_unknown` incident, another stream may get the same epoch.
    ...({ kind: acceptExpired ? "copy_accepted" : "place_unknown", epoch } as const),
    messages: held + gone,
    sequence: acceptExpired ? Math.max(sequence, olderTo) : sequence,
    detail: acceptExpired ? `${what}; continued at ${firstSequence}, as requested; ${again}` : what,
  };
  return {
    position: acceptExpired ? { epoch, created, sequence, trail: [] } : position,
    incidents: [incident],
    fault: acceptExpired ? undefined : fault,
  };
}

function lostFrom(
  position: StreamPosition,
  state: StreamState,
  { at, newest }: Comparison,
): boolean {
  return state.lastSequence < position.sequence || (at !== undefined && at < newest);
}

function checkExpired(
  position: StreamPosition,
  { firstSequence }: StreamState,
  { acceptExpired, replacementsFrom = firstSequence, words: { action } = noWords }: ResumeOptions,
  incidents: readonly Incident[],
): Resume {
  const known = Math.max(position.sequence, reportedTo(position));
  const messages = firstSequence - 1 - known;
  if (messages <= 0) return { position, incidents, fault: undefined };
  const what = `${messages} messages left the stream before they were read, from ${known + 1} to ${firstSequence - 1}`;
  const incident = {
    kind: "expired_unread",
    epoch: position.epoch,
    sequence: known,
    messages,
    detail: acceptExpired ? `${what}; continued after them, as requested` : what,
  } as const;
  const trail =
    replacementsFrom < firstSequence
      ? trailReportedTo(position.trail, firstSequence - 1)
      : position.trail;
  return {
    position: acceptExpired ? { ...position, sequence: replacementsFrom - 1, trail } : position,
    incidents: [...incidents, incident],
    fault: acceptExpired ? undefined : `${what}: ${action} without them`,
  };
}

/** In a copy, all messages after the newest equal message are different. */
async function compare(
  trail: Trail,
  stream: AskedStream,
  { firstSequence, lastSequence }: StreamState,
): Promise<Comparison> {
  const look = async (from: number, floor: number): Promise<Look | undefined> => {
    for (let at = from; at > floor && trail[at]!.sequence >= firstSequence; at--) {
      const message = await stream.message(trail[at]!.sequence);
      if (message !== undefined) return { at, isSame: message.messageId === trail[at]!.messageId };
    }
    return undefined;
  };
  const within = trail.findLastIndex(({ sequence }) => sequence <= lastSequence);
  const newest = await look(within, -1);
  if (newest === undefined) return { at: undefined, newest: -1 };
  if (newest.isSame) return { at: newest.at, newest: newest.at };
  let [same, other] = [-1, newest.at];
  while (other - same > 1) {
    const middle = (same + other) >> 1;
    const found = await look(middle, same);
    if (found?.isSame === false) other = found.at;
    else same = middle;
  }
  return { at: (await look(same, -1))?.at ?? -1, newest: newest.at };
}

interface Look {
  readonly at: number;
  readonly isSame: boolean;
}

const noUncertainty: Uncertainty = {
  held: 0,
  gone: 0,
  isNewer: false,
  predatesTrail: false,
  olderTo: 0,
};
const clockSkewMsMax = 60_000;

/** Called if no message is equal, so only messages before the trail can be equal. */
async function uncertaintyOf(
  trail: Trail,
  stream: AskedStream,
  state: StreamState,
): Promise<Uncertainty> {
  const { created, firstSequence, lastSequence, beginsAt } = state;
  const newestMs = trail.reduce((newest, { storedAtMs }) => Math.max(newest, storedAtMs), 0);
  const first = await stream.messageFrom(firstSequence);
  const isNewer = trail.length > 0 && (first === undefined || first.storedAtMs > newestMs);
  const last = Math.min(lastSequence, (trail[0]?.sequence ?? Number.POSITIVE_INFINITY) - 1);
  return {
    held: isNewer ? 0 : Math.max(0, last - firstSequence + 1),
    gone: firstSequence - beginsAt,
    isNewer,
    predatesTrail: msOfTime(created) + clockSkewMsMax < newestMs,
    olderTo: isNewer ? 0 : await olderTo(newestMs, stream, { from: firstSequence, to: last }),
  };
}

async function olderTo(
  ms: number,
  stream: AskedStream,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<number> {
  let [older, newer] = [from - 1, to + 1];
  while (newer - older > 1) {
    const middle = Math.floor((older + newer) / 2);
    const found = await stream.messageFrom(middle);
    const isOlder = found !== undefined && found.sequence < newer && found.storedAtMs <= ms;
    if (isOlder) older = found.sequence;
    else newer = middle;
  }
  return older < from ? 0 : older;
}
