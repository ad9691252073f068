/** Takes messages of streams, as many as there is room for, until it is closed. */
import type { Delivery } from "../protocol/ports.ts";
import type { Consumers } from "./consumers.ts";
import type { PullConsumer, StreamMsg } from "./packages.ts";
import { type Consumer, readSubject } from "./streams.ts";
import { AGAIN_MS, REQUEST_MS } from "./times.ts";

/** How long one request for messages waits at the server (ms). */
export const FETCH_MS = 5000;
const LATER_MS = 1000;
/** The digits of the largest safe integer. */
const DIGITS = 16;

/** A message of a stream. */
export interface Received {
  /** The tokens of its subject; the last one is the id of its dispatch. */
  names: readonly string[];
  bytes: Buffer;
  /** See `MachineBroker.renew`. */
  lease: string;
  /** See `Note`. */
  turn: string;
  /** When it was requested. It was not delivered before that (monotonic ms). */
  sinceMs: number;
  delivery: Delivery;
}

export class Intake {
  /** Wakes loops of `consume` that wait for room. */
  private readonly waiting = new Set<() => void>();
  /** Requests for messages that are under way. */
  private readonly asked = new Set<{ stop(): void }>();
  private isClosing = false;

  /** @param onTrouble called for each failed request for messages. The request is repeated */
  constructor(
    private readonly consumers: Pick<Consumers, "birth" | "get" | "forgetBirth">,
    private readonly onTrouble: (error: unknown) => void,
  ) {}

  close(): void {
    this.isClosing = true;
  }

  /** Called when there may be room for jobs again. */
  takeMore(): void {
    for (const go of this.waiting) go();
    this.waiting.clear();
  }

  /** Stops all open requests for messages, so that they are made again. */
  askAnew(): void {
    for (const messages of this.asked) messages.stop();
  }

  private async roomOrPause(): Promise<void> {
    let go = (): void => {};
    const told = new Promise<void>((resolve) => {
      go = resolve;
    });
    this.waiting.add(go);
    await Promise.race([told, pause(AGAIN_MS)]);
    this.waiting.delete(go);
  }

  /** @param tokens number of tokens of the subject before the id. @param room how many more messages may come now */
  async consume(
    consumer: Consumer,
    tokens: number,
    room: () => number,
    take: (received: Received) => void,
  ): Promise<void> {
    let pull: PullConsumer | undefined;
    let pullBorn = "";
    while (!this.isClosing) {
      try {
        const max = room();
        const born = await this.consumers.birth();
        if (max <= 0) {
          await this.roomOrPause();
          continue;
        }
        if (pull === undefined || pullBorn !== born) {
          pull = await this.consumers.get(consumer);
          pullBorn = born;
        }
        const sinceMs = performance.now();
        const messages = await pull.fetch({ max_messages: max, expires: FETCH_MS });
        // The client watches a request by heartbeats of the servers, but not while it is cut off from them. So we have a timer,
        // too.
        const late = setTimeout(() => messages.stop(), FETCH_MS + REQUEST_MS);
        this.asked.add(messages);
        let count = 0;
        try {
          for await (const message of messages) {
            count++;
            take(received(message, tokens, born, sinceMs));
          }
        } finally {
          clearTimeout(late);
          this.asked.delete(messages);
        }
        // The consumer may be silent because the servers have lost it.
        if (count === 0) pull = undefined;
      } catch (error) {
        // The servers are away, or have lost the stream. Then the next pass makes it again.
        pull = undefined;
        this.consumers.forgetBirth();
        if (!this.isClosing) this.onTrouble(error);
        await pause(AGAIN_MS);
      }
    }
  }
}

function received(message: StreamMsg, tokens: number, born: string, sinceMs: number): Received {
  return {
    names: readSubject(message.subject, tokens),
    bytes: Buffer.from(message.data),
    lease: `${born} ${message.reply}`,
    turn: turnOf(born, message),
    sinceMs,
    delivery: {
      done: async () => {
        await message.ackAck({ timeout: REQUEST_MS });
      },
      later: async () => message.nak(LATER_MS),
    },
  };
}

/** A later birth is greater as text, and so are the padded numbers of the message and of its delivery. */
function turnOf(born: string, { info }: StreamMsg): string {
  const padded = (number: number): string => String(number).padStart(DIGITS, "0");
  return [born, padded(info.streamSequence), padded(info.deliveryCount)].join(" ");
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms).unref());
}
