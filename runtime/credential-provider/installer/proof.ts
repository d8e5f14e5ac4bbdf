/** A state of the node that is not called good before what was installed was tried. */
import type { NodeState } from '../../node/events.ts';
import { describeError } from '../../rules/errors.ts';
import type { TrialFailure } from './trial.ts';

const TRYING: NodeState = {
  ready: false,
  busy: true,
  reason: 'Trying',
  message: 'The kubelet has the file; the executable is being run on the node',
};

/**
 * Stands between the engine, which says what is on the node, and those who are told. `InSync` of the engine becomes that of the
 * node when the trial has succeeded; each further look tries again, in the background.
 */
export class Proof {
  readonly #attempt: () => Promise<TrialFailure | undefined>;
  readonly #publish: (state: NodeState) => void;
  /** What was tried last, and with what result. */
  #tried: { readonly key: string; readonly state: NodeState | undefined } | undefined;
  #running: Promise<void> | undefined;
  #wanted: { readonly key: string; readonly state: NodeState } | undefined;

  constructor(attempt: () => Promise<TrialFailure | undefined>, publish: (state: NodeState) => void) {
    this.#attempt = attempt;
    this.#publish = publish;
  }

  /** `key` names what is installed; undefined: nothing that could be tried. */
  state(state: NodeState, key: string | undefined): void {
    if (!state.ready || key === undefined) {
      this.#wanted = undefined;
      this.#publish(state);
      return;
    }
    this.#wanted = { key, state };
    const known = this.#tried?.key === key ? (this.#tried.state ?? state) : TRYING;
    this.#publish(known);
    this.#running ??= this.#run(key).finally(() => {
      this.#running = undefined;
    });
  }

  /** Resolves when no trial is under way. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async #run(key: string): Promise<void> {
    const failure = await this.#attempt().catch(
      (error: unknown): TrialFailure => ({ reason: 'ProviderNotTried', message: describeError(error) }),
    );
    this.#tried = { key, state: failure && { ready: false, ...failure } };
    const wanted = this.#wanted;
    // What was tried is no longer what is installed: the next look tries that.
    if (wanted?.key === key) this.#publish(this.#tried.state ?? wanted.state);
  }
}
