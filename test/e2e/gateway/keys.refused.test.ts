import { connect } from "@nats-io/transport-node";
import { beforeAll, describe, expect, test } from "vitest";
import { unknownKeyDetail } from "../../../src/gateway/intake/hints.ts";
import { setEnabled } from "../../../src/gateway/projects/registry/commands.ts";
import { gatewayForFile } from "../../kit/for-file.ts";
import { until } from "../../kit/gateway.ts";

const gateway = await gatewayForFile();
const known = await gateway.project();
const off = await gateway.project();

beforeAll(async () => {
  const connection = await connect({ servers: gateway.nats.url });
  await setEnabled(connection, { prefix: "penstock", replicas: 1, id: off.id, enabled: false });
  await connection.close();
  await until(async () => (await answer(off.key)).status === 401);
});

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly json: Record<string, unknown>;
}

/**
 * The body is invalid in every other respect, so that a client with a valid key gets a different
 * answer.
 */
async function answer(key: string): Promise<Answer> {
  const batch = [
    { event: "$pageview", distinct_id: "d", timestamp: "never" },
    { event: "$create_alias", distinct_id: "d" },
  ];
  const { status, headers, json } = await gateway.post("/batch/", { api_key: key, batch });
  const seen = Object.fromEntries([...headers].filter(([name]) => name !== "date"));
  return { status, headers: seen, json };
}

describe("the answer to a rejected API key", () => {
  test("differs between unknown and disabled keys only in code and texts", async () => {
    const unknown = await answer("phc_nobody");
    const disabled = await answer(off.key);
    expect(unknown.json).toMatchObject({ status: 401, code: "unknown_api_key" });
    expect(disabled.json).toMatchObject({ status: 401, code: "project_disabled" });
    const varying = new Set(["code", "type", "title", "detail"]);
    const rest = ({ json }: Answer): object =>
      Object.fromEntries(Object.entries(json).filter(([name]) => !varying.has(name)));
    expect(Object.keys(disabled.json).sort()).toEqual(Object.keys(unknown.json).sort());
    expect(rest(disabled)).toEqual(rest(unknown));
    const headers = (of: Answer): object => ({ ...of.headers, "content-length": "any" });
    expect(headers(disabled)).toEqual(headers(unknown));
  });

  test("does not reveal whether an unknown key resembles an existing key", async () => {
    const far = await answer("phc_nobody");
    const rest = ({ headers, json, ...of }: Answer): object => ({
      ...of,
      headers: { ...headers, "content-length": "any" },
      json: { ...json, detail: "any" },
    });
    for (const { key } of [known, off]) {
      const last = key.at(-1) === "0" ? "1" : "0";
      const near = [
        key.slice(0, -1),
        key.slice(0, -1) + last,
        `${key}0`,
        key.toUpperCase(),
        key.slice(1),
        `${key} ${key}`,
      ];
      for (const other of [...near, `${key}\u0000`, `${key}\u00a0x`, key.replace("p", "\u0440")]) {
        const refused = await answer(other);
        expect([other, rest(refused)]).toEqual([other, rest(far)]);
        expect(refused.json["detail"]).toBe(
          unknownKeyDetail(Buffer.from(other).toString("latin1")),
        );
      }
    }
  });

  test("differs from the answer to an accepted key", async () => {
    expect((await answer(known.key)).json).toMatchObject({ status: "Ok" });
  });
});
