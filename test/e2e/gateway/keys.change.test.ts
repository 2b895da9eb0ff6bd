import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import {
  addProject,
  rotateKey,
  setEnabled,
} from "../../../src/gateway/projects/registry/commands.ts";
import { gatewayForFile } from "../../kit/for-file.ts";
import { until } from "../../kit/gateway.ts";

const gateway = await gatewayForFile();
const connection = await connect({ servers: gateway.nats.url });

afterAll(() => connection.close());

async function codeFor(key: string): Promise<unknown> {
  const answer = await gateway.post("/capture/", { api_key: key, event: "e", distinct_id: "u" });
  return answer.status === 200 ? "ok" : answer.json["code"];
}

test("an added, disabled, enabled or rotated key takes effect without a restart", async () => {
  const where = { prefix: gateway.config.subjectPrefix, replicas: 1 };
  expect(await codeFor("phc_new")).toBe("unknown_api_key");
  await addProject(connection, { ...where, id: "fresh", name: "Fresh", key: "phc_new" });
  await until(async () => (await codeFor("phc_new")) === "ok", 5_000);
  await setEnabled(connection, { ...where, id: "fresh", enabled: false });
  await until(async () => (await codeFor("phc_new")) === "project_disabled", 5_000);
  await setEnabled(connection, { ...where, id: "fresh", enabled: true });
  await until(async () => (await codeFor("phc_new")) === "ok", 5_000);
  const rotated = await rotateKey(connection, { ...where, id: "fresh" });
  await until(async () => (await codeFor("phc_new")) === "unknown_api_key", 5_000);
  expect(await codeFor(rotated.keys[0] ?? "")).toBe("ok");
});
