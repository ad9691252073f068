/**
 * The page of a signed link from a message: a few actions without a login. Looking changes nothing; a form does one action, once. It
 * needs no script. What lands is not here: that needs a login.
 */
import { headlineOf } from "../../core/outcome.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { treeIdOf } from "../../host/tree-id.ts";
import { linkKey } from "../../links/link-key.ts";
import { LINK_PATH, newNonce } from "../../links/new-link.ts";
import { readLink, type SignedLink, signLink } from "../../links/signed-link.ts";
import { QuestionStore } from "../../questions/question-store.ts";
import { html } from "../../text/html.ts";
import { lookForTask, readRecord } from "../../view/find-task.ts";
import { textOf } from "../../view/scan.ts";
import { titleOfRecord } from "../../view/task-rows.ts";
import type { Actor } from "./act.ts";
import { UsedLinks } from "./used-links.ts";
import { readWish } from "./verbs.ts";

export interface LinkAnswer {
  status: number;
  body: string;
}

export class LinkPage {
  private readonly used: UsedLinks;
  private readonly questions: QuestionStore;

  /** @param actor undefined when nothing may be changed */
  constructor(
    private readonly tree: StateTree,
    private readonly actor: Actor | undefined,
  ) {
    this.used = new UsedLinks(tree.dir);
    this.questions = new QuestionStore(tree.dir);
  }

  /** @param form the body of a POST; undefined for a look. @throws a system error */
  async answer(path: string, form: string | undefined): Promise<LinkAnswer> {
    const token = path.slice(LINK_PATH.length);
    const tree = treeIdOf(this.tree.dir) ?? "";
    const key = this.tryKey();
    const gone = '<p class="bad">no link can be checked now</p>';
    if (key === undefined) return this.page(503, [gone]);
    const link = readLink(token, { key, tree, nowMs: Date.now() });
    if (typeof link === "string") return this.page(403, [`<p class="bad">${html(link)}</p>`]);
    if (form === undefined) return this.page(200, this.actionsOf(link, token));
    return await this.act(link, new URLSearchParams(form));
  }

  /** A stranger may ask, too, so it does not say why. */
  private tryKey(): string | undefined {
    try {
      return linkKey(this.tree.dir);
    } catch {
      return undefined;
    }
  }

  private async act(link: SignedLink, form: URLSearchParams): Promise<LinkAnswer> {
    const wish = wishOf(form, link);
    const read = wish === undefined ? "there is no such action" : readWish(JSON.stringify(wish));
    if (this.actor === undefined) return this.page(403, ["<p>Nothing can be changed here.</p>"]);
    if (typeof read === "string") return this.page(400, [`<p class="bad">${html(read)}</p>`]);
    const { actor } = this;
    const what = [read.verb, ...(read.ids ?? [])].join(" ");
    // What is left to do goes on with a new link, in this browser only.
    const next = { ...link, nonce: newNonce() };
    const token = signLink(next, linkKey(this.tree.dir));
    try {
      const said = await this.used.once(link.nonce, what, async () => {
        const outcome = await actor.act(read);
        return "said" in outcome ? outcome.said : "done";
      });
      if (said === undefined)
        return this.page(403, ['<p class="bad">this link was used before</p>']);
      const told = `<p role="status">${html(what)}: ${html(said)}</p>`;
      return this.page(200, [told, ...this.actionsOf(next, token)]);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      const told = `<p class="bad" role="status">${html(what)}: ${html(text)}</p>`;
      return this.page(409, [told, ...this.actionsOf(next, token)]);
    }
  }

  private actionsOf({ failed }: SignedLink, token: string): string[] {
    const form = (verb: string, id: string, inner: string): string =>
      `<form method="post" action="${LINK_PATH}${html(token)}"><input type="hidden" name="verb" value="${verb}">` +
      `<input type="hidden" name="id" value="${html(id)}">${inner}</form>`;
    const click = (words: string): string =>
      `<button name="text" value="${words}">${words}</button> `;
    const questions = this.questions.open(Date.now()).map(({ id, question, expects }) => {
      const clicks = expects === "limit" ? form("answer", id, click("yes") + click("no")) : "";
      const label = `answer to ${html(id)}`;
      const field = `<input name="text" aria-label="${label}" required maxlength="16000"> <button>Answer</button>`;
      return `<section><h2>${html(question)}</h2>${clicks}${form("answer", id, field)}</section>`;
    });
    const open = failed.filter((id) => lookForTask(this.tree, id)?.state === "failed");
    const whatOf = (id: string): string => {
      const { title, error } = failedRow(this.tree, id);
      return `<p>${html(title)}</p><p>${html(error)}</p>`;
    };
    const retries = open.map(
      (id) =>
        `<section><h2>${html(id)} has failed</h2>${whatOf(id)}${form("retry", id, "<button>Retry</button>")}</section>`,
    );
    const pause = form("pause", "", "<button>Pause the pool</button>");
    const none = questions.length + retries.length === 0 ? ["<p>Nothing waits for you.</p>"] : [];
    return [...none, ...questions, ...retries, `<section>${pause}</section>`];
  }

  private page(status: number, parts: readonly string[]): LinkAnswer {
    const body = [
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">`,
      `<title>mailchute: needs you</title><link rel="stylesheet" href="/app.css"></head><body><main>`,
      `<h1>Needs you</h1><p>${html(this.tree.dir)}</p>`,
      ...parts,
      "</main></body></html>",
    ];
    return { status, body: body.join("\n") };
  }
}

/** Undefined for what such a link may not do. */
function wishOf(form: URLSearchParams, { failed }: SignedLink): object | undefined {
  const id = form.get("id") ?? "";
  const verb = form.get("verb");
  if (verb === "answer") return { verb, ids: [id], text: form.get("text") ?? "" };
  if (verb === "retry" && failed.includes(id)) return { verb, ids: [id] };
  return verb === "pause" ? { verb } : undefined;
}

function failedRow(tree: StateTree, id: string): { title: string; error: string } {
  const record = readRecord(tree, id);
  return { title: titleOfRecord(record), error: headlineOf(textOf(record?.["error"])) };
}
