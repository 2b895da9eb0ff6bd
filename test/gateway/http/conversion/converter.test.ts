// Bodies in other forms: nothing is converted for a key that nobody has, whatever the body's size.

import { expect, test } from "vitest";
import type { RequestBody } from "../../../../src/gateway/body/request-body.ts";
import type { Conversion } from "../../../../src/gateway/http/conversion/conversion.ts";
import { Converter } from "../../../../src/gateway/http/conversion/converter.ts";

test.each([
  [10, "phc_known", 1],
  [10, "phc_nobody", 0],
  [100_000, "phc_known", 1],
  [100_000, "phc_nobody", 0],
])("a body of %i bytes with the key %s", async (bytes, apiKey, conversions) => {
  let begun = 0;
  const conversion = {
    apiKey,
    // biome-ignore lint/correctness/useYield: it has one step
    *convert() {
      begun++;
      return Buffer.from("converted");
    },
  } as unknown as Conversion;
  const handedOn: string[] = [];
  const converter = new Converter({
    intake: (_request, whole) => {
      handedOn.push(whole.bytes.toString());
      return undefined;
    },
    monotonicMs: () => performance.now(),
  });
  const body = {
    request: { isOver: false },
    hint: undefined as object | undefined,
    get showsProject() {
      return this.hint !== undefined && apiKey === "phc_known";
    },
    peek() {
      this.hint = {};
    },
    tryHold: () => true,
    stopGrowing: () => {},
  };
  const whole = { memory: "owned", bytes: Buffer.alloc(bytes) } as const;
  await converter.take(body as unknown as RequestBody, whole, conversion);
  expect(begun).toBe(conversions);
  const nothing = `{"api_key":"${apiKey}","batch":[]}`;
  expect(handedOn).toEqual([conversions === 1 ? "converted" : nothing]);
});
