import fc from "fast-check";
import { expect, test } from "vitest";
import { event, expectUnharmed, raw, request, startTarget, stored } from "../../kit/hostile.ts";

const requestLineBytes = "POST /capture/ HTTP/1.1\r\n".length;

function cutAt(bytes: Buffer, places: readonly number[]): Buffer[] {
  const edges = [0, ...places.toSorted((left, right) => left - right), bytes.length];
  return edges.slice(1).map((end, place) => bytes.subarray(edges[place], end));
}

function placesIn(bytes: Buffer, numbers: readonly number[]): number[] {
  return numbers.map((number) => requestLineBytes + (number % (bytes.length - requestLineBytes)));
}

function inChunks(body: string): Buffer {
  const chunks = [body.slice(0, 20), body.slice(20)].map(
    (part) => `${part.length.toString(16)}\r\n${part}\r\n`,
  );
  return request(`${chunks.join("")}0\r\n\r\n`, ["Transfer-Encoding: chunked"]);
}

test("an event is stored once wherever its request is split", { timeout: 120_000 }, async () => {
  const target = await startTarget();
  const seed = Date.now() % 2 ** 31;
  const sent = new Map<string, Buffer[]>();
  const whole = request(event("at 000"));
  for (let place = 1; place < whole.length; place++) {
    const id = `at ${String(place).padStart(3, "0")}`;
    sent.set(id, cutAt(request(event(id)), [place]));
  }
  const atRandom = fc.sample(fc.array(fc.nat(400), { minLength: 2, maxLength: 20 }), {
    seed,
    numRuns: 100,
  });
  for (const [run, numbers] of atRandom.entries()) {
    const plain = request(event(`random ${run}`));
    const chunked = inChunks(event(`random chunks ${run}`));
    sent.set(`random ${run}`, cutAt(plain, placesIn(plain, numbers)));
    sent.set(`random chunks ${run}`, cutAt(chunked, placesIn(chunked, numbers)));
  }
  for (const bytes of [request(event("bytes")), inChunks(event("bytes in chunks"))]) {
    const places = Array.from(
      { length: bytes.length - requestLineBytes },
      (_, place) => requestLineBytes + place,
    );
    sent.set(bytes.includes("chunked") ? "bytes in chunks" : "bytes", cutAt(bytes, places));
  }
  const heard = new Map(
    await Promise.all(
      [...sent].map(
        async ([id, pieces]) => [id, (await raw(target.port, pieces)).statuses[0]] as const,
      ),
    ),
  );
  // uWS reads some pieces of a request line as a complete line of another HTTP version.
  const mayBeRefused = [...heard].filter(
    ([id, status]) => sent.get(id)![0]!.length < requestLineBytes && status === 505,
  );
  const refused = new Set(mayBeRefused.map(([id]) => id));
  const expected = [...sent.keys()].filter((id) => !refused.has(id));
  expect(
    [...heard].filter(([id, status]) => status !== 200 && !refused.has(id)),
    `seed ${seed}`,
  ).toEqual([]);
  expect((await stored(target)).toSorted(), `seed ${seed}`).toEqual(
    ["first", ...expected].toSorted(),
  );
  await expectUnharmed(target);
});
