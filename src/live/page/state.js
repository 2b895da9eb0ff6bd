import {
  byId,
  bytesText,
  clock,
  countText,
  element,
  fill,
  rateText,
  say,
  spanText,
  whole,
} from "./text.js";

const lineMs = 60_000;
const rateMs = 5_000;
const latencyMs = 10_000;
/** With fewer requests, the 99th percentile equals the slowest request. */
const percentileRequestsMin = 100;
const nameCharsMax = 20;
/** Number of the newest problems that are shown first. */
const problemsShown = 3;

const reasonWords = {
  none: "stored",
  duplicate: "duplicate: already in the stream",
  no_event: "dropped: no event name",
  no_distinct_id: "dropped: no distinct id",
  not_an_object: "dropped: not an object",
  no_cookieless_id: "dropped: cookieless without an id",
  rate_limited: "rejected: over the project's quota",
  dropped_by_rule: "filtered: by a rule",
  quarantined: "filtered: in quarantine",
};
const toneOf = { stored: "ok", dropped: "warn", error: "bad", refused: "warn" };
/** Oldest first: { atMs, stored, requests, lost, dropped, filtered, refused, counts }. */
let snapshots = [];
let errorsUrl;
/** The problems, newest first. */
let clientWarnings = [];
let showsAllWarnings = false;

export function drawStatus(tone, text) {
  byId("status").className = `pill ${tone}`;
  say("status", text);
}

export function drawGone() {
  document.body.classList.add("gone");
  const last = snapshots.at(-1);
  if (last !== undefined) say("about", `last contact at ${clock.format(last.atMs)}`);
  for (const name of ["stored", "requests", "lost", "time"]) say(`${name}-rate`, "–");
  for (const cell of document.querySelectorAll("td.rate")) cell.textContent = "–";
}

export function drawState(state) {
  document.body.classList.remove("gone");
  const { ready, workers, reasons, scheme, publicPort } = state;
  if (publicPort !== undefined)
    errorsUrl = `${scheme}://${location.hostname}:${publicPort}/docs/errors#`;
  if (ready === 0) drawStatus("bad", "Not ready");
  else if (ready < workers) drawStatus("warn", `${ready} of ${workers} workers ready`);
  else drawStatus("ok", "Ready");
  byId("trouble").hidden = reasons.length === 0;
  say("trouble-title", ready === 0 ? "Events cannot be stored now" : "Not all workers are ready");
  fill("reasons", reasons, (reason) => element("li", {}, reason));
  const processes = workers > 1 ? ` · ${workers} workers` : "";
  say("about", `version ${state.version} · up ${spanText(state.upMs)}${processes}`);
  say("watching", state.viewers > 1 ? `${state.viewers} viewers` : "");
  remember(state);
  drawTiles();
  drawOutcomes(state.counts);
  drawStore(state.store);
}

export function takeHistory(samples) {
  snapshots = [];
  for (const sample of samples) remember(sample);
}

function remember({ atMs, counts }) {
  const sum = (wanted) =>
    counts.events.reduce((total, row) => total + (wanted(row) ? row.count : 0), 0);
  const stored = sum(({ outcome }) => outcome === "stored");
  const dropped = sum(({ outcome }) => outcome === "dropped" || outcome === "error");
  // The number of events in a rejected request is mostly unknown, so each counts as one.
  const refused = Object.values(counts.problems).reduce((total, count) => total + count, 0);
  // Rules drop these events on purpose, but an operator who misses an event looks here.
  const filtered = sum(({ outcome }) => outcome === "filtered");
  const lost = dropped + filtered + refused;
  const requests = Object.values(counts.answers).reduce((total, count) => total + count, 0);
  const last = snapshots.at(-1);
  // Totals that shrink come from another process, so the history restarts.
  if (last !== undefined && requests < last.requests) snapshots = [];
  else if (last !== undefined && atMs <= last.atMs) snapshots.pop();
  snapshots.push({ atMs, stored, requests, lost, dropped, filtered, refused, counts });
  while (snapshots[0].atMs < atMs - lineMs) snapshots.shift();
}

function snapshotBefore(end, ms) {
  const at = snapshots[end].atMs - ms;
  return snapshots[
    Math.max(
      0,
      snapshots.findLastIndex(({ atMs }) => atMs <= at + 500),
    )
  ];
}

function rateOf(total, ms = rateMs, end = snapshots.length - 1) {
  if (end < 1) return undefined;
  const [before, after] = [snapshotBefore(end, ms), snapshots[end]];
  return ((total(after) - total(before)) / Math.max(1, after.atMs - before.atMs)) * 1_000;
}

function drawTiles() {
  for (const name of ["stored", "requests", "lost"]) {
    const total = (snapshot) => snapshot[name];
    say(`${name}-rate`, rateText(rateOf(total)));
    say(`${name}-total`, totalText(name, snapshots.at(-1)));
    drawLine(
      `${name}-line`,
      snapshots.slice(1).map((_, index) => rateOf(total, 1_000, index + 1)),
    );
  }
  const times = snapshots.slice(1).map((_, index) => percentile(0.99, index + 1));
  const { seconds: now, requests = 0, isBound = false } = times.at(-1) ?? {};
  const isLong = now !== undefined && now >= 1;
  say(
    "time-rate",
    now === undefined
      ? "–"
      : isLong
        ? `${isBound ? "≤ " : ""}${Number(now.toFixed(1))}`
        : `${isBound ? "≤ " : ""}${Number((now * 1_000).toPrecision(2))}`,
  );
  say("time-unit", now === undefined ? "" : isLong ? "s" : "ms");
  say("time-total", timesText(requests));
  drawLine(
    "time-line",
    times.map(({ seconds }) => seconds ?? 0),
  );
}

function timesText(requests) {
  const last = `last ${latencyMs / 1_000} s`;
  if (requests === 0) return `no requests, ${last}`;
  const of = `${countText(requests, "request")}, ${last}`;
  return requests < percentileRequestsMin ? `slowest of ${of}` : of;
}

function totalText(name, snapshot) {
  return name === "lost" ? lostText(snapshot) : `${whole.format(snapshot[name])} total`;
}

/** Returns what was not stored, by cause. */
export function lostText({ refused, dropped, filtered }) {
  const causes = `${countText(refused, "request")} rejected, ${countText(dropped, "event")} dropped`;
  return filtered === 0 ? causes : `${causes}, ${whole.format(filtered)} filtered by rules`;
}

function percentile(share, end) {
  const [before, after] = [snapshotBefore(end, latencyMs), snapshots[end]];
  const earlier = new Map(before.counts.durations);
  const grown = after.counts.durations.map(([bound, count]) => [
    bound,
    count - (earlier.get(bound) ?? 0),
  ]);
  const requests = grown.at(-1)?.[1] ?? 0;
  if (requests === 0) return { seconds: undefined, requests };
  let [low, below] = [0, 0];
  for (const [bound, count] of grown) {
    if (count >= share * requests) {
      if (requests < percentileRequestsMin && bound !== null)
        return { seconds: bound, requests, isBound: true };
      const seconds =
        bound === null ? low : low + ((bound - low) * (share * requests - below)) / (count - below);
      return { seconds, requests };
    }
    [low, below] = [bound, count];
  }
  return { seconds: low, requests };
}

/** Draws a line that ends at "now". `values` belong to all snapshots except the first. */
function drawLine(id, values) {
  const [width, height] = [60, 24];
  const top = Math.max(...values, 0);
  const [area, stroke] = byId(id).children;
  const now = snapshots.at(-1).atMs;
  const place = (value, index) => {
    const x = width * (1 - (now - snapshots[index + 1].atMs) / lineMs);
    const y = height - 1 - (top === 0 ? 0 : (value / top) * (height - 3));
    return `${x.toFixed(2)} ${y.toFixed(2)}`;
  };
  const start =
    values.length === 0 ? "" : `0 ${height - 1}L${place(0, 0).split(" ", 1)[0]} ${height - 1}L`;
  const path = values.length < 2 ? "" : `M${start}${values.map(place).join("L")}`;
  stroke.setAttribute("d", path);
  area.setAttribute("d", path === "" ? "" : `${path}L${width} ${height}L0 ${height}Z`);
}

function drawOutcomes({ events, answers, problems, warnings, rules }) {
  const eventRows = events.map(({ outcome, reason, count }) => ({
    tone: toneOf[outcome] ?? "",
    words: reasonWords[reason] ?? `${outcome}: ${reason}`,
    count,
    rate: rateOf(({ counts }) => counts.events.find((row) => row.reason === reason)?.count ?? 0),
  }));
  const warningRows = Object.entries(warnings).map(([code, count]) => ({
    tone: "warn",
    words: `stored, warning: ${code}`,
    count,
    rate: rateOf(({ counts }) => counts.warnings[code] ?? 0),
  }));
  const answerRows = Object.entries(answers)
    .filter(([status]) => status.startsWith("2"))
    .map(([status, count]) => ({
      tone: "ok",
      words: status,
      count,
      rate: rateOf(({ counts }) => counts.answers[status] ?? 0),
    }));
  const problemRows = Object.entries(problems).map(([code, count]) => ({
    tone: "bad",
    words: code,
    count,
    rate: rateOf(({ counts }) => counts.problems[code] ?? 0),
  }));
  drawTable("outcomes", [...eventRows, ...warningRows], "none yet");
  drawTable("answers", [...answerRows, ...problemRows], "none yet");
  byId("rules").hidden = rules.length === 0;
  drawTable("rules", rules.map(ruleRow), "");
}

function ruleRow({ project, rule, mode, effect, count }) {
  const isSame = (row) =>
    row.project === project && row.rule === rule && row.mode === mode && row.effect === effect;
  const countIn = ({ counts }) => counts.rules.find(isSame)?.count;
  return {
    tone: "",
    words: `${project} ${rule}: ${effect.replace("_", " ")}${mode === "observe" ? " (only observed)" : ""}`,
    count,
    rate: rateOf((snapshot) => countIn(snapshot) ?? count),
  };
}

function drawTable(id, rows, none) {
  const body = byId(id).tBodies[0];
  const drawn = rows.map(({ tone, words, count, rate }) =>
    element(
      "tr",
      {},
      element("td", {}, element("span", { class: `dot ${tone}` }), words),
      element("td", { class: "n" }, whole.format(count)),
      element("td", { class: "n muted rate" }, rateText(rate)),
    ),
  );
  body.replaceChildren(
    ...(drawn.length > 0
      ? drawn
      : [element("tr", {}, element("td", { class: "muted", colspan: 3 }, none))]),
  );
}

export function takeClientWarnings(oldestFirst) {
  clientWarnings = oldestFirst.toReversed();
  drawClientWarnings();
}

export function showAllClientWarnings() {
  showsAllWarnings = !showsAllWarnings;
  drawClientWarnings();
}

function drawClientWarnings() {
  byId("problems").classList.toggle("some", clientWarnings.length > 0);
  byId("no-client-warnings").hidden = clientWarnings.length > 0;
  byId("client-warnings").hidden = clientWarnings.length === 0;
  byId("all-client-warnings").hidden = clientWarnings.length <= problemsShown;
  byId("all-client-warnings").setAttribute("aria-pressed", String(showsAllWarnings));
  say("all-client-warnings", `Show all ${clientWarnings.length}`);
  fill(
    "client-warnings",
    showsAllWarnings ? clientWarnings : clientWarnings.slice(0, problemsShown),
    ({ atMs, projectId, path, client, times, status, code, detail, events }) =>
      element(
        "li",
        {},
        element(
          "div",
          { class: "top" },
          codeLink(code, status),
          element("span", { class: "muted at" }, clock.format(atMs)),
        ),
        element("p", { class: "detail" }, detail),
        element(
          "p",
          { class: "muted" },
          [answerText({ status, events, times }), path, client, projectId]
            .filter((part) => part !== "")
            .join(" · "),
        ),
      ),
  );
}

function codeLink(code, status) {
  const attributes = { class: `code-name mono ${status === 200 ? "warn-text" : "bad-text"}` };
  if (errorsUrl === undefined) return element("span", attributes, code);
  const href = `${errorsUrl}${encodeURIComponent(code)}`;
  return element("a", { ...attributes, href, target: "_blank", rel: "noreferrer" }, code);
}

function answerText({ status, events, times }) {
  const often = times === 1 ? "" : `, at least ${whole.format(times)} times`;
  if (events === 0) return `status ${status}${often}`;
  return `${countText(events, "event")}, status ${status}${often}`;
}

function drawStore({ connected, reason, server, version, streams, streamsTotal }) {
  const words = connected
    ? `connected to ${server.length > nameCharsMax ? `${server.slice(0, nameCharsMax)}…` : server}, NATS ${version}`
    : `not connected: ${reason}`;
  byId("nats").replaceChildren(
    element("span", { class: `dot ${connected ? "ok" : "bad"}` }),
    `${words}`,
  );
  fill("streams", streams, ({ name, messages, bytes, bytesMax, lastAtMs }) => {
    // A full stream of rejected events is normal: it discards its oldest items.
    const isBounded = !/_REJECTED_\d+$/.test(name);
    const share = bytesMax > 0 ? bytes / bytesMax : 0;
    const size = bytesMax > 0 ? `${bytesText(bytes)} of ${bytesText(bytesMax)}` : bytesText(bytes);
    const last =
      lastAtMs === 0
        ? "empty"
        : `${countText(messages, "message")}, last ${spanText(Date.now() - lastAtMs)} ago`;
    return element(
      "li",
      { class: isBounded && share > 0.9 ? "full" : "" },
      element(
        "div",
        { class: "top" },
        element("span", { class: "mono" }, name),
        element("span", { class: "muted" }, size),
      ),
      ...(bytesMax > 0
        ? [element("progress", { max: 1, value: share, "aria-label": `${name}: fill` })]
        : []),
      element("div", { class: "muted" }, last),
    );
  });
  if (streamsTotal > streams.length)
    byId("streams").append(
      element("li", { class: "muted" }, `and ${streamsTotal - streams.length} more`),
    );
}

export function storedInAll() {
  return snapshots.at(-1)?.stored;
}
