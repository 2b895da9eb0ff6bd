// Requests of the page, with the token if the port needs one. An EventSource cannot send a token,
// so this file reads the stream of server-sent events.

import { byId, say } from "./text.js";

const tokenKey = "penstock-token";
const reopenMs = 3_000;
export const noConnection = "No connection to the gateway";

export function ask(path, signal) {
  const token = sessionStorage.getItem(tokenKey);
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  return fetch(path, { cache: "no-store", headers, signal });
}

/**
 * Opens a stream of events again whenever it ends, until `close` is called. `listeners` has a
 * function per event name. `gone` is called with the reason of an end.
 */
export function openSource(path, { gone, ...listeners }) {
  const closing = new AbortController();
  const { signal } = closing;
  const run = async () => {
    while (!signal.aborted) {
      const why = await readOnce(path, listeners, signal).catch(() => noConnection);
      if (signal.aborted) return;
      if (why === undefined) continue;
      gone(why);
      await new Promise((resolve) => setTimeout(resolve, reopenMs));
    }
  };
  void run();
  return { close: () => closing.abort() };
}

async function readOnce(path, listeners, signal) {
  const response = await ask(path, signal);
  if (response.status === 401 || isShort(response)) return await askForToken(response, signal);
  if (!response.ok) return (await response.text()).trim() || noConnection;
  let rest = "";
  for (const reader = response.body.pipeThrough(new TextDecoderStream()).getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return noConnection;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(part) ?? [];
      if (!signal.aborted) listeners[name]?.(JSON.parse(data));
    }
  }
}

function isShort({ status, headers }) {
  return status === 403 && headers.get("Content-Type") === "application/problem+json";
}

async function askForToken(response, signal) {
  const { title, detail, code } = await response.json();
  const dialog = byId("token");
  say("token-note", code === "missing_token" ? "" : `${title}: ${detail}.`);
  if (!dialog.open) dialog.showModal();
  await new Promise((resolve) => {
    dialog.addEventListener("close", resolve, { once: true });
    signal.addEventListener("abort", resolve, { once: true });
  });
}

export function takeToken() {
  byId("token").addEventListener("cancel", (event) => event.preventDefault());
  byId("token-form").addEventListener("submit", (submitted) => {
    submitted.preventDefault();
    sessionStorage.setItem(tokenKey, byId("token-text").value.trim());
    byId("token-text").value = "";
    byId("token").close();
  });
}
