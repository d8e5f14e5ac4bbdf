/** Two versions of the program, and what is asked of them. */
export interface Pair {
  /** Paths of executables called `pullwright`. */
  readonly older: string;
  readonly newer: string;
}

export interface Check {
  readonly what: string;
  /** Throws when it does not hold; says what was seen when it does. */
  readonly look: () => Promise<string>;
}

export type Judge = (check: Check) => Promise<void>;
