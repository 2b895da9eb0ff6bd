// Creates strings for names and values: without U+0000 and lone surrogates, which databases reject,
// and without white space between tokens. Numbers retain their digits. A recent short text is
// returned as the same string object.

import { Buffer } from "node:buffer";
import { NotNormal, type Scanner } from "../../../records/table.ts";
import { RecentTexts } from "./recent-texts.ts";

/** Size in bytes of the buffer that is reused for plain forms. */
const bufferBytes = 65_536;
/** Number of cached short names and values. */
const cachedTexts = 4_096;

export class PlainTexts {
  readonly #normalise: Scanner["normalise"];
  readonly #buffer = Buffer.alloc(bufferBytes);
  readonly #texts = new RecentTexts(cachedTexts);

  /** Creates an empty cache. `normalise` is the function of a scanner. */
  constructor(normalise: Scanner["normalise"]) {
    this.#normalise = normalise;
  }

  /**
   * Returns the plain form of the JSON value body[start, end); undefined if it is nested deeper
   * than `depthMax`.
   *
   * @throws Error if the scanner has not enough memory for the value.
   */
  valueOf(body: Buffer, start: number, end: number): string | undefined {
    const room = end - start;
    const target = room <= bufferBytes ? this.#buffer : Buffer.allocUnsafe(room);
    const length = this.#normalise(body, start, end, target, 0);
    if (length === NotNormal.NotJson) return undefined;
    if (length < 0)
      throw new Error(`Writing the plain form of a value: the scanner returned ${length}`);
    return target.toString("utf8", 0, length);
  }

  /** Returns the text of the name body[start, end), which excludes the quotes. */
  nameOf(body: Buffer, start: number, end: number): string {
    const text = this.textOf(body, start, end);
    if (!text.includes("\\")) return text;
    return (JSON.parse(`"${text}"`) as string).replaceAll("\0", "\ufffd").toWellFormed();
  }

  /** Returns the bytes body[start, end) as text. */
  textOf(body: Buffer, start: number, end: number): string {
    return this.#texts.textOf(body, start, end);
  }
}
