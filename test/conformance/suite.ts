/** Type of a conformance suite: how it reads a case file, and how our code answers a case. */

/** One case: its name, what is asked, and what the existing system answers. */
export interface ConformanceCase<I = unknown, E = unknown> {
  readonly name: string;
  readonly input: I;
  /** The right answer: `better` or `wanted` if the case is marked as a defect of the peer, else the peer's answer. */
  readonly expected: E;
}

/** A difference that is meant: for which inputs, and why. Goes into `deviations.ts`. */
export interface Deviation<I = unknown> {
  /** Judges by the input, never by the case's name. */
  when(input: I): boolean;
  readonly reason: string;
}

/** A deviation of the inputs of one suite, whose shape is known there. */
export function deviates<I>(reason: string, when: (input: I) => boolean): Deviation<I> {
  return { reason, when };
}

/** A source edit that must make the suite fail: shows that the suite really looks at the rule. */
export interface Mutation {
  readonly file: string;
  readonly replace: string;
  readonly by: string;
}

export interface ConformanceSuite<I = unknown, E = unknown> {
  /**
   * Reads the case file, or one with some rows of it. Throws on a shape it does not know: the driver finds the rows that do so,
   * and the fields of `expected` that have no effect, and counts each such row as failed.
   */
  cases(document: unknown): readonly ConformanceCase<I, E>[];
  /** Our answer, in the shape of `expected`. */
  answer(input: I): E | Promise<E>;
  /** Whether `actual` is acceptable for `expected`; default: deep equality of the whole values. */
  accepts?(actual: E, expected: E, input: I): boolean;
  /** Fields of `expected` that allow more answers instead of naming one, such as an order that upstream leaves open. */
  readonly loosens?: readonly string[];
  /** Fields of `expected` that are compared and counted on a line of their own, and fail no case. */
  readonly loose?: readonly string[];
  readonly mutation: Mutation;
  /** Why the suite cannot run on this machine, for example because a real part cannot be built; undefined when it can. */
  missing?(): string | undefined;
  /** Ends what the answers started. */
  finish?(): Promise<void>;
}

/** Cases of a file whose rows have name, input and answer; `wanted` replaces an answer that is a defect of the peer. */
export function rows<I, E extends object>(document: unknown): readonly ConformanceCase<I, E>[] {
  const { cases } = document as {
    readonly cases: readonly (ConformanceCase<I, E> & { readonly wanted?: E })[];
  };
  return cases.map(({ name, input, expected, wanted = expected }) => {
    const { why: _, ...answer } = wanted as E & { readonly why?: string };
    return { name, input, expected: answer as unknown as E };
  });
}

/** A field of an input that is an object of texts; empty when it is no text. */
export function text(input: unknown, field: string): string {
  const value = (input as Readonly<Record<string, unknown>>)[field];
  return typeof value === 'string' ? value : '';
}
