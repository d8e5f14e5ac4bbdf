/**
 * systemd for a task whose file is a drop-in of the unit.
 *
 * The drop-in is the whole state. The file of the kubelet has its digest in its name and is never changed, and nothing uses it
 * or the executable before the drop-in names them, so that putting the drop-in back puts everything back.
 */
import type { ReloadingSystemd, Systemd } from '../../host/systemd.ts';

/** A drop-in counts only when systemd has read it, so units are read again before the unit is looked at or restarted. */
export class FreshUnits implements Systemd {
  readonly #systemd: ReloadingSystemd;
  /** At the start too: a killed run may have written and not come to this. */
  #stale = true;

  constructor(systemd: ReloadingSystemd) {
    this.#systemd = systemd;
  }

  changed(): void {
    this.#stale = true;
  }

  async state(unit: string): ReturnType<Systemd['state']> {
    await this.#fresh();
    return this.#systemd.state(unit);
  }

  async restart(unit: string, signal: AbortSignal): ReturnType<Systemd['restart']> {
    await this.#fresh();
    return this.#systemd.restart(unit, signal);
  }

  resetFailed(unit: string): Promise<void> {
    return this.#systemd.resetFailed(unit);
  }

  async #fresh(): Promise<void> {
    if (!this.#stale) return;
    await this.#systemd.reload();
    this.#stale = false;
  }
}
