import { type ImportResult, importKilled, runImportKilled } from "./import-killed.ts";

interface ImportPlan {
  readonly imports: readonly { readonly name: string }[];
  readonly binaries: readonly string[];
  readonly short: boolean;
  readonly seed: number;
}

export async function runImports(
  { imports, binaries, short, seed }: ImportPlan,
  failures: string[],
  versionOf: (binary: string) => string,
): Promise<ImportResult[]> {
  const results: ImportResult[] = [];
  for (const binary of imports.length === 0 ? [] : binaries) {
    const natsVersion = versionOf(binary);
    const what = `${importKilled.name}, nats-server ${natsVersion}`;
    process.stderr.write(`${what}: ${importKilled.title}\n`);
    try {
      const form = short ? "short" : "full";
      const result = await runImportKilled({ form, binary, natsVersion, seed });
      results.push(result);
      for (const note of result.notes) process.stderr.write(`  ${note}\n`);
      for (const fault of result.faults) process.stderr.write(`  BROKEN: ${fault}\n`);
    } catch (error) {
      failures.push(`${what}: ${(error as Error).message}`);
      process.stderr.write(`  NOT RUN TO ITS END: ${(error as Error).message}\n`);
    }
  }
  return results;
}
