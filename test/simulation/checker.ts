/**
 * The promises of docs/protocol.md, looked at after every single change of the disk. Remembers what was promised to whom; shares
 * with the product only the grammar of names and the reading of records.
 */
import { decodeRecord } from "../../src/codec/records.ts";
import {
  parseName,
  parsePlainClaim,
  resultsName,
  settledBatchName,
  submissionOf,
} from "../../src/core/names.ts";
import type { FileFacts } from "../../src/mailbox/files/storage.ts";
import type { Actor, World } from "./world.ts";

/** What was promised so far. Every member is replaced, never changed, so that a copy costs nothing. */
export interface Ledger {
  /** Texts of tasks that must not be lost, by mailbox and text. */
  readonly wanted: ReadonlyMap<
    string,
    { readonly root: string; readonly id: string; readonly text: string }
  >;
  /** The record that stands for each settled id: its inode and lease. */
  readonly settled: ReadonlyMap<string, { readonly ino: number; readonly lease: string }>;
  /** Ids that somebody was told are settled, and under which lease. */
  readonly reported: ReadonlyMap<string, string>;
  /** Markers, and after how many calls each was committed. */
  readonly committed: ReadonlyMap<string, number>;
  /** Names of leases that are over. */
  readonly over: ReadonlySet<string>;
  readonly hadPowerCut: boolean;
  /** What has settled and was moved away for good: id and submission. */
  readonly archived: ReadonlySet<string>;
  /** Results of lines that were reported as completed, by mailbox and id of the line. */
  readonly doneLines: ReadonlyMap<string, string>;
  /** Batches whose results a retry has taken aside for older ones, and is to put back: the known gap. */
  readonly strayed: ReadonlySet<string>;
  /** Ids of tasks that are submitted once, with the submission that has settled ("" before that). */
  readonly once: ReadonlyMap<string, Once>;
}

interface Once {
  readonly texts: readonly string[];
  readonly submission: string;
}

export interface Change {
  what: "create" | "fill" | "link" | "rename" | "unlink" | "touch" | "appear" | "power";
  from?: string;
  to?: string;
  /** What a rename has replaced. */
  replaced?: FileFacts;
}

export function newLedger(): Ledger {
  return {
    wanted: new Map(),
    settled: new Map(),
    reported: new Map(),
    committed: new Map(),
    over: new Set(),
    hadPowerCut: false,
    archived: new Set(),
    doneLines: new Map(),
    strayed: new Set(),
    once: new Map(),
  };
}

interface Content {
  text: string;
  record:
    | {
        isRefusal: boolean;
        isSkip: boolean;
        lease: string;
        file: string | undefined;
        id: string;
        isCompleted: boolean;
        /** How many lines of it have a result, when it is of a batch. */
        lines: number | undefined;
      }
    | undefined;
  taskText: string | undefined;
}

const contents = new WeakMap<Buffer, Content>();

function contentOf(bytes: Buffer): Content {
  const known = contents.get(bytes);
  if (known !== undefined) return known;
  const text = bytes.toString("utf8").trim();
  const decoded = decodeRecord(bytes);
  const record = decoded?.record as
    | {
        status: string;
        kind?: string;
        attempts: number;
        lease: string;
        file?: string;
        task_id: string;
        batch?: { lines: number };
      }
    | undefined;
  const content: Content = {
    text,
    record:
      record === undefined
        ? undefined
        : {
            isRefusal:
              record.status === "failed" && record.kind === "invalid" && record.attempts === 0,
            isSkip: record.status === "failed" && record.kind === "dependency_failed",
            lease: record.lease,
            file: record.file,
            id: record.task_id,
            isCompleted: record.status === "completed",
            lines: record.batch?.lines,
          },
    taskText: decoded?.taskText,
  };
  contents.set(bytes, content);
  return content;
}

const ROOTS = ["/m", "/c"] as const;
const RESULTS = /^(\/[mc])\/(?:outbox|failed)\/(.+)_results\.ndjson$/;
const FINAL = /^(\/[mc])\/(outbox|failed)\/(.+)_(result|error)\.json$/;

/** In `failed/`: an error record, or what a settled batch has beside it. The rest is refused files. */
const BESIDE_OR_RECORD = /_(?:error\.json|(?:results|batch)\.ndjson)$/;

/** Somebody was told that this task is accepted. */
export function want(world: World, root: string, id: string, text: string): void {
  const wanted = new Map(world.ledger.wanted);
  wanted.set(`${root} ${text}`, { root, id, text });
  world.ledger = { ...world.ledger, wanted };
}

/** A task with one of these texts is to settle once under this id, whoever submits it how often. */
export function noteOnce(world: World, id: string, text: string): void {
  const { once } = world.ledger;
  const known = once.get(id) ?? { texts: [], submission: "" };
  if (known.texts.includes(text)) return;
  const now = { ...known, texts: [...known.texts, text] };
  world.ledger = { ...world.ledger, once: new Map(once).set(id, now) };
}

/** A record of a task that is submitted once. A second submission of it must never settle. */
function noteOnceSettled(world: World, who: string, id: string, lease: string, text = ""): void {
  const { once } = world.ledger;
  const known = once.get(id);
  if (known?.texts.includes(text) !== true) return;
  const submission = submissionOf(lease);
  if (known.submission !== "" && known.submission !== submission)
    world.faults.push(`${who} settled ${id} twice: as ${known.submission} and as ${submission}`);
  world.ledger = { ...world.ledger, once: new Map(once).set(id, { ...known, submission }) };
}

/** A record of a callback: it runs once, and only for a task that has settled. */
function noteCallback(world: World, who: string, id: string, text = ""): void {
  if (!text.includes('"callback_of"')) return;
  const { callback_of: of = "" } = JSON.parse(text) as { callback_of?: string };
  noteOnce(world, id, text);
  const lease = world.ledger.settled.get(`/m ${of}`)?.lease ?? "";
  if (!id.startsWith(`${of}.${submissionOf(lease)}.`))
    world.faults.push(`${who} settled ${id}, and ${of} has not settled like that`);
}

/** Somebody was told that the record is out of its tray: what came of this submission is dealt with. */
export function noteArchived(world: World, id: string, submission: string): void {
  const archived = new Set(world.ledger.archived).add(`/m ${id}@${submission}`);
  const wanted = new Map(world.ledger.wanted);
  for (const [key, one] of wanted) if (one.root === "/m" && one.id === id) wanted.delete(key);
  world.ledger = { ...world.ledger, archived, wanted };
}

/** Somebody was told that this task has settled, by the lease it held. */
export function told(world: World, root: string, id: string, lease: string): void {
  const key = `${root} ${id}`;
  const settled = world.ledger.settled.get(key);
  if (settled === undefined) {
    // It may be in the inbox again by now, or on its way there.
    if (isWaitingAgain(world, root, id) || isArchived(world.disk, lease)) return;
    world.faults.push(`${id}: reported as settled under ${lease}, and there is no record`);
  } else if (settled.lease !== lease) {
    world.faults.push(
      `${id}: reported as settled under ${lease}, but the record is of ${settled.lease}`,
    );
  } else {
    world.ledger = { ...world.ledger, reported: new Map(world.ledger.reported).set(key, lease) };
    noteDoneLines(world, root, id);
  }
}

/** What has completed of a batch that has settled does not run again: the results say so from now on. */
export function noteDoneLines(world: World, root: string, id: string): void {
  const doneLines = new Map(world.ledger.doneLines);
  for (const tray of ["outbox", "failed"])
    for (const text of linesAt(world.disk, `${root}/${tray}/${resultsName(id)}`)) {
      const { id: line, status } = JSON.parse(text) as { id: string; status: string };
      const key = `${root} ${line}`;
      if (status === "completed" && !doneLines.has(key)) doneLines.set(key, text);
    }
  world.ledger = { ...world.ledger, doneLines };
}

function linesAt(disk: World["disk"], path: string): string[] {
  const facts = disk.look(path);
  return facts === undefined ? [] : contentOf(disk.bytesOf(facts.ino)).text.split("\n");
}

/** Somebody found out that its lease is lost: then no record of its making may stand. */
export function toldFenced(
  world: World,
  root: string,
  id: string,
  lease: string,
  by: string,
): void {
  const { disk } = world;
  for (const [tray, end] of [
    ["outbox", "_result.json"],
    ["failed", "_error.json"],
  ]) {
    const facts = disk.look(`${root}/${tray}/${id}${end}`);
    if (facts === undefined) continue;
    const record = decodeRecord(disk.bytesOf(facts.ino))?.record;
    if (record?.lease === lease && record.agent_id === by)
      world.faults.push(`${id}: ${by} was told that ${lease} is lost, and its record stands`);
  }
}

/** After each change. */
export function observe(world: World, actor: Actor | undefined, change: Change): void {
  if (world.faults.length > 0) return;
  const who = actor?.program.name ?? "power";
  const { from = "", to = "" } = change;
  world.trail.push(`${who} ${change.what} ${from} ${to}`);
  if (change.what === "power") forgetUnsynced(world);
  if (change.replaced !== undefined && !to.includes("/.tmp/"))
    world.faults.push(`${who} replaced ${to} by a rename`);
  if (change.what === "rename" || change.what === "unlink" || change.what === "link")
    noteLeases(world, who, change);
  noteCommits(world, actor, change);
  noteStrayed(world, change);
  if (change.what !== "touch" && change.what !== "fill") noteRecords(world, who, change, from, to);
  if (to.startsWith("/m/processing/")) checkKeys(world, who);
  checkTrees(world, who, change);
}

/** Of the tasks with one `dedup_key` one is in work at a time. Those that are only taken to be skipped, or are settled, are not. */
function checkKeys(world: World, who: string): void {
  const holders = new Map<string, string>();
  for (const file of world.disk.list("/m/processing")) {
    const name = parseName(file);
    const isInWork = name?.stage === "ready" || name?.stage === "hold" || name?.stage === "w";
    if (name === undefined || !isInWork || name.token.includes("-K")) continue;
    const facts = world.disk.look(`/m/processing/${file}`);
    const { text } = facts === undefined ? { text: "" } : contentOf(world.disk.bytesOf(facts.ino));
    const [, key] = /"dedup_key":"([^"]*)"/.exec(text) ?? [];
    if (key === undefined) continue;
    const other = holders.get(key);
    if (other !== undefined && other !== name.id)
      world.faults.push(`${who} let ${name.id} and ${other} be in work at once, with one key`);
    holders.set(key, name.id);
  }
}

function noteLeases(world: World, who: string, { what, from = "", to = "" }: Change): void {
  if (to.includes("~w-")) {
    if (world.ledger.over.has(to)) world.faults.push(`${who} brought the lease ${to} back`);
  }
  if (what !== "link" && from.includes("~w-")) {
    const over = new Set(world.ledger.over);
    over.add(from);
    world.ledger = { ...world.ledger, over };
  }
}

/** Results that go while the record beside them stands: their finder stood still for the whole of a later run. */
function noteStrayed(world: World, { what, from = "", to = "" }: Change): void {
  const strayed = new Set(world.ledger.strayed);
  const gone = RESULTS.exec(what === "rename" ? from : "");
  const back = RESULTS.exec(what === "link" ? to : "");
  if (gone !== null && world.ledger.settled.has(`${gone[1]} ${gone[2]}`))
    strayed.add(`${gone[1]} ${gone[2]}`);
  else if (back === null || !strayed.delete(`${back[1]} ${back[2]}`)) return;
  world.ledger = { ...world.ledger, strayed };
}

/**
 * What was committed never runs again, because its record is there until it is published. A sweep that had looked before the
 * commit may the record of a settler that was late by an hour: then the task runs again, and nothing is lost.
 */
function noteCommits(world: World, actor: Actor | undefined, change: Change): void {
  const { what, from = "", to = "" } = change;
  const { committed } = world.ledger;
  const marker = /\/(?:processing|\.tmp)\/(.+~(?:ok|err)-.+)$/.exec(from)?.[1];
  const isCommit = what === "rename" && /\/processing\/.+~(?:ok|err)-/.test(to);
  if (isCommit && world.disk.look(to.replace("/processing/", "/.tmp/")) !== undefined)
    world.ledger = {
      ...world.ledger,
      committed: new Map(committed).set(to.slice(to.lastIndexOf("/") + 1), world.calls),
    };
  if (marker === undefined || actor === undefined) return;
  const isSwept = what === "unlink" && from.includes("/.tmp/") && actor.program.isSweeper === true;
  if (isSwept && world.disk.look(from.replace("/.tmp/", "/processing/")) !== undefined) {
    if ((committed.get(marker) ?? 0) < actor.turnBegan)
      world.faults.push(`${actor.program.name} swept ${from}, which a marker needs`);
    const late = new Map(committed);
    late.delete(marker);
    world.ledger = { ...world.ledger, committed: late };
  }
  if (what === "rename" && to.includes("~ready") && committed.has(marker))
    world.faults.push(`${actor.program.name} runs a committed task again: ${from}`);
}

function noteRecords(world: World, who: string, change: Change, from: string, to: string): void {
  const gone = change.what === "rename" || change.what === "unlink" ? FINAL.exec(from) : null;
  if (gone !== null) {
    const key = `${gone[1]} ${gone[3]}`;
    const facts = change.what === "rename" ? world.disk.look(to) : undefined;
    const known = world.ledger.settled.get(key);
    if (known !== undefined && (facts === undefined || facts.ino === known.ino)) {
      const isRetry = to.includes("/processing/") && to.includes("~again-");
      const isArchived = to.startsWith("/e/");
      if (!isRetry && !isArchived) world.faults.push(`${who} took the record ${from} away`);
      const settled = new Map(world.ledger.settled);
      settled.delete(key);
      const reported = new Map(world.ledger.reported);
      reported.delete(key);
      world.ledger = { ...world.ledger, settled, reported };
    }
  }
  const made = FINAL.exec(to);
  if (made !== null && change.what !== "unlink") {
    const [, root, , id] = made;
    const facts = world.disk.look(to);
    if (facts === undefined) return;
    const { record, taskText } = contentOf(world.disk.bytesOf(facts.ino));
    if (record === undefined) {
      world.faults.push(`${who} published ${to}, which is not a whole record`);
      return;
    }
    if (record.isRefusal) return;
    const key = `${root} ${id}`;
    const known = world.ledger.settled.get(key);
    if (known !== undefined)
      world.faults.push(`${who} settled ${id} again: ${to}, after the lease ${known.lease}`);
    if (root === "/m" && taskText === undefined && record.lines === undefined)
      world.faults.push(`${who} published ${to}, which does not hold its task`);
    const settled = new Map(world.ledger.settled);
    settled.set(key, { ino: facts.ino, lease: record.lease });
    world.ledger = { ...world.ledger, settled };
    if (root === "/m") {
      noteCallback(world, who, record.id, taskText);
      noteOnceSettled(world, who, record.id, record.lease, taskText);
    }
  }
}

/** What nobody was told may be lost with the power; what is there counts as it is there. */
function forgetUnsynced(world: World): void {
  const { disk } = world;
  const settled = new Map<string, { ino: number; lease: string }>();
  for (const root of ROOTS)
    for (const tray of ["outbox", "failed"])
      for (const [name, ino] of disk.entriesOf(`${root}/${tray}`)) {
        const final = FINAL.exec(`${root}/${tray}/${name}`);
        const { record } = contentOf(disk.bytesOf(ino));
        if (final === null || record === undefined || record.isRefusal) continue;
        const key = `${root} ${final[3]}`;
        const other = settled.get(key);
        if (other !== undefined)
          world.faults.push(`power: ${key} has two records, of ${other.lease} and ${record.lease}`);
        settled.set(key, { ino, lease: record.lease });
        checkBesideBatch(world, `${root}/${tray}`, record, "power");
      }
  for (const [key, lease] of world.ledger.reported) {
    const [root = "", id = ""] = key.split(" ");
    const now = settled.get(key);
    if (now?.lease !== lease && !isCommitted(world, root, id))
      world.faults.push(
        `power: ${key} was reported as settled under ${lease}, and that record is lost`,
      );
  }
  world.ledger = {
    ...world.ledger,
    settled,
    committed: new Map(),
    over: new Set(),
    hadPowerCut: true,
  };
}

/** Where the record of a batch is, the batch is, and a result for each line that it counts. */
function checkBesideBatch(
  { disk, faults, ledger }: World,
  dir: string,
  { id, lease, lines, isCompleted }: NonNullable<Content["record"]>,
  when: string,
): void {
  if (lines === undefined) return;
  const submission = submissionOf(lease);
  const kept = linesAt(disk, `${dir}/${settledBatchName(id, submission)}`);
  if (kept.length === 0) faults.push(`${when}: ${dir} holds the record of ${id} without its batch`);
  if (ledger.strayed.has(`${dir.slice(0, 2)} ${id}`)) return;
  const found = [resultsName(id), resultsName(`${id}~${submission}`)].map((name) =>
    numbersIn(linesAt(disk, `${dir}/${name}`)),
  );
  const numbers = found.find((some) => some.length > 0) ?? [];
  if (numbers.length !== lines || new Set(numbers).size !== lines)
    faults.push(
      `${when}: ${dir} has the results ${numbers.join()} of ${id}, whose record counts ${lines}`,
    );
  if (isCompleted && lines !== kept.length)
    faults.push(`${when}: ${id} has completed with ${lines} of ${kept.length} lines`);
}

function numbersIn(results: readonly string[]): number[] {
  return results.map((text) => (JSON.parse(text) as { line: number }).line);
}

/** Then recovery publishes it: the record may come back, and whether it is the same is looked at when all is at rest. */
function isCommitted(world: World, root: string, id: string): boolean {
  for (const file of world.disk.entriesOf(`${root}/processing`).keys()) {
    const name = parseName(file);
    if (name?.id === id && (name.stage === "ok" || name.stage === "err")) return true;
  }
  return false;
}

function isWaitingAgain(world: World, root: string, id: string): boolean {
  if (world.disk.look(`${root}/inbox/${id}.json`) !== undefined) return true;
  for (const file of world.disk.entriesOf(`${root}/processing`).keys())
    if (parseName(file)?.id === id) return true;
  return false;
}

/** After a power cut an earlier name of what has settled may be back: then it is tidied away, and never settled again. */
function isStale(world: World, file: string, lease: string): boolean {
  return world.ledger.hadPowerCut && parseName(file)?.submission === submissionOf(lease);
}

/** The records that were archived, as inodes. */
function archivedFiles(disk: World["disk"]): number[] {
  const filesBelow = (dir: string): number[] =>
    [...disk.entriesOf(dir)].flatMap(([name, ino]) => {
      const path = `${dir}/${name}`;
      return disk.look(path)?.kind === "file" ? [ino] : filesBelow(path);
    });
  return filesBelow("/e");
}

function isArchived(disk: World["disk"], lease: string): boolean {
  return archivedFiles(disk).some((ino) => contentOf(disk.bytesOf(ino)).record?.lease === lease);
}

interface Place {
  path: string;
  stage: string;
}

function checkTrees(world: World, who: string, change: Change): void {
  const { disk, faults } = world;
  const after = `after ${who}: ${change.what} ${change.from ?? ""} ${change.to ?? ""}`;
  const found = new Set<string>();
  for (const root of ROOTS) {
    const live = new Map<string, Place>();
    for (const [file, ino] of disk.entriesOf(`${root}/processing`)) {
      const name = parseName(file);
      const id = name?.id ?? parsePlainClaim(file);
      const content = contentOf(disk.bytesOf(ino));
      // Of commands, whose acknowledgements do not hold them, the id stands for the text.
      const text = name?.stage === "again" ? content.taskText : content.text;
      found.add(`${root} ${root === "/c" ? id : text}`);
      if (id === undefined) {
        faults.push(`${root}/processing/${file}: a name without a meaning, ${after}`);
        continue;
      }
      const stage = name?.stage ?? "plain";
      if (stage === "again" || stage === "bad") continue;
      const other = live.get(id);
      if (other !== undefined)
        faults.push(`${id} is in two places: ${other.path} and ${file}, ${after}`);
      live.set(id, { path: file, stage });
    }
    for (const [key, record] of world.ledger.settled) {
      const [where, id = ""] = key.split(" ");
      if (where !== root) continue;
      const place = live.get(id);
      if (
        place !== undefined &&
        place.stage !== "ok" &&
        place.stage !== "err" &&
        place.stage !== "plain" &&
        !isStale(world, place.path, record.lease)
      )
        faults.push(`${id} has settled as ${record.lease} and is in ${place.path} too, ${after}`);
    }
    for (const tray of ["outbox", "failed"] as const) {
      for (const [file, ino] of disk.entriesOf(`${root}/${tray}`)) {
        const { text, record, taskText } = contentOf(disk.bytesOf(ino));
        if (taskText !== undefined) found.add(`${root} ${taskText}`);
        else found.add(`${root} ${text}`);
        if ((file.endsWith("_result.json") || file.endsWith("_error.json")) && record === undefined)
          faults.push(`${root}/${tray}/${file} is not a whole record, ${after}`);
      }
    }
    for (const [file, ino] of disk.entriesOf(`${root}/inbox`))
      found.add(`${root} ${root === "/c" ? file.slice(0, -5) : contentOf(disk.bytesOf(ino)).text}`);
  }
  for (const ino of archivedFiles(disk)) {
    const { taskText } = contentOf(disk.bytesOf(ino));
    found.add(`/m ${taskText}`);
  }
  const lost: string[] = [];
  for (const [key, { root, id }] of world.ledger.wanted) {
    // An acknowledgement does not hold the command's own text.
    if (!found.has(key) && !(root === "/c" && world.ledger.settled.has(`${root} ${id}`)))
      lost.push(key);
  }
  if (lost.length === 0) return;
  // Between two steps a file may be staged; at rest it may not (see `checkRest`).
  for (const root of ROOTS)
    for (const ino of disk.entriesOf(`${root}/.tmp`).values())
      found.add(`${root} ${contentOf(disk.bytesOf(ino)).text}`);
  for (const key of lost)
    if (!found.has(key)) faults.push(`${world.ledger.wanted.get(key)?.id}: lost, ${after}`);
}

/** When everything has come to rest: all is settled, or refused with a reason, and nothing lies about. */
export function checkRest(world: World): void {
  const { disk, faults } = world;
  for (const root of ROOTS) {
    for (const tray of ["inbox", "processing", ".tmp"])
      for (const file of disk.list(`${root}/${tray}`))
        faults.push(`${root}/${tray}/${file}: left over at rest`);
    const failed = disk.entriesOf(`${root}/failed`);
    const reasons = new Set<string>();
    for (const [file, ino] of failed) {
      const { record } = contentOf(disk.bytesOf(ino));
      if (!file.endsWith("_error.json") || record?.isRefusal !== true) continue;
      const refused = record.file?.slice("failed/".length) ?? "";
      if (root === "/c") continue;
      reasons.add(refused);
      // Of two who finish one retry at once, one may keep the record although the other has put the file into the inbox.
      const hasRun = world.ledger.settled.has(`${root} ${record.id}`);
      if (!failed.has(refused) && !hasRun)
        faults.push(`${root}/failed/${file}: its file ${refused} is not there`);
    }
    for (const file of failed.keys())
      if (!BESIDE_OR_RECORD.test(file) && root === "/m" && !reasons.has(file))
        faults.push(`${root}/failed/${file}: refused without a reason`);
  }
  checkSkips(world);
  checkOneRecord(world);
  checkOnce(world);
  checkCallbacks(world);
  checkBatches(world);
  for (const [key, lease] of world.ledger.reported)
    if (world.ledger.settled.get(key)?.lease !== lease)
      faults.push(`${key}: reported as settled under ${lease}, but that is not its record`);
  for (const { root, id, text } of world.ledger.wanted.values()) {
    const trays = ["outbox", "failed"].map((tray) => disk.entriesOf(`${root}/${tray}`));
    const kept = [...trays.flatMap((entries) => [...entries.values()]), ...archivedFiles(disk)];
    const isKept = kept.some((ino) => {
      const content = contentOf(disk.bytesOf(ino));
      return content.taskText === text || content.text === text;
    });
    if (!isKept && root === "/m") faults.push(`${id}: lost at rest: ${text}`);
    if (root === "/c" && !world.ledger.settled.has(`${root} ${id}`))
      faults.push(`${id}: a command that was never acknowledged`);
  }
}

/** What was noted as submitted has settled, and no ticket is left, unless another task has the id. */
function checkOnce({ disk, ledger, faults }: World): void {
  if (disk.look("/m/.once") === undefined) return;
  for (const file of disk.list("/m/.once")) {
    const id = file.replace(/(?:~.*\.json|\.note)$/, "");
    const { texts = [], submission } = ledger.once.get(id) ?? {};
    const isTaken = [`/m/outbox/${id}_result.json`, `/m/failed/${id}_error.json`].some((path) => {
      const { taskText } = contentOf(disk.bytesOf(disk.look(path)?.ino ?? 0));
      return taskText !== undefined && !texts.includes(taskText);
    });
    if (isTaken) continue;
    if (file.includes("~")) faults.push(`/m/.once/${file}: left over at rest`);
    else if (submission === "") faults.push(`${id}: noted as submitted, and never ran`);
  }
}

/** What a settled task calls has settled, too. */
function checkCallbacks({ disk, faults, ledger }: World): void {
  for (const dir of ["/m/outbox", "/m/failed"])
    for (const [file, ino] of disk.entriesOf(dir)) {
      const { record, taskText } = contentOf(disk.bytesOf(ino));
      if (record === undefined || taskText?.includes('"on_settled":') !== true) continue;
      const called = `${record.id}.${submissionOf(record.lease)}.on_settled`;
      if ((ledger.once.get(called)?.submission ?? "") === "")
        faults.push(`${file}: it has settled, and ${called} never ran`);
    }
}

/** A task is skipped when, and only when, one that it depends on has failed. */
function checkSkips({ disk, faults, ledger }: World): void {
  const failed = disk.entriesOf("/m/failed");
  for (const dir of ["/m/outbox", "/m/failed"])
    for (const [file, ino] of disk.entriesOf(dir)) {
      const { record, taskText } = contentOf(disk.bytesOf(ino));
      if (record === undefined || record.isRefusal || taskText === undefined) continue;
      const task = JSON.parse(taskText) as { metadata?: { dependencies?: string[] } };
      const on = task.metadata?.dependencies ?? [];
      const cause = on.find((id) => failed.has(`${id}_error.json`));
      if (cause !== undefined && !record.isSkip) faults.push(`${file}: ran, and ${cause} failed`);
      // A power cut may undo that a task was put back, and not that the one before it was.
      if (cause === undefined && record.isSkip && !ledger.hadPowerCut)
        faults.push(`${file}: skipped for nothing`);
    }
}

/** What was accepted once has settled once, whatever the names of its records are. */
function checkOneRecord(world: World): void {
  const { disk, faults } = world;
  const paths = new Map<string, string>();
  for (const root of ROOTS)
    for (const tray of ["outbox", "failed"])
      for (const [file, ino] of disk.entriesOf(`${root}/${tray}`)) {
        const { record } = contentOf(disk.bytesOf(ino));
        if (record === undefined || record.isRefusal) continue;
        const key = `${root} ${record.id}@${submissionOf(record.lease)}`;
        const other = paths.get(key);
        const path = `${tray}/${file}`;
        if (other !== undefined) faults.push(`${record.id}: settled as ${other} and as ${path}`);
        if (world.ledger.archived.has(key))
          faults.push(`${path}: settled again, its record was archived`);
        paths.set(key, path);
      }
}

function checkBatches(world: World): void {
  const { disk, faults } = world;
  const results = new Set<string>();
  const keptTexts = new Map<string, string>();
  for (const dir of ["/m/outbox", "/m/failed"])
    for (const [file, ino] of disk.entriesOf(dir)) {
      const { record } = contentOf(disk.bytesOf(ino));
      if (file.endsWith("_results.ndjson"))
        for (const text of linesAt(disk, `${dir}/${file}`)) results.add(text);
      if (record?.lines === undefined) continue;
      checkBesideBatch(world, dir, record, "at rest");
      const kept = settledBatchName(record.id, submissionOf(record.lease));
      keptTexts.set(record.id, linesAt(disk, `${dir}/${kept}`).join("\n"));
    }
  const { doneLines, strayed } = world.ledger;
  for (const [line, text] of doneLines)
    if (!results.has(text) && !strayed.has(line.slice(0, line.lastIndexOf("#"))))
      faults.push(`${line}: it had completed, and its result is lost`);
  for (const [file, ino] of disk.entriesOf("/m/failed")) {
    if (BESIDE_OR_RECORD.test(file)) continue;
    const [, id = ""] = /^(.+)~[^~]+\.ndjson$/.exec(file) ?? [];
    if (keptTexts.get(id) === contentOf(disk.bytesOf(ino)).text)
      faults.push(`failed/${file}: refused, and it is the very batch that has settled`);
  }
}

/** The promises as text, for telling states apart. */
export function ledgerFingerprint(ledger: Ledger): string {
  const { wanted, settled, reported, committed, over, archived, doneLines, strayed, once } = ledger;
  let text = "";
  for (const key of [...wanted.keys()].sort()) text += `w${key}`;
  for (const [key, { ino }] of settled) text += `s${key}${ino}`;
  for (const key of reported.keys()) text += `r${key}`;
  for (const key of archived) text += `a${key}`;
  for (const key of doneLines.keys()) text += `d${key}`;
  for (const key of strayed) text += `y${key}`;
  for (const [id, { texts, submission }] of once) text += `1${id}${texts.length}${submission}`;
  return `${text}c${committed.size}o${over.size}`;
}
