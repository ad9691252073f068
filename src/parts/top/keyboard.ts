/** Takes keys from the terminal. Raw mode is on only while the screen is ours. */
import type { ScreenUser } from "../../cli/text/live-screen.ts";
import { type Key, KeyReader } from "./keys.ts";

/** After this the terminal marks pasted text, so that we do not read it as keys. */
const PASTE_ON = "\x1b[?2004h";
const PASTE_OFF = "\x1b[?2004l";

type Input = Pick<NodeJS.ReadStream, "setRawMode" | "on" | "off" | "resume" | "pause">;

export class Keyboard implements ScreenUser {
  private readonly reader: KeyReader;

  /** @param onGone called when the terminal is closed, so no more keys come */
  constructor(
    private readonly input: Input,
    private readonly write: (text: string) => void,
    onKey: (key: Key) => void,
    private readonly onGone: () => void,
  ) {
    this.reader = new KeyReader(onKey);
  }

  readonly taken = (): void => {
    this.input.setRawMode(true);
    this.input.on("data", this.feed);
    this.input.on("end", this.onGone);
    this.input.off("error", this.onGone);
    this.input.on("error", this.onGone);
    this.input.resume();
    this.write(PASTE_ON);
  };

  readonly left = (): void => {
    this.write(PASTE_OFF);
    this.input.off("data", this.feed);
    this.input.off("end", this.onGone);
    // The listener for errors stays, because an error may come after the terminal is gone.
    this.input.pause();
    this.reader.close();
    try {
      this.input.setRawMode(false);
    } catch {
      // The terminal is gone, so its mode does not matter.
    }
  };

  private readonly feed = (bytes: Buffer): void => this.reader.feed(bytes);
}
