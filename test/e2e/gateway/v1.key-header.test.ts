import { connect } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { setEnabled } from "../../../src/gateway/projects/registry/commands.ts";
import { gatewayForFile } from "../../kit/for-file.ts";
import { until } from "../../kit/gateway.ts";
import { postV1, v1Body, v1Event, v1Headers } from "../../kit/v1-requests.ts";

const gateway = await gatewayForFile();
const project = await gateway.project();

describe("the v1 protocol", () => {
  test.each([
    "api_key",
    "token",
    "apiKey",
    "api-key",
    "projectApiKey",
    "write_key",
    "key",
    "api_kye",
  ])("asks for the API key in the header if the body has %s", async (name) => {
    const headers = { ...v1Headers(project.key), Authorization: "" };
    const before = await gateway.events(project);
    for (const body of [
      v1Body([v1Event()], { [name]: project.key }),
      v1Body([], { [name]: project.key }),
      JSON.stringify({ ...v1Event(), [name]: project.key }),
      JSON.stringify([{ ...v1Event(), [name]: project.key }]),
    ]) {
      const { status, json } = await postV1(gateway, body, headers);
      expect([status, json.error]).toEqual([401, "missing_api_key"]);
      expect(json.error_description).toMatch(
        /must be in the header Authorization, as Bearer <key>/,
      );
      expect(json.error_description).toMatch(/; (?:a key|"[^"]+") in the body is ignored$/);
      expect(json.error_description).not.toContain("write ");
      expect(json.error_description).not.toContain(project.key);
    }
    expect(await gateway.events(project)).toEqual(before);
  });

  test("rejects events of a disabled project until it is enabled", async () => {
    const mine = await gateway.project();
    const send = () => postV1(gateway, v1Body([v1Event()]), v1Headers(mine.key));
    const turn = async (enabled: boolean) => {
      const connection = await connect({ servers: gateway.nats.url });
      await setEnabled(connection, {
        prefix: gateway.config.subjectPrefix,
        replicas: 1,
        id: mine.id,
        enabled,
      });
      await connection.close();
    };
    expect((await send()).status).toBe(200);
    await turn(false);
    await until(async () => (await send()).status !== 200);
    const stored = await gateway.events(mine);
    expect(await send()).toMatchObject({
      status: 401,
      json: { error: "project_disabled", error_description: "The project is disabled" },
    });
    expect(await gateway.events(mine)).toEqual(stored);
    await turn(true);
    await until(async () => (await send()).status === 200);
  });

  test("shows invalid JSON around the error without any key", async () => {
    const body = `{"created_at":"2026-01-31T12:00:00Z","api_key":"${project.key}","batch":[1],}`;
    const { status, json } = await postV1(gateway, body, v1Headers(project.key));
    expect([status, json.error]).toEqual([400, "invalid_json"]);
    expect(json.error_description).toMatch(
      /: remove the comma before it\. Near: [ -~]*,"batch":\[1\],\}$/,
    );
    expect(json.error_description).not.toContain(project.key);
  });
});
