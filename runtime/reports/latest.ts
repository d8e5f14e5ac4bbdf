/** The report as it was made last: made anew at most so often, for all who ask, and kept in the forms in which it is asked for. */
import type { Report } from '../rules/report/types.ts';

export interface LatestOptions {
  /** Makes the report of now. */
  readonly make: () => Promise<Report>;
  /** The report or a part of it as it is sent. */
  readonly render: (report: Report, form: Form, namespace: string | undefined) => string;
  readonly everyMs: number;
  /** Milliseconds that only grow. */
  readonly now: () => number;
}

export type Form = 'html' | 'json';

/** Bytes of rendered forms that are kept, and how many: the rest is rendered for each request. */
const MOST_KEPT_BYTES = 32 * 1024 * 1024;
const MOST_KEPT = 64;
/** After a failure the cluster is left alone for so long. */
const AFTER_FAILURE_MS = 5000;

interface Made {
  readonly at: number;
  readonly report: Promise<Report>;
  readonly rendered: Map<string, Buffer>;
  bytes: number;
  failed: boolean;
}

export class LatestReport {
  readonly #options: LatestOptions;
  #made: Made | undefined;

  constructor(options: LatestOptions) {
    this.#options = options;
  }

  /** @throws what making it throws, to all who wait for it, and for some seconds to all who come */
  async get(form: Form, namespace: string | undefined): Promise<Buffer> {
    const made = this.#current();
    const report = await made.report;
    const id = `${namespace ?? ''} ${form}`;
    const known = made.rendered.get(id);
    if (known !== undefined) return known;
    const bytes = Buffer.from(this.#options.render(report, form, namespace));
    if (made.rendered.size < MOST_KEPT && made.bytes + bytes.length <= MOST_KEPT_BYTES) {
      made.rendered.set(id, bytes);
      made.bytes += bytes.length;
    }
    return bytes;
  }

  #current(): Made {
    const { everyMs, make, now } = this.#options;
    const at = now();
    const last = this.#made;
    if (last !== undefined && at - last.at < (last.failed ? Math.min(everyMs, AFTER_FAILURE_MS) : everyMs))
      return last;
    const made: Made = { at, report: make(), rendered: new Map(), bytes: 0, failed: false };
    made.report.catch(() => {
      made.failed = true;
    });
    this.#made = made;
    return made;
  }
}
