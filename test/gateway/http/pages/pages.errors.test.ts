import { describe, expect, test } from "vitest";
import { errorTable } from "../../../../src/platform/base/errors.ts";
import { dropTable, warningTable } from "../../../../src/platform/base/warnings.ts";
import { connectTo, head, post, startTestServer } from "../../../kit/http-server.ts";

describe("the error page", () => {
  test("has a section for the type of each problem", async () => {
    const server = await startTestServer();
    const problem = await connectTo(server);
    problem.write(post("{}").fill("x", 6, 13));
    const { type } = JSON.parse((await problem.reply()).body) as { type: string };
    const link = new URL(type, "http://127.0.0.1:8000/captur");
    const wire = await connectTo(server);
    wire.write(head({}, `GET ${link.pathname}`));
    const page = await wire.reply();
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(link.hash).toBe("#not_found");
    expect(page.body).toContain('id="not_found"');
  });

  test("has one section for each code", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(head({}, "GET /docs/errors"));
    const { body, headers } = await wire.reply();
    for (const code of [
      ...Object.keys(errorTable),
      ...Object.keys(dropTable),
      ...Object.keys(warningTable),
    ]) {
      expect(body.split(`id="${code}"`), code).toHaveLength(2);
      expect(body, code).toContain(`href="#${code}"`);
    }
    for (const { remedy } of [
      ...Object.values(errorTable),
      ...Object.values(dropTable),
      ...Object.values(warningTable),
    ]) {
      const html = remedy.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
      expect(body).toContain(html.replaceAll(/`(.+?)`/g, "<code>$1</code>"));
    }
    expect(body).not.toContain("`");
    expect(body).not.toMatch(/<script|src=|https?:|url\(|@import| on\w+=/);
    expect(headers.get("content-security-policy")).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/=]+'; base-uri 'none'/,
    );
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  });

  test("does not repeat the title of an error in its description", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(head({}, "GET /docs/errors"));
    const { body } = await wire.reply();
    expect(body).toContain("<p><strong>The project is disabled.</strong></p>");
    expect(body).toContain("<strong>The store is full.</strong> The stream is full.");
    expect(body).not.toMatch(/<strong>([^<]+)<\/strong> \1/);
  });
});
