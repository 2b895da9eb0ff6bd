import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Block, blocksOf, testName } from "./docs-kit.ts";
import { blocks, interrupt, marked, Runner } from "./runner.ts";

const runner = new Runner();
beforeAll(() => runner.open(), 90_000);
afterAll(() => runner.close(), 60_000);

function answerBelow({ file, line }: Block): string {
  const below = blocksOf(file).find((block) => block.line > line);
  if (below?.language !== "json") throw new Error(`read ${file}: no answer below line ${line}`);
  return below.text;
}

async function send(event: string): Promise<void> {
  expect(await runner.send(event)).toBe(200);
}

test("every marked block of the documents is run by a test", () => {
  const known = [
    "up",
    "gateway",
    "v1",
    "tail",
    "doctor",
    "load",
    "checkout",
    "sdk",
    "reader",
    "durable",
    "removal",
    "killed",
    "vitest",
    "node-test",
  ];
  const isTutorial = (block: Block) => block.file.startsWith("docs/tutorials/");
  const others = marked.filter((block) => !isTutorial(block));
  expect(others.filter((block) => !known.includes(testName(block)!))).toEqual([]);
  for (const name of known) expect([name, blocks(name).length > 0]).toEqual([name, true]);
  expect(blocks("up")).toHaveLength(1);
});

describe("a documented block", () => {
  test.each(blocks("gateway"))(
    "with requests works against a gateway: %s",
    { timeout: 120_000 },
    async (_, block) => {
      const run = runner.startShell(block);
      expect([await run.ended, run.said.err]).toEqual([0, expect.any(String)]);
      const answers = run.said.out.split("\n").filter((line) => line.startsWith('{"status":"Ok"'));
      const expected = block.text.match(/http:\/\/127\.0\.0\.1:8000\//g) ?? [];
      expect(answers).toHaveLength(expected.length);
      for (const answer of answers) {
        expect(JSON.parse(answer)).toEqual({
          status: "Ok",
          accepted: expect.any(Number),
          dropped: 0,
        });
        expect(JSON.parse(answer).accepted).toBeGreaterThan(0);
      }
    },
  );

  test.each(blocks("v1"))(
    "with requests of the newer protocol gets the documented answer: %s",
    { timeout: 120_000 },
    async (_, block) => {
      const run = runner.startShell(block);
      await run.ended;
      expect(JSON.parse(run.said.out)).toEqual(JSON.parse(answerBelow(block)));
    },
  );

  test.each(blocks("sdk"))(
    "with an SDK works against a gateway: %s",
    { timeout: 120_000 },
    async (_, block) => {
      const run = runner.startProgram(block);
      expect([await run.ended, run.said.err]).toEqual([0, ""]);
    },
  );
});

describe("a documented block that does not end", () => {
  test.each(blocks("tail"))(
    "prints events as `tail` until it is stopped: %s",
    { timeout: 120_000 },
    async (at, block) => {
      const run = runner.startShell(block);
      onTestFinished(() => interrupt(run, "SIGKILL"));
      await expect.poll(() => run.said.err, { timeout: 120_000 }).toContain("following");
      await send(`seen by tail of ${at}`);
      await expect
        .poll(() => run.said.out, { timeout: 30_000 })
        .toContain(`"seen by tail of ${at}"`);
      interrupt(run);
      await run.ended;
    },
  );

  test.each(blocks("reader"))(
    "reads events in a program until it is stopped: %s",
    { timeout: 120_000 },
    async (_, block) => {
      const run = runner.startProgram(block);
      onTestFinished(() => interrupt(run, "SIGKILL"));
      // The program reads from the first event, so it also reads the events of the blocks above.
      await expect.poll(() => run.said.out, { timeout: 30_000 }).toMatch(/\$lib\W+posthog-node/);
      await send("read by a program");
      await expect.poll(() => run.said.out, { timeout: 30_000 }).toContain("read by a program");
      const logged = run.said.err.split("\n").slice(0, -1);
      expect(logged.filter((line) => !line.includes("has no consumer of this name yet"))).toEqual(
        [],
      );
    },
  );
});

test.each(blocks("durable"))(
  "the documented program with a durable consumer works: %s",
  { timeout: 120_000 },
  async (_, block) => {
    const first = runner.startProgram(block);
    onTestFinished(() => interrupt(first, "SIGKILL"));
    for (const event of ["acknowledged", "seen last"]) {
      await send(event);
      await expect.poll(() => first.said.out, { timeout: 30_000 }).toContain(event);
    }
    interrupt(first, "SIGKILL");
    await first.ended;
    await send("sent while it was away");
    const second = runner.startProgram(block);
    onTestFinished(() => interrupt(second, "SIGKILL"));
    const away = "sent while it was away";
    await expect.poll(() => second.said.out, { timeout: 30_000 }).toContain(away);
    expect(second.said.out).not.toContain("acknowledged");
    expect([first.said.err, second.said.err]).toEqual(["", ""]);
  },
);

test.each(blocks("removal"))(
  "the documented commands that remove a project work: %s",
  { timeout: 120_000 },
  async (_, block) => {
    const penstock = async (command: string): Promise<string> => {
      const run = runner.start("npm", [
        "run",
        "-s",
        "penstock",
        "--",
        "project",
        ...command.split(" "),
      ]);
      await run.ended;
      return run.said.out;
    };
    // The blocks above may have added the project already.
    await penstock("add shop");
    expect(await penstock("list")).toMatch(/^shop /m);
    const run = runner.startShell(block);
    expect([await run.ended, run.said.err]).toEqual([0, expect.any(String)]);
    expect(run.said.out).toContain("project shop removed");
    const left = await penstock("list");
    expect(left).toMatch(/^demo /m);
    expect(left).not.toMatch(/^shop /m);
  },
);

describe("a documented block that ends by itself", () => {
  const names = ["doctor", "load", "checkout"] as const;
  test.each(names.flatMap(blocks))("works: %s", { timeout: 120_000 }, async (_, block) => {
    const run = runner.startShell(block);
    expect([await run.ended, run.said.out, run.said.err]).toEqual([
      0,
      expect.any(String),
      expect.any(String),
    ]);
    expect(run.said.out).not.toBe("");
  });
});
