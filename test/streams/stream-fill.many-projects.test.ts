// Which projects are over their share, decided without a walk through all of them: the decisions
// and questions are those of the plain way, and the work of a step does not grow with the projects.

import type { NatsConnection } from "@nats-io/nats-core";
import { describe, expect, test } from "vitest";
import { StreamFill, type StreamFillOptions } from "../../src/streams/stream-fill.ts";
import { NaiveStreamFill } from "./naive-stream-fill.ts";

const bytesMax = 1_000_000;
const later = () => new Promise((resolve) => setImmediate(resolve));

/** What is in the stream: messages of a byte each, by the last part of their subject. */
type World = Map<string, number>;

/** Answers for the stream, each question when `answer` is called. Keeps what was asked. */
function linkTo(world: World) {
  const asked: string[] = [];
  const held: ((isAnswered: boolean) => void)[] = [];
  const infoOf = (filter: string | undefined) => {
    const bytes = [...world.values()].reduce((sum, messages) => sum + messages, 0);
    const ofSubject =
      filter === undefined ? 0 : world.get(filter.slice(filter.lastIndexOf(".") + 1));
    return {
      config: { max_bytes: bytesMax },
      state: {
        ...{ bytes, messages: bytes, first_seq: 1, last_seq: bytes, num_subjects: world.size },
        ...(filter !== undefined && { subjects: { [filter]: ofSubject ?? 0 } }),
      },
      ...{ total: 1, offset: 0, limit: 100_000 },
    };
  };
  const request = async (subject: string, data?: Uint8Array | string) => {
    if (!subject.includes("STREAM.INFO")) throw new Error("no message is read here");
    const text = typeof data === "string" ? data : new TextDecoder().decode(data);
    const filter: string | undefined = text === "" ? undefined : JSON.parse(text).subjects_filter;
    asked.push(filter ?? "all");
    const isAnswered = await new Promise<boolean>((resolve) => held.push(resolve));
    if (!isAnswered) throw new Error("timeout");
    const json = infoOf(filter);
    return { data: new TextEncoder().encode(JSON.stringify(json)), json: () => json };
  };
  const connection = { options: {}, request } as unknown as NatsConnection;
  return {
    link: { connection, connected: true },
    asked,
    answer: (isAnswered: boolean) => held.shift()?.(isAnswered),
  };
}

function optionsOf(link: StreamFillOptions["link"]): StreamFillOptions {
  return {
    ...{ link, subjectPrefix: "many", lane: "live", partition: 0, isMixed: false },
    ...{ projectShare: 50, projectsKnown: () => 2, onOver: () => {} },
  };
}

/** Numbers below `below` that are the same in each run with the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

interface Walk {
  readonly seed: number;
  readonly isMixed: boolean;
  readonly projectShare: number;
}

const projectIds = Array.from({ length: 30 }, (_, at) => `project-${at}`);

/**
 * Takes both through the same random events, and compares them after each. Fulfilled with how many
 * projects were over their share after an event, summed over the events.
 */
async function compared({ seed, isMixed, projectShare }: Walk): Promise<number> {
  const random = randomOf(seed);
  const world: World = new Map();
  let overSeen = 0;
  let projects = projectIds.length;
  const over = { plain: 0, quick: 0 };
  const links = { plain: linkTo(world), quick: linkTo(world) };
  const given = { isMixed, projectShare, projectsKnown: () => projects };
  const plain = new NaiveStreamFill({
    ...{ ...optionsOf(links.plain.link), ...given },
    onOver: (change) => {
      over.plain += change;
    },
  });
  const quick = new StreamFill({
    ...{ ...optionsOf(links.quick.link), ...given },
    onOver: (change) => {
      over.quick += change;
    },
  });
  const underWay = new Map<string, number>();
  const addUnderWay = (id: string, bytes: number) => {
    underWay.set(id, (underWay.get(id) ?? 0) + bytes);
    for (const fills of [plain, quick]) fills.addUnderWay(fills.fillOf(id) as never, bytes);
  };
  const addTo = (id: string, bytes: number) => {
    const subject = isMixed && random(2) === 0 ? "~" : id;
    world.set(subject, (world.get(subject) ?? 0) + bytes);
  };
  /** The few have much, the many little. */
  const bytesOf = (at: number) => 1 + random(at < 5 ? 30_000 : 2_000);
  const events = [
    () => {
      const at = random(projectIds.length);
      const [id, bytes] = [projectIds[at]!, bytesOf(at)];
      addTo(id, bytes);
      for (const fills of [plain, quick]) fills.addStored(fills.fillOf(id) as never, bytes);
    },
    () => addUnderWay(projectIds[random(8)]!, 1 + random(20_000)),
    () => {
      const id = projectIds[random(8)]!;
      addUnderWay(id, -(underWay.get(id) ?? 0));
    },
    () => addTo(projectIds[random(3)]!, random(40_000)),
    () => {
      if (random(6) > 0) return;
      const all = random(4) === 0;
      for (const [subject, messages] of world)
        if (all || random(5) === 0) world.set(subject, random(messages));
    },
    () => {
      projects = random(30) === 0 ? 1 : projectIds.length;
      for (const fills of [plain, quick]) fills.tick(1_000, 5_000);
    },
    ...Array.from({ length: 6 }, () => () => {
      const isAnswered = random(20) > 0;
      for (const { answer } of Object.values(links)) answer(isAnswered);
    }),
  ];
  for (let event = 0; event < 2_000; event++) {
    events[random(events.length)]!();
    await later();
    const found = projectIds.filter((id) => quick.isOver(id));
    expect(found, `event ${event}`).toEqual(projectIds.filter((id) => plain.isOver(id)));
    expect(over.quick).toBe(found.length);
    expect(links.quick.asked.splice(0), `event ${event}`).toEqual(links.plain.asked.splice(0));
    overSeen += found.length;
  }
  return overSeen;
}

describe("a stream of many projects", () => {
  test("the same projects are asked for, and over their share, as by the plain way", async () => {
    let overSeen = 0;
    for (const [seed, isMixed] of [false, true, false, true].entries())
      for (const projectShare of [50, 10])
        overSeen += await compared({ seed, isMixed, projectShare });
    expect(overSeen).toBeGreaterThan(1_000);
  });

  test("no step touches more projects than a few", async () => {
    const world: World = new Map([["project-7", bytesMax / 2]]);
    const { link, answer, asked } = linkTo(world);
    const stream = new StreamFill(optionsOf(link));
    let touched = 0;
    const fills = Array.from({ length: 20_000 }, (_, at) => {
      const fill = stream.fillOf(`project-${at}`);
      const { acked } = fill;
      let value = acked;
      Object.defineProperty(fill, "acked", {
        get: () => {
          touched++;
          return value;
        },
        set: (to: number) => {
          value = to;
        },
      });
      return fill;
    });
    let most = 0;
    const step = async (run: () => void) => {
      touched = 0;
      run();
      await later();
      most = Math.max(most, touched);
    };
    const add = async () => {
      for (const [at, fill] of fills.entries())
        await step(() => {
          stream.addStored(fill, 1 + (at % 3));
          answer(true);
        });
    };
    const askAll = async () => {
      await step(() => stream.tick(1_000, 1_000));
      for (let answers = 0; answers < 20; answers++) await step(() => answer(true));
    };
    await add();
    asked.length = 0;
    await askAll();
    expect(asked).toHaveLength(1 + 8);
    // The stream is quiet from now on, so that all forget what they had.
    world.set("project-7", 1_000);
    await askAll();
    await add();
    await askAll();
    expect(most).toBeLessThan(1_000);
  });

  test.each([false, true])(
    "projects that add nothing any more are forgotten, mixed: %s",
    async (isMixed) => {
      const world: World = new Map([["~", 1_000]]);
      const { link, answer } = linkTo(world);
      const stream = new StreamFill({ ...optionsOf(link), isMixed });
      const busy = stream.fillOf("busy");
      stream.addUnderWay(busy, 1);
      const first = Array.from({ length: 2_000 }, (_, at) => stream.fillOf(`first-${at}`));
      for (let at = 0; at < 40_000; at++) {
        stream.addStored(stream.fillOf(`project-${at}`), 1);
        answer(true);
        if (at % 100 === 0) stream.tick(1_000, 1_000);
        await later();
      }
      expect(stream.fillOf("busy")).toBe(busy);
      expect(first.filter((fill) => stream.fillOf(fill.projectId) === fill)).toEqual([]);
      expect(stream.projectsKnown).toBeLessThan(15_000);
    },
  );
});
