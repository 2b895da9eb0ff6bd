// Creates strings for names and values, without the U+0000 and lone surrogates that databases
// reject. Numbers retain their digits.

import { Buffer } from "node:buffer";
import { NotNormal, type Scanner } from "../../../records/table.ts";
import { RecentTexts } from "./recent-texts.ts";

const bufferBytes = 65_536;
const cachedTexts = 4_096;

export class PlainTexts {
  readonly #normalise: Scanner["normalise"];
  readonly #buffer = Buffer.alloc(bufferBytes);
  readonly #texts = new RecentTexts(cachedTexts);

  constructor(normalise: Scanner["normalise"]) {
    this.#normalise = normalise;
  }

  /**
   * Returns the plain form of the JSON value body[start, end); undefined if it is nested too
   * deeply. Throws an Error if the scanner has not enough memory.
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

  /** The range body[start, end) excludes the quotes. */
  nameOf(body: Buffer, start: number, end: number): string {
    const text = this.textOf(body, start, end);
    if (!text.includes("\\")) return text;
    return (JSON.parse(`"${text}"`) as string).replaceAll("\0", "\ufffd").toWellFormed();
  }

  textOf(body: Buffer, start: number, end: number): string {
    return this.#texts.textOf(body, start, end);
  }
}
