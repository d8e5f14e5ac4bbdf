/** The versions of a secret in Secret Manager v1: their states, `latest` and aliases, checksums, payloads, lists. */
import { crc32c } from '../../../runtime/pull-secret-adapter/job/secret-manager.ts';
import { assertEtag, invalid, Refusal } from './refusal.ts';

export type VersionState = 'ENABLED' | 'DISABLED' | 'DESTROYED';

export interface StoredVersion {
  state: VersionState;
  data: Buffer;
  etag?: number;
  createTime?: string;
  destroyTime?: string;
  scheduledDestroyTime?: string;
  /** The writer sent a checksum. */
  checksum?: boolean;
}

export interface StoredSecret {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  versionAliases?: Record<string, string>;
  /** Undefined of a regional secret. */
  replication: unknown;
  /** `customerManagedEncryption` of a regional secret. */
  key?: unknown;
  versionDestroyTtl?: string;
  etag: number;
  createTime?: string;
  versions: StoredVersion[];
}

/** The JSON of a request. */
export type Body = Readonly<Record<string, unknown>>;

const MAX_BYTES = 65_536;

export function addVersion(name: string, secret: StoredSecret, body: Body): unknown {
  const payload = (body['payload'] ?? {}) as { data?: string; dataCrc32c?: string };
  const data = Buffer.from(payload.data ?? '', 'base64');
  if (data.length === 0) throw invalid('Secret Payload cannot be empty.');
  if (data.length > MAX_BYTES) throw invalid('Secret Payload is too large.');
  const sum = payload.dataCrc32c;
  if (sum !== undefined && sum !== String(crc32c(data))) throw invalid('The checksum does not match.');
  const version: StoredVersion = {
    state: 'ENABLED',
    data,
    etag: 1,
    createTime: new Date().toISOString(),
    checksum: sum !== undefined,
  };
  secret.versions.push(version);
  return shownVersion(`${name}/versions/${secret.versions.length}`, version);
}

function shownVersion(name: string, version: StoredVersion): Readonly<Record<string, unknown>> {
  const { state, etag = 1, createTime = '2026-01-01T00:00:00Z', destroyTime, checksum = false } = version;
  return {
    name,
    createTime,
    ...(destroyTime === undefined ? {} : { destroyTime }),
    ...(version.scheduledDestroyTime === undefined
      ? {}
      : { scheduledDestroyTime: version.scheduledDestroyTime }),
    state,
    replicationStatus: { automatic: {} },
    etag: `"${etag}"`,
    ...(checksum ? { clientSpecifiedPayloadChecksum: true } : {}),
  };
}

/** Newest first. */
export function listVersions(name: string, secret: StoredSecret, query: URLSearchParams): unknown {
  const filter = query.get('filter') ?? '';
  const state = /^state[:=](ENABLED|DISABLED|DESTROYED)$/.exec(filter)?.[1];
  if (filter !== '' && state === undefined) throw invalid(`Invalid filter ${filter}`);
  const all = secret.versions
    .map((version, index) => shownVersion(`${name}/versions/${index + 1}`, version))
    .filter((version) => state === undefined || version['state'] === state)
    .toReversed();
  const token = query.get('pageToken') ?? '';
  if (!/^(p\d+)?$/.test(token)) throw invalid('The page token is not valid.');
  const from = Number(token.slice(1));
  const end = from + (Number(query.get('pageSize') ?? 0) || 25_000);
  return { versions: all.slice(from, end), ...(end < all.length ? { nextPageToken: `p${end}` } : {}) };
}

interface OneVersion {
  readonly full: string;
  readonly secret: StoredSecret;
  /** A number, `latest` (the one made last, whatever its state), or an alias. */
  readonly wanted: string;
}

function numberOf({ versions, versionAliases }: StoredSecret, wanted: string): number {
  return wanted === 'latest' ? versions.length : Number(versionAliases?.[wanted] ?? wanted);
}

export function onVersion(rpc: string, { full, secret, wanted }: OneVersion, body: Body): unknown {
  const number = numberOf(secret, wanted);
  const version = secret.versions[number - 1];
  const name = `${full}/versions/${number}`;
  if (version === undefined) {
    throw new Refusal(
      'NOT_FOUND',
      `Secret Version [${full}/versions/${wanted}] not found or has no versions.`,
    );
  }
  if (rpc === 'AccessSecretVersion') return accessed(name, version);
  assertEtag(version.etag ?? 1, body['etag']);
  assertNot(version, name, ['DESTROYED']);
  version.etag = (version.etag ?? 1) + 1;
  if (rpc === 'DisableSecretVersion') version.state = 'DISABLED';
  else if (rpc !== 'DestroySecretVersion') throw new Refusal('UNIMPLEMENTED', rpc);
  else if (secret.versionDestroyTtl === undefined) destroy(version);
  else schedule(version, secret.versionDestroyTtl);
  return shownVersion(name, version);
}

/** Schedules the destruction of a version, which is unreadable until then. */
function schedule(version: StoredVersion, ttl: string): void {
  version.state = 'DISABLED';
  version.scheduledDestroyTime = new Date(Date.now() + Number.parseInt(ttl, 10) * 1000).toISOString();
}

function destroy(version: StoredVersion): void {
  version.state = 'DESTROYED';
  version.destroyTime = new Date().toISOString();
  version.data = Buffer.alloc(0);
}

/** Destroys the version once the delay has passed, as the service does by itself. */
export function destroyDue(version: StoredVersion, until: number): void {
  const { scheduledDestroyTime: due } = version;
  if (due === undefined || Date.parse(due) > until) return;
  delete version.scheduledDestroyTime;
  destroy(version);
}

function assertNot(version: StoredVersion, name: string, states: readonly VersionState[]): void {
  if (states.includes(version.state)) {
    throw new Refusal('FAILED_PRECONDITION', `Secret Version [${name}] is in ${version.state} state.`);
  }
}

function accessed(name: string, version: StoredVersion): unknown {
  assertNot(version, name, ['DISABLED', 'DESTROYED']);
  return {
    name,
    payload: { data: version.data.toString('base64'), dataCrc32c: String(crc32c(version.data)) },
  };
}
