import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../../src/records/native.ts";
import { type BackgroundScanner, Header, rowsMax, ScanStatus } from "../../../src/records/table.ts";
import { eventLikeJson, mutatedJson } from "../../kit/event-like-json.ts";
import { createReferenceScanner } from "../../kit/reference-scanner/scanner.ts";
import { backgroundOutcomeOf, outcomeOf, written } from "../../kit/scan-outcome.ts";

describe("a background scan agrees with a direct scan", () => {
  for (const [name, createScanner] of [
    ["native", createNativeScanner],
    ["reference", createReferenceScanner],
  ] as const) {
    // Two scanners, so that cached data of one scanner cannot help the other. Three rows, so that
    // batches use scanMore.
    const inBackground = createScanner(3);
    const direct = createScanner(3);

    async function expectAgreement(bytes: Uint8Array): Promise<void> {
      expect(await backgroundOutcomeOf(inBackground, bytes)).toEqual(outcomeOf(direct, bytes));
    }

    test(`on random bodies, valid and invalid (${name})`, async () => {
      const bodies = fc.oneof(
        eventLikeJson.map((text) => Buffer.from(text)),
        mutatedJson,
        fc.uint8Array({ maxLength: 50 }),
      );
      await fc.assert(fc.asyncProperty(bodies, expectAgreement), { numRuns: 1_000 });
    }, 30_000);

    test(`on a body of every status (${name})`, async () => {
      const bodies = ['{"event":"a",\n"uuid":"b"}', " \n", '{"event":"a"\n', '["\xff"]'].map(
        (text) => Buffer.from(text, "latin1"),
      );
      const statuses: ScanStatus[] = [];
      for (const body of bodies) {
        await expectAgreement(body);
        statuses.push((await backgroundOutcomeOf(inBackground, body)).status);
      }
      expect(statuses).toEqual([
        ScanStatus.Ok,
        ScanStatus.Empty,
        ScanStatus.InvalidJson,
        ScanStatus.InvalidUtf8,
      ]);
    });

    test(`if direct and background scans alternate (${name})`, async () => {
      const body = Buffer.from(
        '{"batch":[{"event":"a"},{"event":"b"},{"event":"c"},\n{"event":"d"}]}',
      );
      const scanner = createScanner(1);
      const firstItems: number[] = [];
      for (const more of [
        () => scanner.scanInBackground(body),
        () => scanner.scanMore(body),
        () => scanner.scanMoreInBackground(body),
        () => scanner.scanMore(body),
      ]) {
        await more();
        firstItems.push(scanner.table[Header.FirstItem]!);
      }
      expect(firstItems).toEqual([0, 1, 2, 3]);
      expect(body.includes("\n")).toBe(false);
    });
  }

  test("on a batch with more events than a table has rows", async () => {
    const items = Array.from(
      { length: 2 * rowsMax + 10 },
      (_, index) => `{"event":"e${index}\\n"}`,
    );
    const body = Buffer.from(`{"batch":[${items.join(",\n")}],"api_key":"phc_demo"}`);
    const [background, direct]: [BackgroundScanner, BackgroundScanner] = [
      createNativeScanner(),
      createNativeScanner(),
    ];
    const copies = [Buffer.from(body), Buffer.from(body)] as const;
    expect(await background.scanInBackground(copies[0])).toBe(direct.scan(copies[1]));
    for (const expectedRows of [rowsMax, rowsMax, 10, 0]) {
      expect(background.table[Header.RowCount]).toBe(expectedRows);
      expect(Buffer.from(background.table.buffer).equals(Buffer.from(direct.table.buffer))).toBe(
        true,
      );
      await background.scanMoreInBackground(copies[0]);
      direct.scanMore(copies[1]);
    }
    expect(copies[0].equals(copies[1])).toBe(true);
  });

  test("on a body in shared memory", async () => {
    const text = '{"batch":[{"event":"a"},\n{"event":"b"}]}';
    const scanner = createNativeScanner();
    const outcomes: unknown[] = [];
    for (const scan of [scanner.scan, scanner.scanInBackground]) {
      const body = Buffer.from(new SharedArrayBuffer(text.length));
      body.write(text);
      const status = await scan(body);
      outcomes.push({ status, table: written(scanner.table), text: body.toString() });
    }
    expect(outcomes[1]).toEqual(outcomes[0]);
    expect(outcomes[0]).toMatchObject({ status: ScanStatus.Ok, text: text.replace("\n", " ") });
  });
});
