import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestGateway, type TestGateway } from "../../kit/gateway.ts";

const body = { api_key: "phc_0123456789abcdef", event: "e", distinct_id: "d" };
const unknown = "No project has the API key that begins with phc_0123 (20 characters)";
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());

test("a 401 of a gateway without projects explains how to add a project", async () => {
  const none = await gateway.post("/capture/", body);
  expect(none.json).toMatchObject({
    status: 401,
    code: "unknown_api_key",
    detail: `${unknown}. This gateway has no project yet: its operator can add a project with \`penstock project add my-project\` (in a clone \`./penstock project add my-project\`), which prints the key to send`,
  });
  await gateway.project();
  const some = await gateway.post("/capture/", body);
  expect(some.json).toMatchObject({ status: 401, code: "unknown_api_key", detail: unknown });
});
