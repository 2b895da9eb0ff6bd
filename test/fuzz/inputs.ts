import { readFileSync } from "node:fs";

export function readCorpus(): Buffer[] {
  const text = readFileSync(new URL("corpus.jsonl", import.meta.url), "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => Buffer.from(JSON.parse(line) as string, "latin1"));
}

function readDictionary(): Buffer[] {
  const text = readFileSync(new URL("dictionary.txt", import.meta.url), "utf8");
  return text
    .split("\n")
    .filter((line) => line.startsWith('"'))
    .map((line) => {
      // JSON has no \xNN.
      const word = JSON.parse(
        line.replaceAll(/\\\\|\\x/g, (match) => (match === "\\x" ? "\\u00" : match)),
      ) as string;
      return Buffer.from(word, "latin1");
    });
}

function createRandom(seed: number): (count: number) => number {
  let state = (Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995) >>> 0 || 1;
  return (count) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % count;
  };
}

const jsonBytes = Buffer.from('{}[]",:\\tfnu0123456789-.eE \t\n\r');

/** Each body is a body of the corpus with one to four changes. The sequence is infinite. */
export function* mutations(corpus: readonly Buffer[], seed: number): Generator<Buffer, never> {
  const random = createRandom(seed);
  const dictionary = readDictionary();

  function pieceOf(body: Buffer): Buffer {
    const start = random(body.length + 1);
    return body.subarray(start, start + 1 + random(40));
  }

  function replacement(): Buffer {
    switch (random(5)) {
      case 0:
        return Buffer.from([random(256)]);
      case 1:
        return Buffer.from([jsonBytes[random(jsonBytes.length)]!]);
      case 2:
        return Buffer.alloc(0);
      case 3:
        return dictionary[random(dictionary.length)]!;
      default:
        return pieceOf(corpus[random(corpus.length)]!);
    }
  }

  for (;;) {
    let body = corpus[random(corpus.length)]!;
    for (let changes = 1 + random(4); changes > 0; changes -= 1) {
      const start = random(body.length + 1);
      const end = start + (random(2) === 0 ? 0 : 1 + random(6));
      body = Buffer.concat([body.subarray(0, start), replacement(), body.subarray(end)]);
    }
    yield body;
  }
}
