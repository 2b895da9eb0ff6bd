// Lists the newest rejected events, while their list is selected. Their text comes from clients, so
// it becomes text nodes.

import { indented } from "./json-text.js";
import { ask } from "./source.js";
import { byId, element, fill, openingRow, say } from "./text.js";

const refreshMs = 5_000;

let timer;
/** The query of the page's filter. */
let query = "";
let drawn = "";

/** Shows the list, or hides it. */
export function selectRejected(isSelected) {
  byId("stored-panel").hidden = isSelected;
  byId("rejected-panel").hidden = !isSelected;
  byId("list-stored").setAttribute("aria-pressed", String(!isSelected));
  byId("list-rejected").setAttribute("aria-pressed", String(isSelected));
  for (const id of ["pause", "clear"]) byId(id).hidden = isSelected;
  clearInterval(timer);
  if (!isSelected) return;
  timer = setInterval(() => void refresh(), refreshMs);
  void refresh();
}

/** Applies the filter of the page. The distinct id does not apply, because an item may have none. */
export function filterRejected(filter) {
  query = filter.size === 0 ? "" : `?${filter}`;
  drawn = "";
  if (!byId("rejected-panel").hidden) void refresh();
}

async function refresh() {
  const asked = query;
  let text;
  try {
    const response = await ask(`live/rejected${asked}`);
    text = await response.text();
    if (!response.ok) throw new Error(text.trim());
  } catch (error) {
    say("rejected-note", error.message || "No connection to the gateway");
    return;
  }
  // An unchanged list stays, with its open rows.
  if (asked !== query || text === drawn) return;
  drawn = text;
  const items = JSON.parse(text);
  fill("rejected", items, rowOf);
  say(
    "rejected-note",
    items.length === 0
      ? "No rejected events."
      : "The newest first. The command “penstock rejected” lists and replays all of them.",
  );
}

function rowOf({ id, project, event, receivedAt, reason, rule, detail, text, isCut }) {
  const by = rule === "" ? reason : `${reason} ${rule}`;
  const name = event === "" ? "(no event name)" : event;
  const row = openingRow({ receivedAt, name, tags: [by], id: detail, project }, () => [
    element("p", { class: "who" }, detail === "" ? by : `${by}: ${detail}`),
    element("pre", {}, isCut ? `${text}…` : indented(text)),
    element("p", { class: "cut" }, `id ${id}`),
  ]);
  return element("li", {}, row);
}
