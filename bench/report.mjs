/** What was measured, as text: lines for the terminal, Markdown for people. Pure. */

const DISKS = { ext4: "ext4", tmpfs: "tmpfs", large: "ext4" };

/** A figure as people read it; its key ends in its unit. */
function formatFigure(key, value) {
  if (key === "rate") return `${formatNumber(value)}/s`;
  if (key.endsWith("_rate")) return `${words(key, "_rate")} ${formatNumber(value)}/s`;
  for (const [suffix, unit] of [
    ["_ms", " ms"],
    ["_mb", " MB"],
    ["_percent", " %"],
  ])
    if (key.endsWith(suffix)) return `${words(key, suffix)} ${formatNumber(value)}${unit}`;
  return `${words(key, "")} ${formatNumber(value)}`;
}

const words = (key, suffix) => key.slice(0, key.length - suffix.length).replaceAll("_", " ");

function formatNumber(value) {
  if (!Number.isFinite(value)) return "–";
  if (value >= 100) return Math.round(value).toLocaleString("en-US");
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** One contestant in one line. */
export function describeFigures({ name, figures, skipped, runs }) {
  const text = Object.entries(figures).map(([key, value]) => formatFigure(key, value));
  const skip = skipped === undefined ? [] : [`SKIPPED: ${skipped}`];
  return `${name}: ${[...text, ...skip].join(" · ")} (${runs.length} runs)`;
}

export function describeGoal({ text, value, unit, isMet }) {
  const words = isMet === null ? "NOT MEASURED" : isMet ? "met" : "NOT MET";
  return `${words}: ${text}: ${formatValue(value, unit)}`;
}

const formatValue = (value, unit) =>
  value === null ? "–" : `${formatNumber(value)}${unit === "" ? "" : ` ${unit}`}`;

const verdict = (isMet) => (isMet === null ? "not measured" : isMet ? "met" : "**not met**");

/** Ratios need no unit: the goal says of what. */
function goalsTable(report) {
  const lines = ["| what | file system | goal | measured | |", "|---|---|---|---|---|"];
  for (const { title, disk, goals } of report.rows) {
    for (const { text, value, unit, isMet } of goals)
      lines.push(
        `| ${title} | ${DISKS[disk]} | ${text} | ${formatValue(value, unit)} | ${verdict(isMet)} |`,
      );
    if (goals.length === 0)
      lines.push(`| ${title} | ${DISKS[disk]} | | | skipped: no such file system here |`);
  }
  return `${lines.join("\n")}\n`;
}

function describeMachine({ machine, command, rounds, minutes, image_on, size }) {
  const { cpu, cores, memory_gib, kernel, node, programs } = machine;
  const peers = Object.values(programs).filter((version) => version !== undefined);
  const kind = size === "quick" ? "a quick run with small numbers" : `${minutes} minutes`;
  return `\`${command}\` at ${machine.at.slice(0, 10)} (${kind}, medians of ${rounds} interleaved runs, commit ${machine.commit ?? "unknown"}).
${cpu}, ${cores} cores, ${memory_gib} GiB, ${kernel}, Node ${node}. ext4 with a journal in an image on \`${image_on}\`, mounted by loop;
tmpfs is \`/dev/shm\`. ${peers.join("; ")}.
`;
}

/** Each figure of ours beside that of the other checkout; above 1 is better now. `rounds` has the ratio of each round. */
function pairsOf({ contestants }) {
  return contestants.flatMap((now) => {
    const before = contestants.find(({ name }) => name === nameBefore(now.name));
    return Object.entries(before?.figures ?? {}).flatMap(([key, then]) => {
      const value = now.figures[key];
      if (!Number.isFinite(value) || !Number.isFinite(then)) return [];
      const rounds = now.runs.map((run, at) => ratioOf(key, before.runs[at]?.[key], run[key]));
      return [{ name: now.name, key, then, value, ratio: ratioOf(key, then, value), rounds }];
    });
  });
}

function ratioOf(key, then, now) {
  const isRate = key === "rate" || key.endsWith("_rate");
  return now === then ? 1 : isRate ? now / then : then / now;
}

/** A figure has fallen when it is so much worse than before, and in nearly all rounds worse: else it is the machine's noise. */
const FALLEN_BELOW = 0.97;
const ROUNDS_SHARE = 0.8;

/** The figures of ours that have fallen, a line each. */
export function describeFallen({ rows }) {
  return rows.flatMap((row) =>
    pairsOf(row)
      .filter(({ ratio, rounds }) => ratio < FALLEN_BELOW && isMostlyWorse(rounds))
      .map(({ name, key, then, value, ratio }) => {
        const figures = `${formatFigure(key, then)} before, ${formatFigure(key, value)} now`;
        return `${row.title} (${DISKS[row.disk]}), ${name}: ${figures}: ${ratio.toFixed(2)}`;
      }),
  );
}

function isMostlyWorse(rounds) {
  return rounds.filter((ratio) => ratio < 1).length >= ROUNDS_SHARE * rounds.length;
}

export function describePairs(row) {
  return pairsOf(row).map(
    ({ name, key, then, value, ratio }) =>
      `${name}: ${formatFigure(key, then)} before, ${formatFigure(key, value)} now: ${ratio.toFixed(2)}`,
  );
}

function pairsTable({ rows, beside }) {
  const lines = [
    "| what | file system | contestant | before | now | ratio |",
    "|---|---|---|---|---|---|",
  ];
  for (const row of rows)
    for (const { name, key, then, value, ratio } of pairsOf(row))
      lines.push(
        `| ${row.title} | ${DISKS[row.disk]} | ${name} | ${formatFigure(key, then)} | ${formatFigure(key, value)} | ${ratio.toFixed(2)} |`,
      );
  return `Before is commit ${beside}. Above 1 is better now; 0.97 and less has fallen by 3 % or more.\n\n${lines.join("\n")}\n`;
}

/** results.md: all goals, all contestants, what was skipped. */
export function renderReport(report) {
  const parts = ["# Results", describeMachine(report), "![Rates](chart.svg)", "## Goals"];
  parts.push(goalsTable(report));
  if (report.beside !== undefined) parts.push("## Before and now", pairsTable(report));
  parts.push("## Figures");
  for (const { title, fileSystem, disk, contestants, seconds } of report.rows) {
    parts.push(`### ${title}, ${fileSystem ?? DISKS[disk]}`);
    if (contestants.length === 0) {
      parts.push("Skipped: no such file system here.");
      continue;
    }
    const lines = ["| contestant | medians | all runs of the first figure |", "|---|---|---|"];
    for (const { name, figures, skipped, runs } of contestants) {
      const text = Object.entries(figures).map(([key, value]) => formatFigure(key, value));
      if (skipped !== undefined) text.push(`**skipped: ${skipped.replaceAll("|", "\\|")}**`);
      const first = runs.map((run) => formatNumber(Object.values(run)[0])).join(", ");
      lines.push(`| ${name} | ${text.join(" · ")} | ${first} |`);
    }
    parts.push(lines.join("\n"), `Took ${seconds} s.`);
  }
  return `${parts.join("\n\n")}\n`;
}

/** The kinds of work of the short table; `peersOf` names another row with the peers, `limit` what holds our figure. */
const KINDS_OF_WORK = [
  {
    row: "drain",
    key: "rate",
    limit: "one thread decides: 3 looks and 1 rename a task, and messages to the workers",
  },
  { row: "drain-power", key: "rate", limit: "two commits of the file system for each group" },
  { row: "batch", key: "rate", peersOf: "drain", limit: "parsing and checking of lines" },
  { row: "enqueue", key: "rate", limit: "a file and a link for each task" },
  {
    row: "pick-up",
    key: "median_ms",
    limit: "a file event, a rename and a message between processes",
  },
  { row: "exec", key: "rate", limit: "Node blocks for 2 ms while it forks" },
];

export const isOurs = ({ name }) => name.startsWith("mailchute");
const BEFORE = ", before";
/** The same contestant in the checkout that --beside names. */
export const nameBefore = (name) => `${name}${BEFORE}`;
export const isBefore = ({ name }) => name.endsWith(BEFORE);
const isBare = ({ name }) => /\bloop\b|^bare /.test(name);

/** The best of the others who do the same work: of times the shortest. */
function fastestPeer(contestants, key) {
  const peers = contestants.filter(
    (one) => !isOurs(one) && !isBare(one) && Number.isFinite(one.figures[key]),
  );
  const sign = key.endsWith("_ms") ? 1 : -1;
  return peers.toSorted((a, b) => sign * (a.figures[key] - b.figures[key]))[0];
}

/** One row a kind of work: our figure and the fastest peer's of the same run, how much better we are, and what holds us. */
function shortTable(report) {
  const contestantsOf = (name) =>
    report.rows.find(({ row, disk }) => row === name && disk === "ext4")?.contestants ?? [];
  const lines = [
    "| what | mailchute | best peer | ratio | what limits us |",
    "|---|---|---|---|---|",
  ];
  for (const { row, key, peersOf = row, limit } of KINDS_OF_WORK) {
    const ours = contestantsOf(row).find(isOurs);
    if (ours === undefined) continue;
    const peer = fastestPeer(contestantsOf(peersOf), key);
    const [value, best] = [ours, peer].map((one) => one?.figures[key] ?? Number.NaN);
    const ratio = key.endsWith("_ms") ? best / value : value / best;
    const { title } = report.rows.find((one) => one.row === row);
    const work = peersOf === row ? "" : ", as in the first row";
    const beside = peer ? `${formatFigure(key, best)} (${peer.name}${work})` : "–";
    lines.push(
      `| ${title} | ${formatFigure(key, value)} | ${beside} | ${formatNumber(ratio)} | ${limit} |`,
    );
  }
  return lines.join("\n");
}

/** For README.md: what a person notices. Peers with one row for each task stand beside one file for each, and batches beside batches. */
const NOTICED = [
  {
    what: "A file is dropped, its task starts (idle pool)",
    row: "pick-up",
    key: "median_ms",
    peers: ["BullMQ, add to start"],
  },
  {
    what: "Tasks that do nothing, one file or row each, `durability: process`",
    row: "drain",
    key: "rate",
    peers: ["BullMQ, everysec", "plainjob", "graphile-worker"],
  },
  {
    what: "The same with `durability: power`, the default",
    row: "drain-power",
    key: "rate",
    name: "mailchute, power",
    peers: ["BullMQ, always"],
  },
  {
    what: "Tasks that do nothing, in batches",
    row: "batch",
    key: "rate",
    peersOf: "drain",
    peers: ["graphile-worker, batched"],
  },
  { what: "`exec` of `true`", row: "exec", key: "rate", peers: ["task-spooler"] },
  {
    what: "A worker is killed, its task runs again",
    row: "failover",
    key: "median_ms",
    name: "mailchute, one worker process",
  },
  {
    what: "`pause`, `cancel` and the like take effect, 100,000 tasks wait",
    row: "commands",
    key: "worst_median_ms",
    name: "mailchute, many waiting",
  },
  {
    what: "`status` answers, 1,000,000 tasks wait",
    row: "million",
    key: "status_ms",
    name: "mailchute, looks",
  },
  { what: "An idle pool takes of one core", row: "idle", key: "cpu_percent" },
];

function noticedTable({ rows }) {
  const figureOf = (row, name, key) =>
    rows
      .find((one) => one.row === row && one.disk !== "tmpfs")
      ?.contestants.find((one) => one.name === name)?.figures[key];
  const shown = (key, value) => formatFigure(/_ms$/.test(key) ? "_ms" : key, value).trim();
  const lines = ["| what you notice | mailchute | others |", "|---|---|---|"];
  for (const { what, row, key, name = "mailchute", peersOf = row, peers = [] } of NOTICED) {
    const value = figureOf(row, name, key);
    if (value === undefined) continue;
    const others = peers
      .map((peer) => [peer, figureOf(peersOf, peer, key)])
      .filter(([, figure]) => figure !== undefined)
      .map(([peer, figure]) => `${peer} ${shown(key, figure)}`);
    const ours = shown(key, value).replace("cpu ", "");
    lines.push(`| ${what} | ${ours} | ${others.join(" · ")} |`);
  }
  return lines.join("\n");
}

const describeRun = ({ machine, command, image_on, size, rounds, rows }) => {
  const { fileSystem } = rows.find((one) => one.fileSystem !== undefined);
  return `\`${command}\` at ${machine.at.slice(0, 10)}: ${size === "quick" ? "a quick run with small numbers, " : ""}medians of ${rounds} runs by turns.
${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; ${fileSystem}, in \`${image_on}\`.`;
};

/** @param dir where results.md is, as README.md names it */
export function renderNoticed(report, dir) {
  return `${noticedTable(report)}

${describeRun(report)}
Ratios, and what limits each figure: [bench](bench/README.md#beside-the-best-peer). Every figure: [${dir}](${dir}/results.md).
`;
}

/**
 * For bench/README.md: the machine, the chart, a row for each kind of work, and where the rest is.
 * @param dir where results.md and chart.svg are, as that page names it
 */
export function renderSummary(report, dir) {
  return `${describeRun(report)}

![Tasks per second beside peers and bare loops](${dir}/chart.svg)

${shortTable(report)}

The ratio is above 1 where mailchute is better. Every figure, and bare loops of the same calls: [${dir}](${dir}/results.md).
`;
}
