/** The items of a night, drawn from a seed: what each asks for, and what goes wrong with it. */

/** How often each kind is drawn. */
const WEIGHTS = {
  plain: 5,
  /** Its line in a common file is in conflict with the others. */
  shared: 4,
  /** Its first work fails the check. */
  red: 3,
  /** Its check is red at its first run, whatever is there. */
  flaky: 1,
  /** The account has used up its quota when it begins. */
  window: 1,
  /** A short 429 that closes no account. */
  throttled: 1,
  /** 529 for some seconds. */
  overloaded: 1,
  /** The answer ends in the middle. */
  cut: 1,
  /** A tool that the program refuses. */
  refused: 2,
  /** The model asks a person in prose, and stops. */
  question: 2,
  /** The conversation is too long for the model, once. */
  overflow: 1,
  /** Its check stays red: it cannot land. */
  impossible: 2,
  /** The model calls a tool again and again, until its budget ends it: it cannot land. */
  loop: 1,
};
/** What a program without a model can be. */
const OF_PROGRAMS = new Set(["plain", "red", "flaky", "impossible"]);
export const CANNOT_LAND = new Set(["impossible", "loop"]);
export const AGENTS = ["ada", "bob", "eve"];

/** Numbers below n, the same for the same seed. */
export function randomOf(seed) {
  let state = seed >>> 0;
  return (n) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

/**
 * @param isReal false: stand-ins, whose turns end
 * @param hasLogin the service refuses the account once in the first item of a model; the product waits a minute then
 */
export function drawItems(count, random, { isReal, hasLogin }) {
  const drawer = Object.entries(WEIGHTS).flatMap(([kind, weight]) => Array(weight).fill(kind));
  const items = Array.from({ length: count }, (_, n) => {
    const agent = AGENTS[random(AGENTS.length)];
    const drawn = drawer[random(drawer.length)];
    const kind = canBe(drawn, agent, isReal) ? drawn : "plain";
    const ms = random(4) === 0 ? 500 + random(2500) : random(200);
    const id = `i${String(n).padStart(2, "0")}`;
    const base = random(2) === 0 ? "checkout" : "target";
    return { id, agent, kind, ms, commits: random(2) === 0, base };
  });
  const ofModel = items.find(({ agent }) => agent !== "eve");
  if (hasLogin && ofModel !== undefined) ofModel.kind = "login";
  return items;
}

function canBe(kind, agent, isReal) {
  if (agent === "eve") return OF_PROGRAMS.has(kind);
  // claude makes a long session shorter by itself, and the summary of the mock does not say whose it is.
  return isReal ? kind !== "overflow" || agent !== "ada" : kind !== "loop";
}

export const markerOf = ({ id }) => `Item ${id}`;
