// The running hash over the lines of a file. It is both what tells one file from another when an
// import goes on, and what the uuids of lines without one are made of: two files that are equal up
// to a line give it the same uuid, and two equal lines of one file get two.

import { createHash, type Hash } from "node:crypto";
import { uuidOfHash } from "./event-uuid.ts";

/** Lines are hashed together up to this many bytes: a call takes as long as some hundred bytes. */
const stagedBytes = 262_144;
const separator = 0x0a;

export class LineHash {
  readonly #hash: Hash = createHash("sha256");
  readonly #staged = Buffer.allocUnsafe(stagedBytes);
  #length = 0;

  /** Takes the line text[start, end). */
  add(text: Buffer, start: number, end: number): void {
    const bytes = end - start + 1;
    if (this.#length + bytes > stagedBytes) this.#flush();
    if (bytes > stagedBytes) {
      this.#hash.update(text.subarray(start, end)).update("\n");
      return;
    }
    text.copy(this.#staged, this.#length, start, end);
    this.#length += bytes;
    this.#staged[this.#length - 1] = separator;
  }

  /** The uuid of the last line that was added, as it stands behind all lines before it. */
  uuid(): string {
    return uuidOfHash(this.#digest("hex"));
  }

  /** Tells the lines added so far from all others, as text. */
  fingerprint(): string {
    return this.#digest("base64url");
  }

  #digest(encoding: "hex" | "base64url"): string {
    this.#flush();
    return this.#hash.copy().digest(encoding);
  }

  #flush(): void {
    if (this.#length > 0) this.#hash.update(this.#staged.subarray(0, this.#length));
    this.#length = 0;
  }
}
