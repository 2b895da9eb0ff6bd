import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { readConfig } from "../../../src/platform/settings/read-config.ts";

const admin = "an-admin-token-01";
const next = "an-admin-token-02";

function faultsOf(env: Record<string, string>): readonly string[] {
  const result = readConfig(env, {});
  return result.ok ? [] : result.faults;
}

function fileOf(text: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-tokens-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "token");
  writeFileSync(file, text);
  return file;
}

describe("the tokens of the ports", () => {
  test("are read from a file, one per line", () => {
    const file = fileOf(`${admin}\r\n\n  ${next}  \n`);
    const result = readConfig({ PENSTOCK_ADMIN_TOKEN_FILE: file }, {});
    expect(result).toMatchObject({ ok: true, config: { adminTokenFile: [admin, next] } });
  });

  test.each([
    "short",
    "a token with spaces",
    "has-an-ümlaut-in-it",
    "x".repeat(257),
    "=".repeat(20),
  ])("are rejected without showing them if they are malformed: %s", (secret) => {
    const file = fileOf(`${admin}\n${secret}\n`);
    for (const [env, said] of [
      [{ PENSTOCK_READ_TOKEN: secret }, "PENSTOCK_READ_TOKEN: must be 16 to 256"],
      [{ PENSTOCK_ADMIN_TOKEN_FILE: file }, `PENSTOCK_ADMIN_TOKEN_FILE: token 2 in ${file}`],
    ] as const) {
      const [fault = ""] = faultsOf(env);
      expect(fault).toContain(said);
      expect(fault).not.toContain(secret);
    }
  });

  test("are rejected if no request would need them", () => {
    const env = { PENSTOCK_ADMIN_AUTH: "off", PENSTOCK_ADMIN_TOKEN: admin };
    expect(faultsOf(env)).toEqual([
      "PENSTOCK_ADMIN_AUTH: must not be off if a token is set, because no request would need it",
    ]);
  });

  test("are rejected if their file contains no token or is unreadable", () => {
    const file = fileOf("\n \n");
    expect(faultsOf({ PENSTOCK_READ_TOKEN_FILE: file })).toEqual([
      `PENSTOCK_READ_TOKEN_FILE: ${file} contains no token`,
    ]);
    expect(faultsOf({ PENSTOCK_READ_TOKEN_FILE: "/does/not/exist" })).toEqual([
      "PENSTOCK_READ_TOKEN_FILE: cannot read /does/not/exist: ENOENT",
    ]);
  });

  test("are rejected if two settings of tokens conflict", () => {
    const file = fileOf(`${next}\n${admin}\n`);
    expect(faultsOf({ PENSTOCK_ADMIN_TOKEN: admin, PENSTOCK_ADMIN_TOKEN_FILE: file })).toEqual([
      "PENSTOCK_ADMIN_TOKEN and PENSTOCK_ADMIN_TOKEN_FILE: set only one of them",
    ]);
    expect(faultsOf({ PENSTOCK_ADMIN_TOKEN: admin, PENSTOCK_READ_TOKEN_FILE: file })).toEqual([
      "PENSTOCK_READ_TOKEN: must differ from PENSTOCK_ADMIN_TOKEN",
    ]);
  });
});
