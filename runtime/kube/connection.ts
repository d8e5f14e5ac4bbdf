/** How to reach one API server: where it is, whom to trust, and who we are. */
import type { AddressPolicy } from '../http/addresses.ts';
import type { Redacted } from '../rules/redacted.ts';

/** Who we are, for one request. */
export interface Credentials {
  readonly token?: Redacted<string>;
  /** PEM of the client certificate and its key. */
  readonly certificate?: string;
  readonly key?: Redacted<string>;
}

/** One API server. TLS is always verified; there is no switch. */
export interface Connection {
  /** `https://host[:port][/path]` */
  readonly server: string;
  /** PEM of the CAs to trust; absent: those of the system. */
  readonly ca?: string;
  /** Name to verify instead of the host of `server`. */
  readonly serverName?: string;
  /** Where the server may be, when somebody else chose it. @default anywhere */
  readonly addresses?: AddressPolicy;
  /** `http://[user:password@]host:port` to go through. */
  readonly proxy?: Redacted<string>;
  /** Read again from where they come; `refused` after a 401, so that what is cached is not given again. */
  readonly credentials: (refused: boolean) => Promise<Credentials>;
}
