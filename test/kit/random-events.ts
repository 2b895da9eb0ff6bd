import type { Lane } from "../../src/platform/base/lane.ts";
import { type TestEvent, type TestFrame, uuidOf } from "./stored-events.ts";

export function numbersFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const startMs = Date.UTC(2026, 10, 20, 12);
let frames = 0;
let events = 0;

export function randomFrames(
  random: () => number,
  { count, partitions = 1, linkedLanes = ["live"], mayRefuse = true }: RandomFrames,
): TestFrame[] {
  const sent: Record<Lane, TestEvent[]> = { live: [], historical: [] };
  return Array.from({ length: count }, () => {
    const project = Math.floor(random() * 4);
    const lane: Lane = random() < 0.3 ? "historical" : "live";
    const messageId = `frame-${++frames}`;
    const some = Array.from({ length: 1 + Math.floor(random() * 8) }, () => {
      const before = sent[lane];
      const again = random() < 0.05 ? before[Math.floor(random() * before.length)] : undefined;
      const event =
        again ?? randomEvent(random, { hasLinks: linkedLanes.includes(lane), mayRefuse });
      before.push(event);
      return event;
    });
    const partition = project % partitions;
    return { lane, partition, projectId: `p${project}`, messageId, events: some };
  });
}

interface RandomFrames {
  readonly count: number;
  readonly partitions?: number;
  /**
   * The lanes whose events contain links. By default, only the live lane has links, because refused
   * links depend on the order in which the lanes are read.
   */
  readonly linkedLanes?: readonly Lane[];
  /** If false, no link is refused, so the result does not depend on the order of the events. */
  readonly mayRefuse?: boolean;
}

function randomEvent(
  random: () => number,
  { hasLinks, mayRefuse }: { readonly hasLinks: boolean; readonly mayRefuse: boolean },
): TestEvent {
  const pick = (count: number): number => Math.floor(random() * count);
  const id = (): string => `id-${pick(25)}`;
  const receivedAtMs = startMs + ++events * 100;
  const uuid = uuidOf(events);
  const base = { uuid, distinctId: id(), receivedAtMs, timeMs: receivedAtMs - pick(20) * 60_000 };
  const groups = { $groups: { company: `c${pick(5)}` } };
  const link = hasLinks ? pick(8) : 2 + pick(6);
  if (link < 2 && !mayRefuse)
    return { ...base, event: "$merge_dangerously", kind: "alias", properties: { alias: id() } };
  switch (link) {
    case 0:
      return {
        ...base,
        event: "$identify",
        kind: "identify",
        properties: { $anon_distinct_id: id() },
      };
    case 1:
      return { ...base, event: "$create_alias", kind: "alias", properties: { alias: id() } };
    case 2: {
      const properties = {
        $group_type: "company",
        $group_key: `c${pick(5)}`,
        $group_set: { n: pick(9) },
      };
      return { ...base, event: "$groupidentify", kind: "group_identify", properties };
    }
    case 3:
      return { ...base, personProfile: false };
    case 4:
      return { ...base, set: { [`k${pick(4)}`]: pick(100) }, properties: groups };
    case 5:
      return { ...base, setOnce: { [`k${pick(4)}`]: `once ${pick(100)}` } };
    case 6:
      return { ...base, unset: [`k${pick(4)}`] };
    default:
      return base;
  }
}
