// The live page in the browser. Events come from clients, so their text becomes text nodes.

import { closePerson, drawEffects, personButton } from "./effects.js";
import { indented } from "./json-text.js";
import { filterRejected, selectRejected } from "./rejected.js";
import { openSource, takeToken } from "./source.js";
import {
  drawGone,
  drawState,
  drawStatus,
  showAllClientWarnings,
  storedInAll,
  takeClientWarnings,
  takeHistory,
} from "./state.js";
import {
  byId,
  bytesText,
  countText,
  element,
  fill,
  openingRow,
  say,
  whole,
  zoneText,
} from "./text.js";

const eventsShownMax = 200;
const namesMax = 100;
const rejectedHash = "#rejected";
const filterInputs = { project: "project", event: "event", distinct_id: "distinct-id" };

let source;
let lastState;
let filter = filterOf(new URLSearchParams(location.search));
const eventNames = new Set();
let paused = false;
let waiting = [];
/** The text of each row's record. It contains the uuid and the time, so it is unique. */
const textOf = new WeakMap();
const receivedAtOf = new WeakMap();
let skipped = 0;
let isUnknown = false;

function filterOf(query) {
  const found = Object.keys(filterInputs).map((name) => [name, (query.get(name) ?? "").trim()]);
  return new URLSearchParams(found.filter(([, value]) => value !== ""));
}

function addressOf(filter, hash) {
  return `${location.pathname}${filter.size === 0 ? "" : `?${filter}`}${hash}`;
}

/** The list is in the address, so that it stays at a reload, and the back button works. */
function goToList(hash) {
  if (location.hash !== hash) history.pushState(null, "", addressOf(filter, hash));
  selectRejected(hash === rejectedHash);
}

function open() {
  source?.close();
  isUnknown = false;
  const project = filter.get("project") ?? "";
  byId("of-all").hidden = filter.size === 0;
  filterRejected(filter);
  source = openSource(filter.size === 0 ? "live" : `live?${filter}`, {
    history: takeHistory,
    projects: (ids) => fill("projects", ids, (id) => element("option", { value: id })),
    state: (state) => {
      lastState = state;
      drawState(lastState);
      drawEffects(lastState.effects, project);
      drawEmpty();
    },
    clientWarnings: takeClientWarnings,
    unknown: () => {
      isUnknown = true;
      drawEmpty();
    },
    events: takeEvents,
    gone: (why) => {
      drawGone();
      drawStatus("bad", why);
    },
  });
}

function takeEvents({ events: arrived, skipped: more }) {
  const known = new Set([
    ...[...byId("events").children].map((row) => textOf.get(row)),
    ...waiting.map(({ text }) => text),
  ]);
  const events = arrived.filter(({ text }) => !known.has(text));
  skipped += more;
  if (skipped > 0) say("skipped", `At least ${countText(skipped, "further event")} not shown`);
  byId("skipped").hidden = skipped === 0;
  if (paused) {
    waiting = [...waiting, ...events].slice(-eventsShownMax);
    say("pause", `Resume (${waiting.length} new)`);
  } else showEvents(events);
  drawEmpty();
}

function showEvents(events) {
  const list = byId("events");
  for (const { event } of events) if (eventNames.size < namesMax) eventNames.add(event);
  fill("event-names", [...eventNames].toSorted(), (name) => element("option", { value: name }));
  for (const event of events)
    list.insertBefore(eventRow(event), event.wasThere ? firstBefore(list, event) : list.firstChild);
  while (list.children.length > eventsShownMax) list.lastElementChild.remove();
  keepOneTabStop(list);
}

function firstBefore(list, { receivedAt }) {
  return (
    [...list.children].find((row) => Date.parse(receivedAtOf.get(row)) <= Date.parse(receivedAt)) ??
    null
  );
}

/** Makes the rows one stop for the Tab key. Arrows, Home and End move between rows. */
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
  const row = openingRow({ receivedAt, name: event, tags, id, project }, () => {
    const hasPeople = lastState?.effects !== undefined && shown.id !== "";
    // An open record must not move away, so the list pauses.
    pause(true);
    return [...(hasPeople ? [personButton(shown)] : []), ...recordOf(shown)];
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
  const { showsEvents, publicPort, scheme, tryKey, ready } = lastState;
  const nothingYet = storedInAll() === 0 && filter.size === 0;
  byId("hidden-events").hidden = showsEvents || nothingYet;
  byId("empty").hidden = byId("events").children.length > 0 || (!showsEvents && !nothingYet);
  // If nothing can be stored, a first event would fail too, so the instructions are hidden.
  byId("how").hidden = !nothingYet || ready === 0;
  const title = emptyTitle({ nothingYet, canStore: ready > 0 });
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

function emptyTitle({ nothingYet, canStore }) {
  if (!canStore) return "Events cannot be stored now; see the reasons above.";
  if (isUnknown)
    return `The project ${filter.get("project")} does not exist yet. Waiting for its events.`;
  if (nothingYet) return "No events yet.";
  return filter.size === 0 ? "Waiting for the next event." : "Waiting for a matching event.";
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

for (const [name, id] of Object.entries(filterInputs)) byId(id).value = filter.get(name) ?? "";
say("zone", `times in ${zoneText()}`);
byId("all-client-warnings").addEventListener("click", showAllClientWarnings);
byId("pause").addEventListener("click", () => pause(!paused));
byId("clear").addEventListener("click", clear);
byId("list-stored").addEventListener("click", () => goToList(""));
byId("list-rejected").addEventListener("click", () => goToList(rejectedHash));
addEventListener("popstate", () => selectRejected(location.hash === rejectedHash));
byId("person-close").addEventListener("click", closePerson);
byId("events").addEventListener("keydown", goFromRowToRow);
byId("filter").addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  const given = Object.entries(filterInputs).map(([name, id]) => [name, byId(id).value]);
  filter = filterOf(new URLSearchParams(given));
  history.replaceState(null, "", addressOf(filter, location.hash));
  clear();
  open();
});
for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", copy);
takeToken();
open();
selectRejected(location.hash === rejectedHash);
