import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { startTestServer } from "../../../kit/http-server.ts";

const crawler = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

test("the User-Agent of each request counts on one connection, if it is needed", async () => {
  let isNeeded = false;
  const server = await startTestServer({ readsUserAgent: () => isNeeded });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const sockets = new Set<unknown>();
  const send = async (userAgent: string): Promise<unknown> => {
    const headers = { "user-agent": userAgent, "x-real-ip": "192.0.2.1" };
    const sending = request(`${server.url}/e/`, { method: "POST", agent, headers });
    sending.end("{}");
    const [answer] = (await once(sending, "response")) as [IncomingMessage];
    sockets.add(sending.socket);
    answer.resume();
    await once(answer, "end");
    const { exchange } = server.taken.at(-1) ?? {};
    return { userAgent: exchange?.userAgent, isBot: exchange?.isBot };
  };
  await send(crawler);
  isNeeded = true;
  const ofBrowser = { userAgent: browser, isBot: false };
  const ofCrawler = { userAgent: crawler, isBot: true };
  expect(await send(browser)).toEqual(ofBrowser);
  expect(await send(crawler)).toEqual(ofCrawler);
  expect(await send(crawler)).toEqual(ofCrawler);
  expect(await send(browser)).toEqual(ofBrowser);
  isNeeded = false;
  expect(await send(crawler)).toEqual(ofBrowser);
  // Rules that are loaded before the body has arrived read the whole header as well.
  agent.destroy();
  expect(await send(browser)).toEqual(ofBrowser);
  expect(sockets.size).toBe(2);
});
