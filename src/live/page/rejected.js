// Lists the newest rejected events, while their list is selected. Their text comes from clients, so
// it becomes text nodes.

import { indented } from "./json-text.js";
import { ask, noConnection } from "./source.js";
import { byId, element, openingRow, say } from "./text.js";

const refreshMs = 5_000;

let timer;
/** The query of the page's filter. */
let query = "";
/** The query of the listed rows. */
let listed = "";
let hasDistinctId = false;

/** Shows the list, or hides it. */
export function selectRejected(isSelected) {
  byId("stored-panel").hidden = isSelected;
  byId("rejected-panel").hidden = !isSelected;
  byId("list-stored").setAttribute("aria-pressed", String(!isSelected));
  byId("list-rejected").setAttribute("aria-pressed", String(isSelected));
  for (const id of ["pause", "clear"]) byId(id).hidden = isSelected;
  say("events-title", isSelected ? "Rejected events" : "Latest events");
  clearInterval(timer);
  if (!isSelected) return;
  timer = setInterval(() => void refresh(), refreshMs);
  void refresh();
}

/** Applies the filter of the page. The distinct id does not apply, because an item may have none. */
export function filterRejected(filter) {
  query = filter.size === 0 ? "" : `?${filter}`;
  hasDistinctId = filter.has("distinct_id");
  if (!byId("rejected-panel").hidden) void refresh();
}

async function refresh() {
  const asked = query;
  let response;
  let text;
  try {
    response = await ask(`live/rejected${asked}`);
    text = await response.text();
  } catch {
    say("rejected-note", noConnection);
    return;
  }
  if (asked !== query) return;
  // The rows are of another filter, or the page may no longer show any.
  if (asked !== listed || (response.status >= 400 && response.status < 500))
    byId("rejected").replaceChildren();
  listed = asked;
  if (!response.ok) {
    say("rejected-note", text.trim() || noConnection);
    return;
  }
  const items = JSON.parse(text);
  update(byId("rejected"), items);
  const unfiltered = hasDistinctId ? " The distinct id does not filter this list." : "";
  say(
    "rejected-note",
    `${items.length === 0 ? "No rejected events." : "The newest first. The command “penstock rejected” lists and replays all of them."}${unfiltered}`,
  );
}

/** Adds and removes rows. The others stay as they are, and so do rows that are open or focused. */
function update(list, items) {
  const ids = new Set(items.map(({ id }) => id));
  for (const row of [...list.children]) {
    const isRead = row.firstElementChild.open || row.contains(document.activeElement);
    if (!isRead && !ids.has(row.dataset.id)) row.remove();
  }
  const rows = new Map([...list.children].map((row) => [row.dataset.id, row]));
  let next = list.firstElementChild;
  for (const item of items) {
    const row = rows.get(item.id);
    if (row === undefined) list.insertBefore(rowOf(item), next);
    else next = row.nextElementSibling;
  }
}

function rowOf({ id, project, event, receivedAt, reason, rule, detail: why, text, isCut }) {
  const by = rule === "" ? reason : `${reason} ${rule}`;
  const detail = reason === "rule" ? "The rule of the project quarantined the event." : why;
  const name = event === "" ? "(no event name)" : event;
  const row = openingRow({ receivedAt, name, tags: [by], id: detail, project }, () => [
    element("p", { class: "who" }, detail === "" ? by : `${by}: ${detail}`),
    element("pre", {}, isCut ? `${text}…` : indented(text)),
    element("p", { class: "cut" }, `id ${id}`),
  ]);
  return element("li", { "data-id": id }, row);
}
