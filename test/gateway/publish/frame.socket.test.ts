import { expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { mebibyte, nextTurn, type Settled, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

const framesEach = 30;
/** Thirty frames of this size far exceed the socket's buffer. */
const earlyBytes = 500_000;

function lineOf(name: string, bytes: number): string {
  const mark = `${name}.`;
  return mark.repeat(Math.ceil(bytes / mark.length)).slice(0, bytes);
}

test("frames that expire while they wait in the socket arrive unchanged", async () => {
  const rig = await startRig(server, {
    ackTimeoutMs: 20_000,
    settings: { streamBytesMax: 128 * mebibyte },
  });
  const sent = new Map<string, string>();

  /**
   * One frame per turn, because the NATS client copies several messages, but writes a single
   * message from the frame's memory.
   */
  async function sendEach(
    kind: string,
    bytesOf: (index: number) => number,
    withinMs: number,
  ): Promise<Promise<Settled>[]> {
    const outcomes: Promise<Settled>[] = [];
    for (let index = 0; index < framesEach; index++) {
      const name = `${kind}${index}`;
      const line = lineOf(name, bytesOf(index));
      sent.set(name, line);
      outcomes.push(rig.send("live", line, { project: name, withinMs }));
      await nextTurn();
    }
    return outcomes;
  }

  server.freeze();
  const early = await Promise.all(await sendEach("early", () => earlyBytes, 400));
  expect(early).toEqual(early.map(() => ({ outcome: "unknown", code: "timeout" })));
  const late = await sendEach("late", (index) => earlyBytes - 1 - index * 10_007, 20_000);
  server.thaw();
  expect(await Promise.all(late)).toEqual(late.map(() => stored));

  const arrived = new Map<string, string>();
  for (const { subject, lines } of await rig.stored("live")) {
    const name = subject.slice(subject.lastIndexOf(".") + 1);
    expect(lines, name).toHaveLength(1);
    // A diff of half a megabyte would take minutes.
    expect(lines[0] === sent.get(name), `${name} arrived as ${lines[0]?.slice(0, 40)}`).toBe(true);
    arrived.set(name, lines[0]!);
  }
  for (let index = 0; index < framesEach; index++) expect(arrived.has(`late${index}`)).toBe(true);
  await rig.close();
}, 60_000);
