/**
 * What a command may touch, as data. The reference in docs/reference/cli.md is made from it, and Node's `--permission` line is held against it.
 */
export interface Permissions {
  /** Paths or flag names in angle brackets, such as `<--from>`. */
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  /** Hosts spoken to: `none`, or a description. */
  readonly hosts: readonly string[];
  /** API verbs, as `verb resource[/name] (namespace)`. */
  readonly api: readonly string[];
}

/** Touches nothing but its arguments and its output. */
export const NOTHING: Permissions = { reads: [], writes: [], hosts: [], api: [] };
