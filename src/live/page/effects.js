// Renders the effects, and one person in a dialog. Properties come from clients, so they become
// text nodes.

import { indented, memberText } from "./json-text.js";
import { ask } from "./source.js";
import { byId, countText, element, say, spanText, whole } from "./text.js";

const idsShownMax = 50;
/** A late response must not be shown for another person. */
let asked;

const stateWords = { hindered: "not applying events" };

export function effectsRows({ totals, lagSeconds, lagMessages, usage }, project) {
  if (totals === undefined) return [];
  const behind =
    lagSeconds === null || lagMessages === null
      ? "unknown"
      : lagMessages === 0
        ? "none"
        : `${countText(lagMessages, "message")}, ${spanText(lagSeconds * 1_000)}`;
  const today = usage.find((one) => one.project === project);
  const of = today ?? { billable: 0, historical: 0, duplicates: 0 };
  return [
    ["People", totals.persons, true],
    ["Groups", totals.groups, true],
    ["Billable today", of.billable, today !== undefined],
    ["Historical today", of.historical, of.historical > 0],
    ["Duplicates today", of.duplicates, of.duplicates > 0],
    ["Open spikes", totals.open_spikes, true],
    ["Not applied", totals.rejected, totals.rejected > 0],
    ["Incidents", totals.incidents, totals.incidents > 0],
    ["Lag", behind, true],
  ]
    .filter(([, , isShown]) => isShown)
    .map(([words, value]) => [words, typeof value === "number" ? whole.format(value) : value]);
}

export function drawEffects(effects, project) {
  byId("effects").hidden = effects === undefined;
  if (effects === undefined) return;
  const tone =
    { applying: "ok", hindered: "bad", "not responding": "bad" }[effects.state] ?? "warn";
  byId("effects-state").replaceChildren(
    element("span", { class: `dot ${tone}` }),
    element(
      "span",
      {},
      [stateWords[effects.state] ?? effects.state, ...effects.reasons].join(": "),
    ),
  );
  byId("effects-rows").tBodies[0].replaceChildren(
    ...effectsRows(effects, project).map(([words, value]) =>
      element("tr", {}, element("td", {}, words), element("td", { class: "n" }, value)),
    ),
  );
}

export function personButton({ project, id }) {
  const button = element("button", { type: "button" }, "Show the person of ", idText(id));
  button.addEventListener("click", () => void showPerson(project, id));
  return element("p", { class: "who" }, button);
}

async function showPerson(project, id) {
  const own = {};
  asked = own;
  byId("person-facts").replaceChildren();
  byId("person-properties").hidden = true;
  say("person-note", "Loading");
  if (!byId("person").open) byId("person").showModal();
  const { text, why } = await personOf(project, id);
  if (asked !== own) return;
  say("person-note", why);
  if (text !== undefined) drawPerson(text, project);
}

async function personOf(project, id) {
  try {
    const query = new URLSearchParams({ project, distinct_id: id });
    const response = await ask(`live/person?${query}`);
    const text = await response.text();
    return response.ok ? { text, why: "" } : { why: text.trim() };
  } catch {
    return { why: "No connection to the gateway" };
  }
}

function drawPerson(text, project) {
  const person = JSON.parse(text);
  byId("person-facts").replaceChildren(...personFacts(person, project).flat());
  const hasProperties = Object.keys(person.properties).length > 0;
  byId("person-properties").hidden = !hasProperties;
  byId("person-properties").replaceChildren(
    element("pre", {}, indented(memberText(text, "properties"))),
  );
}

function personFacts(person, project) {
  const ids = person.distinct_ids.slice(0, idsShownMax);
  const linked = (id) => personLink(project, id);
  const more = person.distinct_ids_total - ids.length;
  return [
    ["uuid", idText(person.uuid)],
    ["main id", linked(person.main_distinct_id)],
    [
      person.distinct_ids_total === 1 ? "id" : "ids",
      ...ids.map(linked),
      ...(more > 0 ? [`and ${whole.format(more)} more`] : []),
    ],
    ["known", person.known ? "yes" : "no"],
    ["created", person.created_at],
    ["last seen", `${person.last_seen_at} (to the hour)`],
  ].map(([name, ...values]) => [
    element("dt", {}, name),
    ...values.map((value) => element("dd", {}, value)),
  ]);
}

function idText(id) {
  return element("span", { class: "mono" }, id);
}

function personLink(project, id) {
  const button = element("button", { type: "button", class: "mono" }, id);
  button.addEventListener("click", () => void showPerson(project, id));
  return button;
}

export function closePerson() {
  byId("person").close();
}
