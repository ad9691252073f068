/** Reads lines from a person or a pipe, one at a time. A terminal has line history and completion. */
import { createInterface, type Interface } from "node:readline";

export interface LineOptions {
  /** True for line editing; needs a terminal. */
  isEditing: boolean;
  /** Shown before each line; "" for a pipe. */
  prompt: string;
  /** Returns the completions of the word before the cursor, and that word. */
  complete: (line: string) => [words: string[], word: string];
  /** Called on Ctrl-C if no text is typed, also while a command runs. */
  onInterrupt: () => void;
}

/** Input is paused while this many lines wait. */
const AHEAD_MAX = 256;

export class Lines {
  private readonly readline: Interface;
  private readonly prompt: string;
  private readonly queue: string[] = [];
  private isClosed = false;
  private isAnswer = false;
  private wake: (() => void) | undefined;

  constructor({ isEditing, prompt, complete, onInterrupt }: LineOptions) {
    this.prompt = prompt;
    this.readline = createInterface({
      input: process.stdin,
      output: isEditing || prompt !== "" ? process.stdout : undefined,
      terminal: isEditing,
      historySize: 500,
      removeHistoryDuplicates: true,
      completer: complete,
    });
    // Node treats a Tab as text when it arrives together with other keys, for example from a fast typist: "/re" Tab Tab showed no
    // list. No command contains a tab, so completion is always on.
    Object.defineProperty(this.readline, "isCompletionEnabled", { get: () => true, set: () => {} });
    // The history is kept in memory only, because free text may contain a secret. Answers to a question are left out: they are
    // not commands to repeat.
    this.readline.on("history", (history) => {
      if (this.isAnswer) history.shift();
    });
    this.readline.on("line", (line) => {
      this.queue.push(line);
      if (this.queue.length >= AHEAD_MAX) this.readline.pause();
      this.wake?.();
    });
    this.readline.on("close", () => {
      this.isClosed = true;
      this.wake?.();
    });
    this.readline.on("SIGINT", () => {
      // As in a shell, Ctrl-C first deletes the typed text.
      if (this.readline.line === "") {
        onInterrupt();
        if (this.wake !== undefined) this.readline.prompt();
      } else {
        this.readline.write(null, { ctrl: true, name: "e" });
        this.readline.write(null, { ctrl: true, name: "u" });
      }
    });
  }

  /** The next line; undefined at the end of input. */
  async next(prompt = this.prompt): Promise<string | undefined> {
    this.isAnswer = prompt !== this.prompt;
    if (this.queue.length === 0 && !this.isClosed && prompt !== "") {
      this.readline.setPrompt(prompt);
      this.readline.prompt();
    }
    while (this.queue.length === 0 && !this.isClosed) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
        this.readline.resume();
      });
      this.wake = undefined;
    }
    return this.queue.shift();
  }

  close(): void {
    this.readline.close();
  }
}
