import { spawnSync } from "node:child_process";

const native = new URL("../../src/records/native.ts", import.meta.url).href;

/**
 * Provides `createNativeScanner` and `startScans(count)`. `startScans` starts background scans of 4
 * MB and returns their promises.
 */
export const startScansSource = `
  const { createNativeScanner } = await import(${JSON.stringify(native)});
  const startScans = (count) => Array.from({ length: count }, () => {
    const body = Buffer.alloc(4_000_001, "1,");
    body.write("[1");
    body.write("1]", body.length - 2);
    return createNativeScanner(1).scanInBackground(body);
  });
`;

interface Ended {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
}

export function runChild(source: string): Ended {
  const child = spawnSync(
    process.execPath,
    ["--no-warnings", "--input-type=module", "--eval", source],
    {
      encoding: "utf8",
      timeout: 80_000,
    },
  );
  return { exitCode: child.status, signal: child.signal, output: child.stdout + child.stderr };
}
