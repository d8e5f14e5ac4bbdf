/** Keeps what registries said about images on this node, and asks again as long as that is not good. */
import type { Clock } from '../../host/clock.ts';
import type { ImageProbe } from '../../rules/rollout/image-probe.ts';

export interface ImageProberOptions {
  readonly ask: (images: readonly string[]) => Promise<ImageProbe>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Told when there is an outcome. */
  readonly changed: () => void;
}

/** A credential that a registry learns of late is seen after this long. */
const AGAIN_MS = 30_000;

export class ImageProber {
  readonly #options: ImageProberOptions;
  #about = '';
  #outcome: ImageProbe | undefined;
  #asking = false;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ImageProberOptions) {
    this.#options = options;
  }

  /** What is known of these images with the content of this digest; begins to ask where that is not enough. */
  outcome(digest: string, images: readonly string[]): ImageProbe | undefined {
    const about = [digest, ...images].join(' ');
    if (about !== this.#about) {
      this.#about = about;
      this.#outcome = undefined;
      this.#askedAt = Number.NEGATIVE_INFINITY;
    }
    const now = this.#options.clock.monotonic();
    if (!this.#asking && this.#outcome?.state !== 'Passed' && now - this.#askedAt >= AGAIN_MS) {
      this.#askedAt = now;
      void this.#ask(about, images);
    }
    return this.#outcome;
  }

  async #ask(about: string, images: readonly string[]): Promise<void> {
    this.#asking = true;
    const outcome = await this.#options.ask(images);
    this.#asking = false;
    // An answer about content that is no longer there says nothing about the one that is.
    if (about === this.#about) this.#outcome = outcome;
    this.#options.changed();
  }
}
