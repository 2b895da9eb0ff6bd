// The live page in the browser: listens to /live and shows the events. The text of events comes
// from strangers, so it becomes text nodes, never markup.

import { closePerson, drawEffects, personButton } from "./effects.js";
import { indented } from "./json-text.js";
import {
  drawClientWarnings,
  drawGone,
  drawState,
  drawStatus,
  forgetSnapshots,
  storedInAll,
} from "./state.js";
import { byId, bytesText, countText, element, say, timeText, whole } from "./text.js";

const eventsShownMax = 200;
const reopenMs = 3_000;
const noConnection = "No connection to the gateway";

let source;
let lastState;
let project = new URLSearchParams(location.search).get("project") ?? "";
let paused = false;
let waiting = [];
/** The text of each row's record. It contains the uuid and the time, so no two are alike. */
const textOf = new WeakMap();
const receivedAtOf = new WeakMap();
let skipped = 0;
/** True when the gateway has said that the watched project does not exist. */
let isUnknown = false;

function open() {
  source?.close();
  isUnknown = false;
  byId("of-all").hidden = project === "";
  source = new EventSource(project === "" ? "live" : `live?project=${encodeURIComponent(project)}`);
  const own = source;
  own.addEventListener("state", ({ data }) => {
    lastState = JSON.parse(data);
    drawState(lastState);
    drawEffects(lastState.effects, project);
    drawEmpty();
  });
  own.addEventListener("clientWarnings", ({ data }) => drawClientWarnings(JSON.parse(data)));
  own.addEventListener("unknown", () => {
    isUnknown = true;
    drawEmpty();
  });
  own.addEventListener("events", ({ data }) => takeEvents(JSON.parse(data)));
  own.addEventListener("error", () => {
    if (own !== source) return;
    drawGone();
    forgetSnapshots();
    if (own.readyState !== EventSource.CLOSED) drawStatus("bad", noConnection);
    else void sayWhyRefused(own);
  });
}

/** An EventSource does not tell what it was answered, so the same URL is fetched once more. */
async function sayWhyRefused(own) {
  const asked = new AbortController();
  let why = noConnection;
  try {
    const response = await fetch(own.url, { cache: "no-store", signal: asked.signal });
    if (!response.ok) why = (await response.text()).trim() || why;
  } catch {
    // The gateway is not there.
  }
  asked.abort();
  if (own !== source) return;
  drawStatus("bad", why);
  setTimeout(() => own === source && open(), reopenMs);
}

function takeEvents({ events: come, skipped: more }) {
  // After a reconnect the gateway sends the last few events again.
  const known = new Set([
    ...[...byId("events").children].map((row) => textOf.get(row)),
    ...waiting.map(({ text }) => text),
  ]);
  const events = come.filter(({ text }) => !known.has(text));
  skipped += more;
  if (skipped > 0)
    say("skipped", `At least ${countText(skipped, "more event")} came than are shown here`);
  byId("skipped").hidden = skipped === 0;
  if (paused) {
    waiting = [...waiting, ...events].slice(-eventsShownMax);
    say("pause", `Resume (${waiting.length} new)`);
  } else showEvents(events);
  drawEmpty();
}

function showEvents(events) {
  const list = byId("events");
  for (const event of events)
    list.insertBefore(eventRow(event), event.wasThere ? firstBefore(list, event) : list.firstChild);
  while (list.children.length > eventsShownMax) list.lastElementChild.remove();
  keepOneTabStop(list);
}

/**
 * The row in front of which an event from before the watching goes; null: at the end. Such events
 * come stream by stream, and are put in order of the time they were received at.
 */
function firstBefore(list, { receivedAt }) {
  return (
    [...list.children].find((row) => Date.parse(receivedAtOf.get(row)) <= Date.parse(receivedAt)) ??
    null
  );
}

/** The rows are one stop for the Tab key; arrows, Home and End go from row to row. */
function keepOneTabStop(list) {
  const summaries = [...list.querySelectorAll("summary")];
  const current = summaries.find((summary) => summary === document.activeElement) ?? summaries[0];
  for (const summary of summaries) summary.tabIndex = summary === current ? 0 : -1;
}

function goFromRowToRow(pressed) {
  const summaries = [...byId("events").querySelectorAll("summary")];
  const at = summaries.indexOf(document.activeElement);
  if (at < 0) return;
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: summaries.length - 1 }[
    pressed.key
  ];
  if (to === undefined || summaries[to] === undefined) return;
  pressed.preventDefault();
  summaries[at].tabIndex = -1;
  summaries[to].tabIndex = 0;
  summaries[to].focus();
}

function eventRow(shown) {
  const { project, event, id, kind, receivedAt, historical, text } = shown;
  const tags = [kind === "custom" ? "" : kind, historical ? "historical" : ""].filter(
    (tag) => tag !== "",
  );
  const row = element(
    "details",
    {},
    element(
      "summary",
      {},
      element("span", { class: "at" }, timeText(receivedAt)),
      element(
        "span",
        { class: "name" },
        event,
        ...tags.map((tag) => element("span", { class: "tag" }, tag)),
      ),
      element("span", { class: "id mono" }, id),
      element("span", { class: "project mono" }, project),
    ),
  );
  row.addEventListener("toggle", () => {
    if (!row.open || row.children.length > 1) return;
    const hasPeople = lastState?.effects !== undefined && shown.id !== "";
    row.append(...(hasPeople ? [personButton(shown)] : []), ...recordOf(shown));
    // A record that somebody reads must not move away, so the list pauses.
    pause(true);
  });
  row.firstElementChild.tabIndex = -1;
  const item = element("li", { class: "new" }, row);
  textOf.set(item, text);
  receivedAtOf.set(item, receivedAt);
  return item;
}

function recordOf({ text, bytes, isCut }) {
  if (isCut) {
    return [
      element("pre", {}, text),
      element(
        "p",
        { class: "cut" },
        `The first ${whole.format(text.length)} characters of ${bytesText(bytes)}.`,
      ),
    ];
  }
  return [element("pre", {}, indented(text))];
}

function pause(now) {
  paused = now;
  byId("pause").setAttribute("aria-pressed", String(now));
  say("pause", now ? "Resume" : "Pause");
  if (now) return;
  showEvents(waiting);
  waiting = [];
}

function drawEmpty() {
  if (lastState === undefined) return;
  const { showsEvents, publicPort, scheme, tryKey } = lastState;
  const nothingYet = storedInAll() === 0 && project === "";
  byId("hidden-events").hidden = showsEvents || nothingYet;
  byId("empty").hidden = byId("events").children.length > 0 || (!showsEvents && !nothingYet);
  byId("how").hidden = !nothingYet;
  const waitingFor = isUnknown
    ? `There is no project ${project}. Waiting, in case it comes.`
    : "Waiting for the next event.";
  const title = nothingYet ? "Nothing has arrived yet." : waitingFor;
  if (byId("empty-title").textContent !== title)
    byId("empty-title").replaceChildren(element("strong", {}, title));
  if (publicPort === undefined) return;
  const address = `${scheme}://${location.hostname}:${publicPort}`;
  const key = tryKey ?? "YOUR_PROJECT_KEY";
  say(
    "curl",
    `curl ${address}/capture/ -d '{"api_key":"${key}","event":"hello","distinct_id":"me"}'`,
  );
  say(
    "sdk",
    `import { PostHog } from "posthog-node";\n\nconst posthog = new PostHog("${key}", { host: "${address}" });\nposthog.capture({ distinctId: "me", event: "hello" });\nawait posthog.shutdown();`,
  );
  byId("key-hint").hidden = tryKey !== undefined;
}

function clear() {
  waiting = [];
  skipped = 0;
  byId("skipped").hidden = true;
  byId("events").replaceChildren();
  pause(false);
  drawEmpty();
}

async function copy({ currentTarget: button }) {
  const from = byId(button.dataset.copies);
  try {
    await navigator.clipboard.writeText(from.textContent);
    button.textContent = "Copied";
    setTimeout(() => {
      button.textContent = "Copy";
    }, 1_500);
  } catch {
    getSelection().selectAllChildren(from);
  }
}

byId("project").value = project;
byId("pause").addEventListener("click", () => pause(!paused));
byId("clear").addEventListener("click", clear);
byId("person-close").addEventListener("click", closePerson);
byId("events").addEventListener("keydown", goFromRowToRow);
byId("filter").addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  project = byId("project").value.trim();
  history.replaceState(
    null,
    "",
    project === "" ? location.pathname : `?project=${encodeURIComponent(project)}`,
  );
  clear();
  open();
});
for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", copy);
open();
