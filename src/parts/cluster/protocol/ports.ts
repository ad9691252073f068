/**
 * What the two sides of the protocol need: of the state tree in which they work, and of the broker between them. Types only. Calls to
 * the broker may reject, or may have been carried out although they reject; then they are made again later.
 */
import type { Dispatch } from "./dispatch.ts";
import type { End, Job, Result } from "./messages.ts";

/** A message that the broker keeps, and delivers again until it is told that it is done. */
export interface Delivery {
  /** It is not delivered again. */
  done(): Promise<void>;
  /** It is delivered again soon. */
  later(): Promise<void>;
}

export interface OriginBroker {
  /** Resolves when the broker keeps the job. A job that it keeps already stays as it is, and is not delivered twice for that. */
  publishJob(job: Job): Promise<void>;
  hasJob(target: string, id: string): Promise<boolean>;
  /** Asks all machines to say at once what they have of this tree. */
  ask(): Promise<void>;
  /** Whether the broker has a result of it for this tree, which may be with us already. */
  hasResult(id: string): Promise<boolean>;
  /** The broker keeps this job no longer. A machine that has it goes on. */
  dropJob(target: string, id: string): Promise<void>;
  /** Tells a machine that its work on a dispatch is over: settled, cancelled, or not wanted any more. */
  publishOver(machine: string, id: string): Promise<void>;
}

/** `waits`: held for its result. `over`: no result can settle it any more. `unsure`: it may be held again. */
export type Standing = "waits" | "over" | "unsure";

export interface OriginTree {
  /** @param target of its job */
  standing(dispatch: Dispatch, target: string): Standing;
  /**
   * Ends this run as the mailbox protocol does: the task is settled, or waits for its next run. Its first step is a rename of the
   * held name. @returns false when that was gone, and nothing has changed
   */
  settle(dispatch: Dispatch, result: Result): Promise<boolean>;
}

export interface MachineBroker {
  publishResult(result: Result): Promise<void>;
  /**
   * The broker keeps this job no longer, and delivers it to no other machine.
   * @param lease what its delivery said; with one of a broker that has lost its disk since, nothing happens
   */
  finishJob(lease: string): Promise<void>;
  /**
   * Keeps a job from being delivered to another machine for `ack_wait`, by a round trip to the broker.
   * @param lease what the delivery said; one of a broker that has lost its disk since only proves that the broker can be reached
   */
  renew(lease: string): Promise<void>;
}

/**
 * `none`: nothing of it here. `unsettled`: it waits or runs here, or a cancel that was asked for has not been carried out yet: that one
 * must not meet a later run. `settled`: its record is here.
 */
export type Place = "none" | "unsettled" | "settled";

/**
 * What a machine knows of a dispatch beside its mailbox. `taken`: its result is to be told. `left`: the machine was cut off, and its
 * run was stopped because another machine may have it. `over`: the origin wants nothing of it any more.
 */
export interface Note {
  dispatch: Dispatch;
  target: string;
  lease: string;
  state: "taken" | "left" | "over";
}

export interface MachineTree {
  note(id: string): Note | undefined;
  /** Replaces the note as a whole. */
  saveNote(id: string, note: Note): void;
  removeNote(id: string): void;
  placeOf(id: string): Place;
  /** Why this job must not run here; undefined when it may. */
  whyRefused(job: Job): string | undefined;
  /** Submits the task of a job exclusively. Resolves also when it is there already. */
  submit(id: string, job: Job): Promise<void>;
  /** What the record of a settled task says; undefined when it is gone. */
  endOf(id: string): End | undefined;
  /** Asks for the end of an unsettled task, once. It takes effect later, or the task ends by itself first. */
  cancel(id: string): Promise<void>;
  /** Puts a cancelled task back to run again. */
  runAgain(id: string): Promise<void>;
}
