/** `completion`: a script for bash, zsh or fish, made from the option tables. */
import { openIdReaders } from "../../app/id-readers.ts";
import type { StateTree } from "../../core/state-tree.ts";
import { safe } from "../../text/render.ts";
import { idsIn, processingPlaces } from "../../view/find-task.ts";
import { type CommandSpec, defineCommand, type OptionSpec } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { SHARED_OPTIONS, treeOf } from "../shell/options.ts";
import { loadCommand, REGISTRY } from "../shell/registry.ts";

export const command = defineCommand({
  usage: "SHELL",
  subcommands: {
    bash: 'eval "$(mailchute completion bash)" in ~/.bashrc',
    zsh: 'eval "$(mailchute completion zsh)" in ~/.zshrc, after compinit',
    fish: "mailchute completion fish > ~/.config/fish/completions/mailchute.fish",
    ids: "prints ids of tasks and nodes of the plan, one a line, for these scripts",
  },
  details: ["Prints text, also with --json."],
  options: {},
  async run(ctx) {
    if (ctx.subcommand === "ids") {
      for (const id of await idsFor(treeOf(ctx))) ctx.out.line(safe(id));
      return EXIT.ok;
    }
    const verbs = await describeVerbs();
    const scripts: Record<string, (verbs: readonly Verb[]) => string[]> = { bash, zsh, fish };
    for (const line of scripts[ctx.subcommand]?.(verbs) ?? []) ctx.out.line(line);
    return EXIT.ok;
  },
});

/** How many ids of each kind are offered. */
const IDS_MAX = 1000;

/** Empty without a tree. */
async function idsFor(tree: StateTree): Promise<string[]> {
  const readers = openIdReaders(tree, undefined);
  await readers.refresh();
  const trays = (["inbox", "failed", "outbox"] as const).flatMap((tray) =>
    idsIn(tree, tray, IDS_MAX),
  );
  const running = processingPlaces(tree).map(({ id }) => id);
  return [...new Set([...running.slice(0, IDS_MAX), ...trays, ...readers.ids().slice(0, IDS_MAX)])];
}

interface Verb {
  name: string;
  summary: string;
  /** Second words with their summaries. */
  words: [string, string][];
  options: [string, OptionSpec][];
  /** Whether ids of tasks follow it. */
  takesIds: boolean;
}

async function describeVerbs(): Promise<Verb[]> {
  const verbs: Verb[] = [];
  for (const [name, entry] of Object.entries(REGISTRY)) {
    const spec: CommandSpec = await loadCommand(name);
    const words: [string, string][] =
      name === "help"
        ? Object.entries(REGISTRY).map(([n, e]) => [n, e.summary])
        : Object.entries(spec.subcommands ?? {});
    verbs.push({
      name,
      summary: entry.summary,
      words,
      options: Object.entries({ ...spec.options, ...SHARED_OPTIONS }),
      takesIds: /\bID\b/.test(spec.usage.replaceAll(/--[\w-]+ ID/g, "")),
    });
  }
  return verbs;
}

function flags(verb: Verb): string[] {
  return verb.options.flatMap(([name, spec]) =>
    spec.type === "toggle" ? [`--${name}`, `--no-${name}`] : [`--${name}`],
  );
}

function choicesOf(spec: OptionSpec): readonly string[] {
  return spec.type === "text" ? (spec.choices ?? []) : [];
}

/** Prints ids. */
const IDS = "mailchute completion ids 2>/dev/null";

const isPath = (name: string): boolean => ["state", "file", "cwd"].includes(name);

/** What a value of the option may be, as a bash command that fills COMPREPLY; undefined for a flag. */
function bashValues(name: string, spec: OptionSpec): string | undefined {
  if (spec.type === "flag" || spec.type === "toggle") return undefined;
  const values = choicesOf(spec);
  if (values.length > 0) return `COMPREPLY=($(compgen -W "${values.join(" ")}" -- "$cur"))`;
  if (isPath(name)) return 'COMPREPLY=($(compgen -f -- "$cur"))';
  return spec.value === "ID" ? 'COMPREPLY=($(compgen -W "$(_mailchute_ids)" -- "$cur"))' : NOTHING;
}

/** Not even the names of files. */
const NOTHING = "compopt +o default 2>/dev/null";

function bash(verbs: readonly Verb[]): string[] {
  const cases = verbs.flatMap((verb) =>
    verb.options.flatMap(([name, spec]) => {
      const values = bashValues(name, spec);
      const short = spec.short === undefined ? "" : `|"${verb.name} -${spec.short}"`;
      return values === undefined
        ? []
        : [`    "${verb.name} --${name}"${short}) ${values}; return ;;`];
    }),
  );
  return [
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell's placeholder
    '_mailchute_ids() { mailchute completion ids "${state[@]}" 2>/dev/null; }',
    "_mailchute() {",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell's placeholder
    '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" verb="" word="" words="" i',
    "  local -a state=()",
    "  for ((i = 1; i < COMP_CWORD; i++)); do",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell's placeholder
    '    case "${COMP_WORDS[i]}" in',
    "      --) return ;;",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell's placeholder
    '      --state|-s) if ((i + 1 < COMP_CWORD)); then ((i++)); state=(--state "${COMP_WORDS[i]}"); fi ;;',
    "      -*) ;;",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell's placeholder
    '      *) if [ -z "$verb" ]; then verb="${COMP_WORDS[i]}"; else word="${word:-${COMP_WORDS[i]}}"; fi ;;',
    "    esac",
    "  done",
    '  case "$verb $prev" in',
    '    " --state"|" -s") COMPREPLY=($(compgen -f -- "$cur")); return ;;',
    ...cases,
    "  esac",
    '  case "$verb" in',
    `    "") words="${verbs.map((verb) => verb.name).join(" ")} --version --help" ;;`,
    ...verbs.map((verb) => {
      const first = verb.words.map(([word]) => word).join(" ");
      const own = first === "" ? "" : `[ -n "$word" ] || words="${first} $words"; `;
      const ids = `case "$cur" in -*) ;; *) words="$words $(_mailchute_ids)" ;; esac; `;
      const isLater = first === "" ? "" : '[ -z "$word" ] || ';
      return `    ${verb.name}) words="${flags(verb).join(" ")}"; ${verb.takesIds ? isLater + ids : ""}${own};;`;
    }),
    "  esac",
    '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
    "}",
    "complete -o default -F _mailchute mailchute",
  ];
}

function zsh(verbs: readonly Verb[]): string[] {
  const quote = (text: string): string => text.replaceAll("'", "'\\''").replace(/[[\]:]/g, "\\$&");
  const item = ([word, text]: readonly [string, string]): string => `'${word}:${quote(text)}'`;
  const option = ([name, spec]: [string, OptionSpec]): string[] => {
    const help = quote(spec.help);
    if (spec.type === "flag") return [`'--${name}[${help}]'`];
    if (spec.type === "toggle") return [`'--${name}[${help}]'`, `'--no-${name}[not: ${help}]'`];
    const values = choicesOf(spec);
    const action =
      values.length > 0
        ? `(${values.join(" ")})`
        : isPath(name)
          ? "_files"
          : spec.value === "ID"
            ? `($(${IDS}))`
            : "";
    return [
      `'${spec.type === "text" && spec.many === true ? "*" : ""}--${name}=[${help}]:${quote(spec.value)}:${action}'`,
    ];
  };
  return [
    "#compdef mailchute",
    "_mailchute() {",
    "  local -a words_",
    "  if (( CURRENT == 2 )); then",
    `    words_=(${verbs.map((verb) => item([verb.name, verb.summary])).join(" ")})`,
    "    _describe command words_; return",
    "  fi",
    '  case "$words[2]" in',
    ...verbs.flatMap((verb) => [
      `    ${verb.name})`,
      ...(verb.words.length > 0
        ? [
            `      if (( CURRENT == 3 )); then words_=(${verb.words.map(item).join(" ")}); _describe word words_; fi`,
          ]
        : []),
      `      _arguments ${verb.options.flatMap(option).join(" ")} '*:: :_default' ;;`,
    ]),
    "  esac",
    "}",
    "compdef _mailchute mailchute",
  ];
}

function fish(verbs: readonly Verb[]): string[] {
  const quote = (text: string): string =>
    `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  return [
    "complete -c mailchute -e",
    "complete -c mailchute -n __fish_use_subcommand -l version -d 'print the version'",
    ...verbs.map(
      (verb) =>
        `complete -c mailchute -n __fish_use_subcommand -f -a ${verb.name} -d ${quote(verb.summary)}`,
    ),
    ...verbs.flatMap((verb) => {
      const when = `-n '__fish_seen_subcommand_from ${verb.name}'`;
      return [
        ...verb.words.map(
          ([word, text]) => `complete -c mailchute ${when} -f -a ${word} -d ${quote(text)}`,
        ),
        ...(verb.takesIds ? [`complete -c mailchute ${when} -f -a '(${IDS})'`] : []),
        ...verb.options.flatMap(([name, spec]) => {
          const short = spec.short === undefined ? "" : ` -s ${spec.short}`;
          const values = choicesOf(spec);
          const takes =
            "value" in spec
              ? values.length > 0
                ? ` -x -a ${quote(values.join(" "))}`
                : isPath(name)
                  ? " -r -F"
                  : spec.value === "ID"
                    ? ` -x -a '(${IDS})'`
                    : " -x"
              : "";
          const line = `complete -c mailchute ${when}${short} -l ${name}${takes} -d ${quote(spec.help)}`;
          return spec.type === "toggle"
            ? [line, `complete -c mailchute ${when} -l no-${name} -d ${quote(`not: ${spec.help}`)}`]
            : [line];
        }),
      ];
    }),
  ];
}
