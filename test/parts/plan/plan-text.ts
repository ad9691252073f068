/** Roadmaps as people write them, at random: every style of item, comments anywhere, any line end. For property tests. */
import fc from "fast-check";

interface PlanText {
  text: string;
  ids: string[];
}

const STATUSES = ["open", "pending", "in_progress", "done", "failed", "blocked", "needs_human"];
const COMMENTS = ["# später: größer 🚀", "# - { id: TASK-1, status: done }", "#", "# status: open"];

const status = fc.record({
  word: fc.constantFrom(...STATUSES),
  quote: fc.constantFrom("", "", '"', "'"),
});

const item = fc.record({
  isFlow: fc.boolean(),
  isWide: fc.boolean(),
  status: fc.option(status, { nil: undefined }),
  isStatusFirst: fc.boolean(),
  idQuote: fc.constantFrom("", "", '"'),
  title: fc.constantFrom(undefined, "plain", '"quoted, with: status: open"', "'it''s'", '"äöü 🚀"'),
  block: fc.constantFrom(undefined, "literal", "kept", "list", "anchor"),
  comment: fc.constantFrom(undefined, ...COMMENTS),
  before: fc.array(fc.constantFrom("", ...COMMENTS), { maxLength: 2 }),
  dependsOn: fc.array(fc.nat(), { maxLength: 3 }),
  dependencyStyle: fc.constantFrom("flow", "block", "mixed", "single"),
});
type Item = typeof item extends fc.Arbitrary<infer T> ? T : never;

/** A valid plan; items depend only on earlier ones. */
export const planText: fc.Arbitrary<PlanText> = fc
  .record({
    epics: fc.array(item, { maxLength: 5 }),
    nodes: fc.array(item, { maxLength: 6 }),
    nodesFirst: fc.boolean(),
    noNodes: fc.constantFrom("absent", "empty", "null"),
    indent: fc.constantFrom(0, 2, 4),
    newline: fc.constantFrom("\n", "\n", "\r\n"),
    hasMark: fc.boolean(),
    endsOpen: fc.boolean(),
    tail: fc.constantFrom("", "# the end", "mine: { a: 1 }"),
  })
  .map((plan) => {
    const ids: string[] = [];
    const lines: string[] = ["# ein Plan: 🗺"];
    // TASK-1 and TASK-10 and TASK-100: no edit of one may touch another.
    const nextId = (): string => `TASK-1${"0".repeat(ids.length)}`;
    const write = (one: Item, at: string): void => {
      const id = nextId();
      lines.push(...one.before.map((comment) => (comment === "" ? "" : `${at}${comment}`)));
      lines.push(...itemLines(one, id, ids, at));
      ids.push(id);
    };
    const writeNodes = (): void => {
      const { nodes, noNodes } = plan;
      if (nodes.length === 0 && noNodes === "absent") return;
      lines.push(
        nodes.length > 0 ? "nodes: # flat" : noNodes === "empty" ? "nodes: [] # none" : "nodes:",
      );
      for (const one of nodes) write(one, " ".repeat(plan.indent));
    };
    const writeEpics = (): void => {
      if (plan.epics.length === 0) return;
      lines.push("epics:", "  - id: EPIC-1", '    title: "First"', "    tasks:");
      for (const one of plan.epics.slice(0, 2)) write(one, "      ");
      lines.push("    milestones: # of it", "      - title: M", "        tasks:");
      for (const one of plan.epics.slice(2)) write(one, "          ");
      lines.push("        id: EPIC-1.M1", "    domain: web");
      ids.push("EPIC-1", "EPIC-1.M1");
    };
    if (plan.nodesFirst) writeNodes();
    writeEpics();
    if (!plan.nodesFirst) writeNodes();
    if (plan.tail !== "") lines.push(plan.tail);
    const text = lines.join(plan.newline) + (plan.endsOpen ? "" : plan.newline);
    return { text: (plan.hasMark ? "\ufeff" : "") + text, ids };
  });

function itemLines(one: Item, id: string, before: readonly string[], at: string): string[] {
  const tasks = before.filter((other) => other.startsWith("TASK"));
  const deps = [...new Set(one.dependsOn.map((n) => tasks[n % Math.max(1, tasks.length)]))].filter(
    (other) => other !== undefined,
  );
  const word = one.status && `${one.status.quote}${one.status.word}${one.status.quote}`;
  const comment = one.comment === undefined ? "" : ` ${one.comment}`;
  const pairs: [string, string][] = [["id", `${one.idQuote}${id}${one.idQuote}`]];
  if (one.title !== undefined) pairs.push(["title", one.title]);
  if (word !== undefined) pairs.splice(one.isStatusFirst ? 0 : pairs.length, 0, ["status", word]);
  const flow = deps.map((d, i) =>
    one.dependencyStyle === "mixed" && i % 2 === 0 ? `{ id: ${d}, required_status: terminal }` : d,
  );
  const isSingle = deps.length === 1 && one.dependencyStyle === "single";
  const isBlockList = deps.length > 0 && one.dependencyStyle === "block" && !one.isFlow;
  if (deps.length > 0 && !isBlockList)
    pairs.push(["dependencies", isSingle ? (deps[0] as string) : `[${flow.join(", ")}]`]);
  if (one.isFlow) {
    const body = pairs.map(([key, value]) => `${key}: ${value}`);
    if (!one.isWide) return [`${at}- {${body.join(", ")}}${comment}`];
    return [
      `${at}- { ${body.join(`,${comment}\n`).split("\n").join(`\n${at}    `)}`,
      `${at}  }`,
    ].flatMap((line) => line.split("\n"));
  }
  const lines = pairs.map(
    ([key, value], i) => `${at}${i === 0 ? "- " : "  "}${key}: ${value}${comment}`,
  );
  if (isBlockList)
    lines.push(
      `${at}  dependencies:${comment}`,
      ...deps.map((d, i) => `${at}    - ${d}${i === 0 ? comment : ""}`),
    );
  switch (one.block) {
    case "literal":
      lines.push(`${at}  prompt: |`, `${at}    status: open`, `${at}    - { id: TASK-1 }`);
      break;
    case "kept":
      lines.push(`${at}  prompt: |+`, `${at}    kept`, "", "");
      break;
    case "list":
      lines.push(`${at}  acceptance:`, `${at}    - one`, `${at}    - "two"`);
      break;
    case "anchor":
      lines.push(`${at}  extra: &a${id} [x]`, `${at}  again: *a${id}`);
      break;
    default:
  }
  return lines;
}
