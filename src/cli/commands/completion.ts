/** `completion`: a script for bash, zsh or fish, made from the option tables. */
import { type CommandSpec, defineCommand, type OptionSpec } from "../shell/command-spec.ts";
import { EXIT } from "../shell/exit-codes.ts";
import { SHARED_OPTIONS } from "../shell/options.ts";
import { loadCommand, REGISTRY } from "../shell/registry.ts";

export const command = defineCommand({
  usage: "SHELL",
  subcommands: {
    bash: 'eval "$(mailchute completion bash)" in ~/.bashrc',
    zsh: 'eval "$(mailchute completion zsh)" in ~/.zshrc, after compinit',
    fish: "mailchute completion fish > ~/.config/fish/completions/mailchute.fish",
  },
  details: ["Prints text, also with --json."],
  options: {},
  async run(ctx) {
    const verbs = await describeVerbs();
    const scripts: Record<string, (verbs: readonly Verb[]) => string[]> = { bash, zsh, fish };
    for (const line of scripts[ctx.subcommand]?.(verbs) ?? []) ctx.out.line(line);
    return EXIT.ok;
  },
});

interface Verb {
  name: string;
  summary: string;
  /** Second words with their summaries. */
  words: [string, string][];
  options: [string, OptionSpec][];
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

const isPath = (name: string): boolean => ["state", "file", "cwd"].includes(name);

function bash(verbs: readonly Verb[]): string[] {
  const choices = new Map(
    verbs.flatMap((verb) =>
      verb.options.flatMap(([name, spec]) =>
        choicesOf(spec).length > 0 ? [[name, choicesOf(spec)] as const] : [],
      ),
    ),
  );
  return [
    "_mailchute() {",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell's placeholder
    '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" verb="" words="" i',
    '  case "$prev" in',
    '    --state|--file|--cwd) COMPREPLY=($(compgen -f -- "$cur")); return ;;',
    ...[...choices].map(
      ([name, values]) =>
        `    --${name}) COMPREPLY=($(compgen -W "${values.join(" ")}" -- "$cur")); return ;;`,
    ),
    "  esac",
    "  for ((i = 1; i < COMP_CWORD; i++)); do",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell's placeholder
    '    case "${COMP_WORDS[i]}" in --state) ((i++)) ;; -*) ;; *) verb="${COMP_WORDS[i]}"; break ;; esac',
    "  done",
    '  case "$verb" in',
    `    "") words="${verbs.map((verb) => verb.name).join(" ")} --version --help" ;;`,
    ...verbs.map(
      (verb) =>
        `    ${verb.name}) words="${[...verb.words.map(([word]) => word), ...flags(verb)].join(" ")}" ;;`,
    ),
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
    const action = values.length > 0 ? `(${values.join(" ")})` : isPath(name) ? "_files" : "";
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
        ...verb.options.flatMap(([name, spec]) => {
          const short = spec.short === undefined ? "" : ` -s ${spec.short}`;
          const values = choicesOf(spec);
          const takes =
            "value" in spec
              ? values.length > 0
                ? ` -x -a ${quote(values.join(" "))}`
                : isPath(name)
                  ? " -r -F"
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
