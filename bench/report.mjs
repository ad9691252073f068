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

/** results.md: all goals, all contestants, what was skipped. */
export function renderReport(report) {
  const parts = ["# Results", describeMachine(report), "![Rates](chart.svg)", "## Goals"];
  parts.push(goalsTable(report), "## Figures");
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

/** The kinds of work of the short table; `bare` is the loop that stands beside, `peersOf` another row with the peers. */
const KINDS_OF_WORK = [
  { row: "drain", key: "rate", bare: "loop of the protocol's calls, Node" },
  { row: "drain-power", key: "rate" },
  { row: "batch", key: "rate", peersOf: "drain" },
  { row: "enqueue", key: "rate", bare: "loop of submits, Node" },
  { row: "pick-up", key: "median_ms" },
  { row: "exec", key: "rate", bare: "bare spawn, Node" },
];

const isOurs = ({ name }) => name.startsWith("mailchute");
const isBare = ({ name }) => /\bloop\b|^bare /.test(name);

/** The best of the others who do the same work: of times the shortest. */
function fastestPeer(contestants, key) {
  const peers = contestants.filter(
    (one) => !isOurs(one) && !isBare(one) && Number.isFinite(one.figures[key]),
  );
  const sign = key.endsWith("_ms") ? 1 : -1;
  return peers.toSorted((a, b) => sign * (a.figures[key] - b.figures[key]))[0];
}

/** One row a kind of work: our figure, the fastest peer's and the bare loop's, each of the same run. */
function shortTable(report) {
  const contestantsOf = (name) =>
    report.rows.find(({ row, disk }) => row === name && disk === "ext4")?.contestants ?? [];
  const lines = ["| what | mailchute | fastest peer | bare loop |", "|---|---|---|---|"];
  for (const { row, key, bare, peersOf = row } of KINDS_OF_WORK) {
    const ours = contestantsOf(row).find(isOurs);
    if (ours === undefined) continue;
    const peer = fastestPeer(contestantsOf(peersOf), key);
    const loop = contestantsOf(row).find(({ name }) => name === bare);
    const cells = [ours, peer, loop].map((one) =>
      one ? formatFigure(key, one.figures[key]) : "–",
    );
    const { title } = report.rows.find((one) => one.row === row);
    const work = peersOf === row ? "" : ", as in the first row";
    lines.push(
      `| ${title} | ${cells[0]} | ${cells[1]}${peer ? ` (${peer.name}${work})` : ""} | ${cells[2]} |`,
    );
  }
  return lines.join("\n");
}

/**
 * For README.md: the machine, the chart, a row for each kind of work, and where the rest is.
 * @param dir where results.md and chart.svg are, as README.md names it
 */
export function renderSummary(report, dir) {
  const { machine, command, image_on, size, rounds } = report;
  const { fileSystem } = report.rows.find((one) => one.fileSystem !== undefined);
  return `\`${command}\` at ${machine.at.slice(0, 10)}: ${size === "quick" ? "a quick run with small numbers, " : ""}medians of ${rounds} runs by turns.
${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; ${fileSystem}, in \`${image_on}\`.

![Tasks per second beside peers and bare loops](${dir}/chart.svg)

${shortTable(report)}

A bare loop makes the same file-system calls and decides nothing. Every figure: [${dir}](${dir}/results.md). How it is measured: [bench](bench/README.md).
`;
}
