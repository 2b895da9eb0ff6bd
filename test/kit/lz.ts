// Writes texts like lz-string's compressToBase64, and texts that no compressor would write.

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/**
 * Writes codes and characters. The lowest bit is first, and each output character has six bits. A
 * code needs more bits when there are more phrases.
 */
export class LzWriter {
  #text = "";
  #bits = 0;
  #bitCount = 0;
  #codeBits = 2;
  #room = 2;
  phrases = 3;

  literal(unit: number): void {
    const isWide = unit >= 0x100;
    this.#write(isWide ? 1 : 0, this.#codeBits);
    this.#write(unit, isWide ? 16 : 8);
    this.#grow();
    this.#grow();
  }

  phrase(code: number): void {
    this.#write(code, this.#codeBits);
    this.#grow();
  }

  end(): string {
    this.#write(2, this.#codeBits);
    this.#write(0, 6 - this.#bitCount);
    return this.#text.padEnd(Math.ceil(this.#text.length / 4) * 4, "=");
  }

  #grow(): void {
    if (--this.#room === 0) this.#room = 2 ** this.#codeBits++;
  }

  #write(value: number, count: number): void {
    for (let bit = 0; bit < count; bit++) {
      this.#bits = (this.#bits << 1) | ((value >> bit) & 1);
      if (++this.#bitCount < 6) continue;
      this.#text += alphabet[this.#bits]!;
      this.#bits = 0;
      this.#bitCount = 0;
    }
  }
}

const encoded = new Map<string, string>();

export function lzEncode(text: string): string {
  const known = encoded.get(text);
  if (known !== undefined) return known;
  const result = encode(text);
  if (text.length > 10_000) encoded.set(text, result);
  return result;
}

function encode(text: string): string {
  const writer = new LzWriter();
  const codes = new Map<string, number>();
  const written = new Set<string>();
  let next = 3;
  let phrase = "";
  const emit = (): void => {
    if (phrase.length === 1 && !written.has(phrase)) {
      written.add(phrase);
      writer.literal(phrase.charCodeAt(0));
    } else {
      writer.phrase(codes.get(phrase)!);
    }
  };
  for (let at = 0; at < text.length; at++) {
    const unit = text[at]!;
    if (!codes.has(unit)) codes.set(unit, next++);
    if (codes.has(phrase + unit)) {
      phrase += unit;
    } else {
      emit();
      codes.set(phrase + unit, next++);
      phrase = unit;
    }
  }
  if (phrase !== "") emit();
  return writer.end();
}

/**
 * Returns some thousand characters. They expand to about `length` spaces, followed by the ASCII
 * text `text`.
 */
export function lzBomb(length: number, text = ""): string {
  const writer = new LzWriter();
  const seen = new Set<number>();
  let phrases = 3;
  const literal = (unit: number): void => {
    writer.literal(unit);
    seen.add(unit);
    phrases += phrases === 3 ? 1 : 2;
  };
  for (const letter of text) {
    // A character that occurred before would have to be written as a phrase. It is omitted, because
    // the result would be the same for a bomb.
    if (!seen.has(letter.charCodeAt(0))) literal(letter.charCodeAt(0));
  }
  literal(0x20);
  for (let bytes = 1, phrase = 2; bytes < length; bytes += phrase++) writer.phrase(phrases++);
  return writer.end();
}
