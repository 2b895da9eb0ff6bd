import { expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { fileWith, linesOf, runImport } from "./import-kit.ts";

const gateway = await gatewayForFile({ env: { PENSTOCK_FRAME_BYTES_MAX: String(4 * 1_048_576) } });

test.each([[50], [700]])(
  "a gateway with large frames recognises a repeated import: %d lines",
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
