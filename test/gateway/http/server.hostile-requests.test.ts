import { connect } from "node:net";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  event,
  expectUnharmed,
  type Heard,
  raw,
  request,
  startTarget,
  stored,
} from "../../kit/hostile.ts";
import { hostileCases } from "./hostile-cases.ts";

const cases = hostileCases();
const randomCount = 300;
const slowCount = 100;

const cut = fc.tuple(fc.nat(400), fc.nat(30)).map(([at, bytes]) => (request: Buffer) => {
  return Buffer.concat([
    request.subarray(0, at % request.length),
    request.subarray((at % request.length) + bytes),
  ]);
});
const tokens = [
  "\r\n",
  "\0",
  "\xff",
  ":",
  "0",
  "9",
  "-",
  ";",
  " ",
  "chunked",
  "\r\n\r\n",
  "Content-Length: 3\r\n",
  '"',
  "{",
  "[",
  "\\",
];
const insertion = fc
  .tuple(fc.nat(400), fc.constantFrom(...tokens))
  .map(([at, token]) => (request: Buffer) => {
    const place = at % request.length;
    return Buffer.concat([
      request.subarray(0, place),
      Buffer.from(token, "latin1"),
      request.subarray(place),
    ]);
  });
const flip = fc.tuple(fc.nat(400), fc.nat(255)).map(([at, byte]) => (request: Buffer) => {
  const flipped = Buffer.from(request);
  flipped[at % request.length] = byte;
  return flipped;
});
const changes = fc.array(fc.oneof(cut, insertion, flip), { minLength: 1, maxLength: 2 });

function slowly(port: number, first: Uint8Array, last: Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    let at = 0;
    let heard = "";
    const socket = connect({ host: "127.0.0.1", port, noDelay: true });
    socket.write(first);
    const timer = setInterval(() => socket.write(last.subarray(at, ++at)), 250);
    socket.setEncoding("latin1").on("data", (text: string) => {
      heard += text;
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearInterval(timer);
      resolve(at < last.length ? heard : "came to its end");
    });
  });
}

test("each hostile request is rejected or disconnected", {
  timeout: 120_000,
}, async () => {
  const target = await startTarget("--body-bytes-max", "1048576");
  const { port } = target;
  const seed = Date.now() % 2 ** 31;
  const changed = fc.sample(changes, { seed, numRuns: randomCount }).map((list, place) => {
    // Ids differ in many digits, so that no change turns one id into another.
    const id = `changed ${(Math.imul(place + 1, 0x9e3779b1) >>> 0).toString(16)}`;
    const bytes = list.reduce((sofar, change) => change(sofar), request(event(id)));
    return { id, bytes };
  });
  const ofCases = Promise.all(
    [...cases].map(
      async ([name, { pieces, options }]) =>
        [name, (await raw(port, pieces, options)).statuses] as const,
    ),
  );
  const ofChanged = Promise.all(
    changed.map(async ({ id, bytes }) => [id, await raw(port, [bytes])] as const),
  );
  const head = Buffer.from("POST /capture/ HTTP/1.1\r\nHost: p\r\n");
  const withLength = request("", ["Content-Length: 500"]);
  const drip = Buffer.alloc(500, "x");
  const slow = Promise.all(
    Array.from({ length: slowCount }, () => [
      slowly(port, head, drip),
      slowly(port, withLength, drip),
    ]).flat(),
  );

  const expectedOf = (name: string, heard: readonly number[]) => {
    const { allowed, orNothing } = cases.get(name)!;
    return orNothing === true && heard.length === 0 ? [] : allowed;
  };
  const heard = await ofCases;
  expect(Object.fromEntries(heard)).toEqual(
    Object.fromEntries(heard.map(([name, statuses]) => [name, expectedOf(name, statuses)])),
  );
  expect(new Set(await slow)).toEqual(new Set([""]));

  const inStream = await stored(target);
  for (const [name, { allowed, stored: expected }] of cases) {
    if (expected === "perhaps") continue;
    const count = inStream.filter((id) => id === name).length;
    expect([name, count]).toEqual([name, allowed.includes(200) ? 1 : 0]);
  }
  for (const [id, heard] of await ofChanged) {
    const count = inStream.filter((one) => one === id).length;
    expect(count, `${id}, seed ${seed}`).toBeLessThanOrEqual(isOurRefusal(heard) ? 0 : 1);
  }
  const acknowledged = (await ofChanged).reduce(
    (sum, [, { text }]) => sum + Number(/"status":"Ok","accepted":(\d+)/.exec(text)?.[1] ?? 0),
    0,
  );
  const untold = (await ofChanged).filter(
    ([, heard]) => heard.statuses[0] !== 200 && !isOurRefusal(heard),
  ).length;
  const known = new Set(["first", ...cases.keys()]);
  const others = inStream.filter((id) => !known.has(id)).length;
  expect(others, `seed ${seed}`).toBeGreaterThanOrEqual(acknowledged);
  expect(others, `seed ${seed}`).toBeLessThanOrEqual(acknowledged + untold);
  await expectUnharmed(target);
});

function isOurRefusal({ statuses, text }: Heard): boolean {
  return statuses[0] !== undefined && statuses[0] !== 200 && text.includes('"code":"');
}
