import { takeSingle } from '../../runtime/node/state.ts';

/**
 * Runs `work` while no other process does so in `folder`; the lock of a process that was killed is free.
 *
 * @param waits called while another process holds the lock
 */
export async function exclusively(
  folder: string,
  work: () => unknown,
  waits: () => void = () => undefined,
): Promise<void> {
  for (;;) {
    const taken = await takeSingle(folder);
    if ('held' in taken) {
      try {
        await work();
        return;
      } finally {
        taken.release();
      }
    }
    waits();
    await taken.busy;
  }
}
