/** What is wrong in files, for the tools of a pull request. */

/** One thing that is wrong in a file. */
export interface FileFinding {
  readonly severity: 'error' | 'warning';
  /** CamelCase, stable. */
  readonly code: string;
  /** As it was named on the command line. */
  readonly file: string;
  readonly line?: number;
  readonly column?: number;
  /** The object and the place in it; empty where the file itself is meant. */
  readonly subject: string;
  readonly message: string;
}

/** What stands before the words of a finding, if anything. */
export function findingText({ subject, message }: Pick<FileFinding, 'subject' | 'message'>): string {
  return subject === '' ? message : `${subject}: ${message}`;
}
