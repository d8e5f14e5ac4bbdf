/** Every subcommand: its summary, and how to import it. Nothing is imported before it is chosen. */
import type { Command } from './command.ts';

export interface TableEntry {
  readonly summary: string;
  load(): Promise<Command>;
}

export const COMMANDS: Readonly<Record<string, TableEntry>> = {
  provider: {
    summary: 'Give CRI-O the pull credentials of a namespace (kubelet plugin)',
    load: async () => (await import('./provider.ts')).command,
  },
};
