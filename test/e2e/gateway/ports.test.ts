import { request } from "node:http";
import { describe, expect, test } from "vitest";
import { readConfig } from "../../../src/platform/settings/read-config.ts";
import { gatewayForFile } from "../../kit/for-file.ts";

const gateway = await gatewayForFile();
const project = await gateway.project();

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];
const adminPages = ["/metrics", "/livez", "/readyz"];

/** `fetch` does not support some of these methods. */
function ask(url: string, method: string, body = ""): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { "Content-Length": Buffer.byteLength(body) };
    const sent = request(url, { method, headers, agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    sent.on("error", reject).end(body);
  });
}

describe("the public and the admin port", () => {
  test.each(methods)("return 404 for %s of the admin pages on the public port", async (method) => {
    for (const page of adminPages) {
      for (const path of [
        page,
        `${page}/`,
        `${page}?x=1`,
        `/capture/..${page}`,
        `/batch/.${page}`,
      ]) {
        const { status, text } = await ask(gateway.url + path, method);
        expect([path, status]).toEqual([path, method === "OPTIONS" ? 200 : 404]);
        expect(text).not.toMatch(/penstock_|"status":"|alive/);
      }
    }
  });

  test("suggest the right port for a request on the wrong port", async () => {
    for (const page of [...adminPages, "/healthz"]) {
      const { text } = await ask(gateway.url + page, "GET");
      expect(JSON.parse(text).detail).toContain(`at ${page} on this port: metrics and health`);
    }
    const { status, text } = await ask(`${gateway.adminUrl}/capture/`, "POST", "{}");
    expect([status, text]).toEqual([
      404,
      `Path not found: this is the admin port. Events go to port ${new URL(gateway.url).port}.\n`,
    ]);
  });

  test("accept no events on the admin port", async () => {
    const event = { event: "e", distinct_id: "d", api_key: project.key, token: project.key };
    for (const path of ["/capture/", "/capture", "/batch/", "/batch", ...adminPages]) {
      for (const method of ["POST", "PUT"]) {
        const { status } = await ask(gateway.adminUrl + path, method, JSON.stringify(event));
        expect([path, status]).toEqual([path, adminPages.includes(path) ? 405 : 404]);
      }
    }
    await gateway.post("/capture/", { ...event, event: "the only one" });
    expect((await gateway.events(project)).map((stored) => stored["event"])).toEqual([
      "the only one",
    ]);
  });

  test("bind the admin port to 127.0.0.1 by default", async () => {
    const defaults = readConfig({}, {});
    expect(defaults.ok && defaults.config.adminHost).toBe("127.0.0.1");
    expect(gateway.config.adminHost).toBe("127.0.0.1");
    const { port } = new URL(gateway.adminUrl);
    expect((await ask(`http://127.0.0.1:${port}/livez`, "GET")).status).toBe(200);
    // A server that listens on all addresses would also answer at this loopback address.
    await expect(ask(`http://127.0.0.2:${port}/livez`, "GET")).rejects.toThrow();
  });
});
