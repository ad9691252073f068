/** Draws changed lines, and keeps what a person says about them until it is sent to the agent. */
import { perform } from "./acts.js";
import { headers } from "./ask.js";
import { element, link } from "./dom.js";
import { helpWithKeys } from "./keys.js";

const KINDS = { "+": "add", "-": "del", " ": "same", "\\": "note" };
/** With so many files their list is folded. */
const LIST_MAX = 12;

/** Comments and words that are not sent yet, by task. They outlive the page. */
const drafts = new Map();
/** An event of the document: what is not sent yet has changed. */
const CHANGED = "mailchute-draft";
const keyOf = (id) => `mailchute-draft-${id}`;

function draftOf(id) {
  if (drafts.has(id)) return drafts.get(id);
  const draft = { words: "", comments: [] };
  drafts.set(id, draft);
  try {
    return Object.assign(draft, JSON.parse(localStorage.getItem(keyOf(id))));
  } catch {
    return draft;
  }
}

function save(id) {
  const { words, comments } = draftOf(id);
  const kept = { words, comments: comments.filter(({ text }) => text.trim() !== "") };
  if (words.trim() === "" && kept.comments.length === 0) localStorage.removeItem(keyOf(id));
  else localStorage.setItem(keyOf(id), JSON.stringify(kept));
  document.dispatchEvent(new Event(CHANGED));
}

export function diff(block) {
  const box = element("section", undefined, { class: "diff", "aria-label": "changes" });
  const files = block.files.map((file) => fileOf(file, block));
  box.append(element("h2", block.title));
  if (files.length > 1) box.append(listOf(block.files, files));
  box.append(helpWithKeys(box, block.can_comment), ...files);
  if (block.more !== "") box.append(element("p", block.more));
  return box;
}

/** The files, each with a button that leads to it. */
function listOf(all, files) {
  const list = element("details", undefined, { class: "files" });
  list.open = files.length <= LIST_MAX;
  const items = element("ul");
  for (const [at, { path, insertions, deletions }] of all.entries()) {
    const item = element("li");
    const to = element("button", path, { type: "button", class: "plain" });
    to.addEventListener("click", () => {
      files[at].open = true;
      files[at].firstElementChild.focus();
      files[at].scrollIntoView({ block: "start" });
    });
    item.append(to, " ", counts(insertions, deletions));
    items.append(item);
  }
  list.append(element("summary", "Files"), items);
  return list;
}

function counts(insertions, deletions) {
  if (insertions === 0 && deletions === 0) return "";
  const node = element("span", undefined, { class: "counts" });
  if (insertions === null) node.append("no text");
  else
    node.append(
      element("span", `+${insertions}`, { class: "plus" }),
      " ",
      element("span", `−${deletions}`, { class: "minus" }),
    );
  return node;
}

function fileOf(file, block) {
  const box = element("details", undefined, { class: "file" });
  const head = element("summary");
  head.append(element("span", file.path, { class: "path" }));
  for (const note of file.notes) head.append(" ", element("span", note, { class: "soft" }));
  head.append(" ", counts(file.insertions, file.deletions));
  box.append(head);
  box.open = file.hunks.length > 0 || file.pictures !== null;
  if (file.why !== "" && file.pictures === null) {
    const words = element("p", `${file.why} `);
    if (file.to !== null) words.append(link(file.to));
    box.append(words);
  }
  if (file.pictures !== null) box.append(picturesOf(file, block.id));
  if (file.hunks.length > 0) box.append(linesOf(file, block));
  return box;
}

function picturesOf({ path, pictures }, task) {
  const box = element("div", undefined, { class: "pictures" });
  for (const [at, id] of pictures.entries()) {
    if (id === "") continue;
    const name = at === 0 ? "before" : "after";
    const figure = element("figure");
    const picture = element("img", undefined, { alt: `${path}, ${name}` });
    figure.append(element("figcaption", name), picture);
    box.append(figure);
    void load(picture, `/api/picture?${new URLSearchParams({ task, id })}`).catch(() => {
      picture.replaceWith(element("p", "it is too large, or no picture"));
    });
  }
  return box;
}

/** An address in `src` would be asked for without our key. */
async function load(picture, path) {
  const answer = await fetch(path, { headers: headers() });
  if (!answer.ok) throw new Error(path);
  const url = URL.createObjectURL(await answer.blob());
  picture.addEventListener("load", () => URL.revokeObjectURL(url), { once: true });
  picture.src = url;
}

function linesOf(file, { id, commit, can_comment: canComment }) {
  const table = element("table", undefined, { "aria-label": file.path });
  const columns = element("colgroup");
  for (const name of ["number", "number", "plus-minus", "code"])
    columns.append(element("col", undefined, { class: name }));
  table.append(columns);
  for (const hunk of file.hunks) {
    const body = element("tbody");
    const head = element("tr", undefined, { class: "hunk" });
    const first = hunk.new === 0 ? hunk.old : hunk.new;
    head.append(element("td", `line ${first}  ${hunk.near}`, { colspan: "4" }));
    body.append(head);
    let [old, now] = [hunk.old, hunk.new];
    let isFirst = true;
    for (const [is, text, marks = []] of hunk.lines) {
      const isOld = is === "-";
      const line = isOld ? old : now;
      const row = rowOf(is, text, marks, [is === "+" ? "" : old, isOld ? "" : now]);
      body.append(row);
      if (is === "\\") continue;
      if (is !== "+") old++;
      if (!isOld) now++;
      if (!canComment) continue;
      const place = { commit, path: file.path, line, isOld, quote: text };
      addButton(row, place, id, isFirst);
      isFirst = false;
      const said = draftOf(id).comments.find((one) => isAt(one, place));
      if (said !== undefined) body.append(commentRow(said, row, id));
    }
    table.append(body);
  }
  table.addEventListener("keydown", moveByArrows);
  return table;
}

function isAt(one, { commit, path, line, isOld }) {
  return one.commit === commit && one.path === path && one.line === line && one.isOld === isOld;
}

function rowOf(is, text, marks, numbers) {
  const row = element("tr", undefined, { class: KINDS[is] });
  for (const number of numbers) row.append(element("td", String(is === "\\" ? "" : number)));
  row.append(element("td", is === "\\" ? "" : is));
  const code = element("td");
  let at = 0;
  for (const [from, to] of marks) {
    code.append(text.slice(at, from), element("mark", text.slice(from, to)));
    at = to;
  }
  code.append(text.slice(at));
  row.append(code);
  return row;
}

/** The number of a line becomes a button. Tab stops at the first one of each hunk, and arrows lead to the others. */
function addButton(row, place, id, isFirst) {
  const { line, isOld } = place;
  const name = `comment on ${isOld ? "old line" : "line"} ${line}`;
  const node = element("button", String(line), { type: "button", "aria-label": name });
  node.tabIndex = isFirst ? 0 : -1;
  row.children[isOld ? 0 : 1].replaceChildren(node);
  node.addEventListener("click", () => {
    const next = row.nextElementSibling;
    if (next?.className !== "say") {
      const said = { ...place, text: "" };
      draftOf(id).comments.push(said);
      row.after(commentRow(said, row, id));
    }
    row.nextElementSibling.querySelector("textarea").focus();
  });
}

function commentRow(said, row, id) {
  const box = element("tr", undefined, { class: "say" });
  const holder = element("td", undefined, { colspan: "4" });
  const label = element("label", `Comment on ${nameOf(said)}, for the agent`);
  const field = element("textarea", undefined, { rows: "2", maxlength: "2000" });
  field.value = said.text;
  field.addEventListener("input", () => {
    said.text = field.value;
    save(id);
  });
  const drop = element("button", "Drop", { type: "button" });
  drop.addEventListener("click", () => {
    const draft = draftOf(id);
    draft.comments = draft.comments.filter((one) => one !== said);
    box.remove();
    save(id);
    row.querySelector("button").focus();
  });
  field.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    if (field.value.trim() === "") drop.click();
    else row.querySelector("button").focus();
  });
  label.append(field);
  holder.append(label, drop);
  box.append(holder);
  return box;
}

function nameOf({ path, line, isOld }) {
  return `${path}:${line}${isOld ? " (a line that is gone)" : ""}`;
}

function moveByArrows(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined || event.target.localName !== "button") return;
  const all = [...event.currentTarget.querySelectorAll("td > button")];
  const next = all[all.indexOf(event.target) + step];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
}

/** A form that sends the work back, with the words of a person and all comments. */
export function reject({ id, act }) {
  const form = element("form", undefined, { class: "reject" });
  const label = element("label", act.field);
  const field = element("textarea", undefined, { rows: "3", maxlength: "8000" });
  const node = element("button", undefined, { "data-verb": act.verb });
  const more = element("p", undefined, { role: "status" });
  const draft = draftOf(id);
  const said = () => draft.comments.filter(({ text }) => text.trim() !== "");
  const show = () => {
    if (!form.isConnected) document.removeEventListener(CHANGED, show);
    const count = said().length;
    const counted = `${count} comment${count === 1 ? "" : "s"}`;
    node.textContent = count === 0 ? act.text : `Reject with ${counted}…`;
    more.textContent = count === 0 ? "" : said().map(nameOf).join(", ");
  };
  field.value = draft.words;
  field.addEventListener("input", () => {
    draft.words = field.value;
    save(id);
  });
  label.append(field);
  form.append(label, node, more);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const words = textOf(field.value, said());
    if (words === "") return field.focus();
    void perform(act, words, node).then((isDone) => {
      if (!isDone) return;
      Object.assign(draft, { words: "", comments: [] });
      field.value = "";
      for (const row of document.querySelectorAll(".diff .say")) row.remove();
      save(id);
    });
  });
  show();
  document.addEventListener(CHANGED, show);
  return form;
}

/** As an agent reads it: the words, then each line with what is said about it. */
function textOf(words, comments) {
  const parts = comments.map((said) => {
    const at = `${nameOf(said)}, at commit ${said.commit.slice(0, 12)}:`;
    return `${at}\n> ${said.quote}\n${said.text.trim()}`;
  });
  return [words.trim(), ...parts].filter((part) => part !== "").join("\n\n");
}
