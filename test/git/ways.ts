/**
 * Each way in which git starts a program that the settings of a repository name. `hostileSettings` makes a file with all of them; each
 * program writes the name of its way into one file.
 */

/** The settings; `PROGRAM` stands for the program, called with the name of the way. */
const WAYS: Readonly<Record<string, string>> = {
  "alias.add": "!PROGRAM",
  "alias.status": "!PROGRAM",
  "browser.b.cmd": "PROGRAM",
  "browser.b.path": "PROGRAM",
  "core.alternateRefsCommand": "PROGRAM",
  "core.askPass": "PROGRAM",
  "core.editor": "PROGRAM",
  "core.fsmonitor": "PROGRAM",
  "core.gitProxy": "PROGRAM",
  "core.hooksPath": "HOOKS",
  "core.pager": "PROGRAM",
  "core.sshCommand": "PROGRAM",
  "credential.helper": "!PROGRAM",
  "credential.u.helper": "!PROGRAM",
  "diff.e.command": "PROGRAM",
  "diff.e.textconv": "PROGRAM",
  "diff.external": "PROGRAM",
  "difftool.t.cmd": "PROGRAM",
  "difftool.t.path": "PROGRAM",
  "filter.e.clean": "PROGRAM",
  "filter.e.smudge": "PROGRAM",
  "filter.p.process": "PROGRAM",
  "gc.recentObjectsHook": "PROGRAM",
  "gpg.openpgp.program": "PROGRAM",
  "gpg.program": "PROGRAM",
  "gpg.ssh.defaultKeyCommand": "PROGRAM",
  "guitool.g.cmd": "PROGRAM",
  "hook.h.command": "PROGRAM",
  "instaweb.browser": "PROGRAM",
  "interactive.diffFilter": "PROGRAM",
  "man.m.cmd": "PROGRAM",
  "man.m.path": "PROGRAM",
  "merge.e.driver": "PROGRAM %O %A %B",
  "mergetool.t.cmd": "PROGRAM",
  "mergetool.t.path": "PROGRAM",
  "pager.config": "PROGRAM",
  "pager.diff": "PROGRAM",
  "pager.log": "PROGRAM",
  "pager.show": "PROGRAM",
  "pager.status": "PROGRAM",
  "receive.procReceiveRefs": "refs",
  "remote.origin.receivepack": "PROGRAM",
  "remote.origin.uploadpack": "PROGRAM",
  "remote.origin.url": "ext::PROGRAM",
  "remote.origin.vcs": "ext",
  "sendemail.ccCmd": "PROGRAM",
  "sendemail.headerCmd": "PROGRAM",
  "sendemail.i.ccCmd": "PROGRAM",
  "sendemail.smtpServer": "PROGRAM",
  "sendemail.tocmd": "PROGRAM",
  "sequence.editor": "PROGRAM",
  "submodule.sub.update": "!PROGRAM",
  "tar.t.command": "PROGRAM",
  "trailer.t.cmd": "PROGRAM",
  "trailer.t.command": "PROGRAM",
  "uploadpack.packObjectsHook": "PROGRAM",
  "web.browser": "b",
};

/** Settings that make git use the programs above. */
const SWITCHES: readonly (readonly [string, string])[] = [
  ["extensions.worktreeConfig", "true"],
  ["commit.gpgSign", "true"],
  ["log.showSignature", "true"],
  ["merge.verifySignatures", "true"],
  ["protocol.ext.allow", "always"],
  ["remote.origin.promisor", "true"],
  ["remote.origin.partialclonefilter", "blob:none"],
  ["filter.e.required", "false"],
  ["hook.h.event", "post-checkout"],
  ["diff.ignoreSubmodules", "none"],
  ["rebase.updateRefs", "true"],
];

export const HOOKS = [
  "applypatch-msg",
  "commit-msg",
  "fsmonitor-watchman",
  "post-applypatch",
  "post-checkout",
  "post-commit",
  "post-index-change",
  "post-merge",
  "post-rewrite",
  "pre-applypatch",
  "pre-auto-gc",
  "pre-commit",
  "pre-merge-commit",
  "pre-rebase",
  "prepare-commit-msg",
  "reference-transaction",
];

/** A setting sounds like a program if the last part of its name has one of these words. */
const SOUNDS =
  /askpass|browser|clean|cmd|command|driver|editor|external|filter|fsmonitor|helper|hook|pager|^path$|process|program|proxy|receive(?:pack|refs)|server$|smudge|textconv|tool|^update$|upload|vcs|^\*$/i;
/** Those that sound so and are none: switches, numbers, texts, and names of entries of the table. */
const NO_PROGRAMS: ReadonlySet<string> = new Set(
  `advice.ignoredHook advice.waitingForEditor bundle.* bundle.<id>.* clone.filterSubmodules color.pager column.clean
  commit.cleanup commitGraph.maxNewFilters completion.commands core.fsmonitorHookVersion
  diff.<driver>.cachetextconv diff.guitool diff.tool feature.* gc.repackFilter gc.repackFilterTo gitcvs.dbDriver
  help.browser http.<url>.* http.proxy http.proxyAuthMethod http.proxySSLCAInfo http.proxySSLCert
  http.proxySSLCertPasswordProtected http.proxySSLKey include.path includeIf.<condition>.path merge.guitool
  merge.tool notes.rewrite.<command> rebase.abbreviateCommands remote.<name>.partialclonefilter
  remote.<name>.proxy remote.<name>.proxyAuthMethod uploadpack.allowFilter`.split(/\s+/),
);

/** Settings that this git knows as programs, and that the table lacks. @param names what `git help --config` prints */
export function missingWays(names: readonly string[]): string[] {
  const known = Object.keys(WAYS).map((name) => name.toLowerCase());
  return names.filter((name) => {
    if (!SOUNDS.test(name.slice(name.lastIndexOf(".") + 1)) || NO_PROGRAMS.has(name)) return false;
    const pattern = name
      .toLowerCase()
      .replace(/[.]/g, "\\.")
      .replace(/<[^>]+>|\*/g, "[^.]+");
    return !known.some((one) => new RegExp(`^${pattern}$`).test(one));
  });
}

/** The text of a file of settings. @param program writes its first argument into the file of what ran */
export function hostileSettings(program: string, place: string, hooks: string): string {
  const entries = Object.entries(WAYS).map(([name, value]) => [
    name,
    value.replace("PROGRAM", `${program} ${place}:${name}`).replace("HOOKS", hooks),
  ]);
  return [...entries, ...SWITCHES]
    .map(([name = "", value]) => {
      const parts = name.split(".");
      const [section, key] = [parts[0], parts.at(-1)];
      const middle = parts.length > 2 ? ` "${parts.slice(1, -1).join(".")}"` : "";
      return `[${section}${middle}]\n\t${key} = "${value}"\n`;
    })
    .join("");
}
