import { describe, expect, test } from "vitest";
import { portAccess } from "../../src/app/require-token.ts";
import { CommandError } from "../../src/commands/context.ts";
import { checkTokens } from "../../src/commands/doctor/ports.ts";
import { readConfig } from "../../src/platform/settings/read-config.ts";

function configWith(env: Record<string, string>) {
  const result = readConfig(env, {});
  if (!result.ok) throw new Error(result.faults.join("; "));
  return result.config;
}

describe("a port that other hosts can reach", () => {
  test.each(["admin", "effects", "sink"] as const)("needs a token: %s", (port) => {
    const host = { [`PENSTOCK_${port.toUpperCase()}_HOST`]: "0.0.0.0" };
    let error: unknown;
    try {
      portAccess(configWith(host), port);
    } catch (found) {
      error = found;
    }
    expect(error).toBeInstanceOf(CommandError);
    expect(error).toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(
        `cannot open the ${port} port on 0.0.0.0: .* PENSTOCK_ADMIN_TOKEN_FILE, or PENSTOCK_${port.toUpperCase()}_HOST .* PENSTOCK_ADMIN_AUTH=off$`,
      ),
    });
    const token = { PENSTOCK_READ_TOKEN: "a-read-only-token" };
    expect(portAccess(configWith({ ...host, ...token }), port).needsToken).toBe(true);
    const off = { PENSTOCK_ADMIN_AUTH: "off" };
    expect(portAccess(configWith({ ...host, ...off }), port).needsToken).toBe(false);
    expect(checkTokens(configWith(host))).toMatchObject([
      { level: "fail", found: expect.stringContaining(`the ${port} port on 0.0.0.0`) },
    ]);
    expect(checkTokens(configWith({ ...host, ...off }))).toMatchObject([
      {
        level: "warn",
        found: expect.stringContaining(`the ${port} port on 0.0.0.0 needs no token`),
      },
    ]);
    expect(checkTokens(configWith({ ...host, ...token }))).toMatchObject([{ level: "ok" }]);
  });

  test("listens on loopback by default", () => {
    for (const port of ["admin", "effects", "sink"] as const)
      expect(portAccess(configWith({}), port).needsToken).toBe(false);
    expect(checkTokens(configWith({}))).toMatchObject([{ level: "ok" }]);
  });
});
