// A gateway whose frames are larger than they commonly are: it knows an import's requests again.

import { expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { fileWith, linesOf, runImport } from "./import-kit.ts";

const gateway = await gatewayForFile({ env: { PENSTOCK_FRAME_BYTES_MAX: String(4 * 1_048_576) } });

test.each([[50], [700]])(
  "what is imported anew within two minutes is known, and not stored again: %d lines",
  async (lines) => {
    const project = await gateway.project();
    const file = fileWith(linesOf(lines));
    const args = ["--url", gateway.url, "--key", project.key, "--restart", file];
    await runImport(args);
    const again = await runImport(args);
    expect(again.out).toContain(`${lines} events stored`);
    expect((await gateway.events(project, "historical")).length).toBe(lines);
  },
);
