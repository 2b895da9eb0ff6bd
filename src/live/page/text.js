/** The characters that `penstock tail` escapes too (src/commands/terminal.ts). */
const acting =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to escape
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** Writes invisible characters as JSON escapes. Some would reorder the page's own quotes. */
export function forPage(text) {
  return text.replaceAll(
    acting,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

export const byId = (id) => document.getElementById(id);
export const whole = new Intl.NumberFormat("en");
export const clock = new Intl.DateTimeFormat("en", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.map((child) => (typeof child === "string" ? forPage(child) : child)));
  return made;
}

/** Returns a row of a list of events. At its first opening, it appends what `open` returns. */
export function openingRow({ receivedAt, name, tags, id, project }, open) {
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
        name,
        ...tags.map((tag) => element("span", { class: "tag" }, tag)),
      ),
      element("span", { class: "id mono" }, id),
      element("span", { class: "project mono" }, project),
    ),
  );
  row.addEventListener("toggle", () => {
    if (row.open && row.children.length === 1) row.append(...open());
  });
  return row;
}

/** An unchanged text keeps its selection, and screen readers stay silent. */
export function say(id, text) {
  const target = byId(id);
  if (target.textContent !== text) target.textContent = text;
}

export function fill(id, rows, draw) {
  byId(id).replaceChildren(...rows.map(draw));
}

export function rateText(rate) {
  if (rate === undefined) return "–";
  return rate === 0 || rate >= 10 ? whole.format(Math.round(rate)) : rate.toFixed(1);
}

export function countText(count, one) {
  return `${whole.format(count)} ${one}${count === 1 ? "" : "s"}`;
}

export function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${Number((bytes / 1_024 ** power).toPrecision(3))} ${units[power]}`;
}

export function spanText(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400)
    return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3_600)} h`;
}

export function timeText(isoTime) {
  const at = Date.parse(isoTime);
  return Number.isNaN(at) ? "" : clock.format(at);
}

export function zoneText() {
  const format = new Intl.DateTimeFormat("en", { timeZoneName: "short" });
  const offset = format.formatToParts().find(({ type }) => type === "timeZoneName")?.value ?? "";
  const zone = format.resolvedOptions().timeZone;
  return offset === zone ? zone : `${zone} (${offset})`;
}
