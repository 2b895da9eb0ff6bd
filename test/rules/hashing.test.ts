import { createHmac, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { ValueHash } from "../../src/rules/hashing.ts";

test.each([0, 1, 32, 63, 64, 65, 200])(
  "with a secret of %i bytes, a hash is the HMAC-SHA-256 of a short or long text",
  (secretBytes) => {
    const secret = randomBytes(secretBytes);
    const hash = new ValueHash(secret);
    const texts = ["", "a", "é\n", "\ud800", "😀".repeat(64), "é".repeat(256), "x".repeat(257)];
    for (const text of [...texts, ...texts.toReversed()]) {
      expect(hash.of(text)).toBe(createHmac("sha256", secret).update(text).digest("hex"));
    }
  },
);
