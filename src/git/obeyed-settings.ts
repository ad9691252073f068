/** Which settings of a repository our git obeys, and the file in which it finds them. Pure. */

/** A setting as `git config --list` names it. Null: it stands without a value, which means true. */
export type Setting = readonly [name: string, value: string | null];

/** The sections that our calls need. Others, such as `alias`, `pager` and `hook`, only name programs, or are for commands that we never call. */
const NEEDED =
  /^(?:author|committer|core|credential|diff|extensions|filter|http|i18n|lfs|merge|remote|url|user)\./;
/** Settings of these sections that our git never obeys: they start programs that no call of ours needs, or lead to other places. */
const NEVER =
  /^(?:core\.(?:alternaterefscommand|askpass|editor|fsmonitor|gitproxy|hookspath|pager|worktree)|diff\.external|diff\..+\.(?:command|textconv)|extensions\.worktreeconfig)$/;
/** Settings that name a program which git needs for files, or to fetch missing objects. */
const PROGRAM =
  /^(?:core\.sshcommand|credential\.(?:.+\.)?helper|filter\..+|merge\..+\.driver|remote\..+\.(?:proxy|receivepack|uploadpack|vcs)|lfs\.customtransfer\..+|lfs\.extension\..+)$/;
/** What git and other tools write about a branch, a remote or a submodule. A merge option may name a program of its own. */
const HARMLESS =
  /^(?:branch\..+\.(?!mergeoptions$)[^.]+|remote\..+\.gh-resolved|submodule\..+\.(?:url|active)|user\.\w+)$/;

/** A change of it says nothing, and it is obeyed at once. */
export function isHarmless(name: string): boolean {
  return HARMLESS.test(name);
}

/** The values that `git config --list -z` prints. */
export function parseSettings(entries: readonly string[]): Setting[] {
  return entries.map((entry) => {
    const lineEnd = entry.indexOf("\n");
    return lineEnd === -1 ? [entry, null] : [entry.slice(0, lineEnd), entry.slice(lineEnd + 1)];
  });
}

/** @param withPrograms false: also without filters and all else that names a program */
export function obeyed(settings: readonly Setting[], withPrograms: boolean): Setting[] {
  return settings.filter(
    ([name]) => NEEDED.test(name) && !NEVER.test(name) && (withPrograms || !PROGRAM.test(name)),
  );
}

/** The text of a file from which git reads exactly these settings. */
export function settingsText(settings: readonly Setting[]): string {
  return settings
    .map(([name, value]) => {
      const [first, last] = [name.indexOf("."), name.lastIndexOf(".")];
      const section = name.slice(0, first);
      const part =
        first === last ? "" : ` "${name.slice(first + 1, last).replace(/["\\]/g, "\\$&")}"`;
      const key = name.slice(last + 1);
      return `[${section}${part}]\n\t${key}${value === null ? "" : ` = ${quoted(value)}`}\n`;
    })
    .join("");
}

function quoted(value: string): string {
  return `"${value.replace(/["\\]/g, "\\$&").replace(/\n/g, "\\n")}"`;
}
