// Prints bodies for the replay: `bodies.ts SECONDS SEED`. A four-byte little-endian length precedes
// each body. The same seed gives the same bodies.

import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import fc from "fast-check";
import { eventLikeJson } from "../kit/event-like-json.ts";
import { mutations, readCorpus } from "./inputs.ts";

const eventLikeCount = 3000;

function* bodiesFor(seconds: number, seed: number): Generator<Buffer> {
  const begin = performance.now();
  const texts = fc.sample(eventLikeJson, { numRuns: eventLikeCount, seed });
  const known = [...readCorpus(), ...texts.map((text) => Buffer.from(text))];
  yield* known;
  for (const body of mutations(known, seed)) {
    if (performance.now() - begin > seconds * 1000) return;
    yield body;
  }
}

function* framed(bodies: Iterable<Buffer>): Generator<Buffer> {
  for (const body of bodies) {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(body.length);
    yield Buffer.concat([length, body]);
  }
}

const [seconds = "60", seed = "1"] = process.argv.slice(2);
try {
  await pipeline(Readable.from(framed(bodiesFor(Number(seconds), Number(seed)))), process.stdout);
} catch (error) {
  // A replay that has found an error stops reading.
  if ((error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
}
