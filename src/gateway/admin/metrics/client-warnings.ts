// The list of recent client problems that operators can see. If a problem occurs again with the
// same project, path and client, only its count increases. Unknown keys have separate entries, up
// to a maximum per path and client. The list contains no values of events,
// and no keys except the first characters of an unknown key.

import type {
  ClientWarning,
  ClientWarningOrigin,
  ClientWarningTaker,
} from "../../../platform/base/client-warning.ts";
import { errorTable, type Problem } from "../../../platform/base/errors.ts";
import { RateWindow } from "../../../platform/base/rate-window.ts";

interface ClientWarningsClock {
  wallMs(): number;
  monotonicMs(): number;
}

const warningsMax = 50;
/** Maximum number of unknown keys of one path and client that have their own entry. */
const unknownKeysMax = 5;
const otherKeysDetail = "No project has the API keys: several other keys";
const perSecondMax = 20;

export class ClientWarnings implements ClientWarningTaker {
  readonly #clock: ClientWarningsClock;
  readonly #warnings: ClientWarning[] = [];
  readonly #rate: RateWindow;

  constructor(clock: ClientWarningsClock) {
    this.#clock = clock;
    this.#rate = new RateWindow({ max: perSecondMax, monotonicMs: () => clock.monotonicMs() });
  }

  get hasRoom(): boolean {
    return !this.#rate.isSpent;
  }

  refused(origin: ClientWarningOrigin, { code, detail }: Problem): void {
    this.#add(origin, { code, detail, status: errorTable[code].status, events: 0 });
  }

  notStored(
    origin: ClientWarningOrigin,
    { code, detail, events }: Parameters<ClientWarningTaker["notStored"]>[1],
  ): void {
    this.#add(origin, { code, detail, status: 200, events });
  }

  latest(): readonly ClientWarning[] {
    return [...this.#warnings];
  }

  #add(
    origin: ClientWarningOrigin,
    what: Pick<ClientWarning, "status" | "code" | "detail" | "events">,
  ): void {
    if (this.#rate.isSpent) return;
    this.#rate.spend(1);
    const warnings = this.#warnings;
    const { projectId, path, client } = origin;
    const given = { atMs: this.#clock.wallMs(), projectId, path, client, times: 1, ...what };
    const warning = this.#hasManyKeys(given) ? { ...given, detail: otherKeysDetail } : given;
    const at = warnings.findIndex((earlier) => isSame(earlier, warning));
    const [earlier] = at >= 0 ? warnings.splice(at, 1) : [];
    if (warnings.length === warningsMax) warnings.shift();
    warnings.push(
      earlier === undefined
        ? warning
        : { ...warning, times: earlier.times + 1, events: earlier.events + warning.events },
    );
  }

  #hasManyKeys(warning: ClientWarning): boolean {
    if (warning.code !== "unknown_api_key") return false;
    const earlier = this.#warnings.filter((one) => isAlike(one, warning));
    const isNew = !earlier.some(({ detail }) => detail === warning.detail);
    return isNew && earlier.length >= unknownKeysMax;
  }
}

function isSame(left: ClientWarning, right: ClientWarning): boolean {
  return isAlike(left, right) && (left.code !== "unknown_api_key" || left.detail === right.detail);
}

function isAlike(left: ClientWarning, right: ClientWarning): boolean {
  return (
    left.code === right.code &&
    left.status === right.status &&
    left.projectId === right.projectId &&
    left.path === right.path &&
    left.client === right.client
  );
}
