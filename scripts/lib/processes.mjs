// Checks whether processes still run. A process that ended but was not waited for does not count,
// because many containers have no init.

import { readdirSync, readFileSync } from "node:fs";

export function isAlive(pid) {
  return answers(pid) && statOf(pid)?.isOver !== true;
}

export function isGroupAlive(group) {
  if (!answers(-group)) return false;
  if (statOf(process.pid) === undefined) return true;
  return readdirSync("/proc").some((name) => {
    const stat = /^\d+$/.test(name) ? statOf(name) : undefined;
    return stat !== undefined && stat.group === group && !stat.isOver;
  });
}

export function signalGroup(group, signal) {
  try {
    process.kill(-group, signal);
  } catch (error) {
    if (error.code !== "ESRCH" && error.code !== "EPERM") throw error;
  }
}

function answers(target) {
  try {
    process.kill(target, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The program's name in parentheses may itself contain parentheses and spaces.
    const [state, , group] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { isOver: state === "Z" || state === "X", group: Number(group) };
  } catch {
    return undefined;
  }
}
