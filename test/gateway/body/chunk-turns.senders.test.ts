import { expect, test } from "vitest";
import {
  connectTo,
  head,
  post,
  startTestServer,
  type TestServer,
  until,
} from "../../kit/http-server.ts";

const tiny = Buffer.concat([
  head({ "Transfer-Encoding": "chunked" }),
  Buffer.from("1\r\nx\r\n".repeat(3_000)),
]);
const usual = Buffer.concat([
  head({ "Transfer-Encoding": "chunked" }),
  Buffer.from("2\r\n{}\r\n0\r\n\r\n"),
]);
const toldMax = 4;

async function statusOf(
  server: TestServer,
  bytes: Uint8Array,
  from = "127.0.0.1",
): Promise<number> {
  const { socket, write, reply } = await connectTo(server, "127.0.0.1", from);
  write(bytes);
  const status = await reply().then(
    (answer) => answer.status,
    () => 0,
  );
  socket.destroy();
  return status;
}

test("an address that sends tiny chunks is disconnected after a few 400 answers", async () => {
  let now = 0;
  const server = await startTestServer({ monotonicMs: () => now });
  for (let count = 0; count < toldMax; count++) expect(await statusOf(server, tiny)).toBe(400);
  expect(await statusOf(server, tiny)).toBe(0);
  expect(await statusOf(server, usual)).toBe(0);
  expect(await statusOf(server, post("{}"))).toBe(200);
  expect(await statusOf(server, usual, "127.0.0.2")).toBe(200);
  now += 1_000;
  expect(await statusOf(server, usual)).toBe(200);
  expect(await statusOf(server, tiny)).toBe(400);
  await until(() => server.http.inflight() === 0, "nothing is left");
});
