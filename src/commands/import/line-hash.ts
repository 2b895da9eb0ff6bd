// The running hash over the lines of a file. It identifies the file when an import resumes, and
// gives uuids to lines without one: equal lines at the same position of equal files get the same
// uuid.

import { createHash, type Hash } from "node:crypto";
import { uuidOfHash } from "./event-uuid.ts";

/**
 * Maximum number of bytes that are hashed together. A call takes as long as hashing some hundred
 * bytes.
 */
const stagedBytes = 262_144;
const separator = 0x0a;

export class LineHash {
  readonly #hash: Hash = createHash("sha256");
  readonly #staged = Buffer.allocUnsafe(stagedBytes);
  #length = 0;

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

  uuid(): string {
    return uuidOfHash(this.#digest("hex"));
  }

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
