/** Messages between the page and its worker. */

/** A file, by its path as the person gave it. */
export interface HeldFile {
  readonly path: string;
  readonly text: string;
}

/** A command line to run. */
export interface Question {
  readonly id: number;
  readonly args: readonly string[];
  /** Takes the place of all files before. */
  readonly files?: readonly HeldFile[];
  /** Whether the output has colours, as on a terminal. */
  readonly colours: boolean;
  readonly columns?: number;
  /** A file that the command writes, to be given back. */
  readonly read?: string;
}

/** Output of the program. */
export interface Answer {
  readonly id: number;
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly file?: string;
}
