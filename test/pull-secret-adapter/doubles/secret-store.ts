/**
 * The rules of Secret Manager v1 over secrets in memory: names, etags, masks, versions and their states, `latest` and aliases,
 * checksums, paging. Speaks in bodies and refusals; knows nothing of HTTP.
 */
import { crc32c } from '../../../runtime/pull-secret-adapter/crc32c.ts';
import { Refusal } from './refusal.ts';

export type VersionState = 'ENABLED' | 'DISABLED' | 'DESTROYED';

export interface StoredVersion {
  state: VersionState;
  data: Buffer;
  etag?: number;
  createTime?: string;
  destroyTime?: string;
  /** The writer sent a checksum. */
  checksum?: boolean;
}

export interface StoredSecret {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  versionAliases?: Record<string, string>;
  replication: unknown;
  etag: number;
  createTime?: string;
  versions: StoredVersion[];
}

type Body = Readonly<Record<string, unknown>>;

/** The parts of a call's address. */
export interface Target {
  readonly project: string;
  readonly secret: string;
  readonly version: string;
  readonly query: URLSearchParams;
}

export const PROJECT_NUMBER = '123456';
const SECRET_FIELDS = [
  'name',
  'replication',
  'labels',
  'topics',
  'expireTime',
  'ttl',
  'etag',
  'rotation',
  'versionAliases',
  'annotations',
  'versionDestroyTtl',
  'customerManagedEncryption',
  'tags',
];
const MAX_BYTES = 65_536;
const DEFAULT_PAGE = 25_000;

export class SecretStore {
  /** By `projects/<id as it was called>/secrets/<name>`. */
  readonly secrets: Map<string, StoredSecret> = new Map();

  put(path: string, secret: Partial<StoredSecret> = {}): StoredSecret {
    const stored = {
      labels: {},
      annotations: {},
      replication: { automatic: {} },
      etag: 161,
      versions: [],
      ...secret,
    };
    this.secrets.set(path, stored);
    return stored;
  }

  /** @throws Refusal */
  answer(rpc: string, target: Target, body: Body): unknown {
    if (rpc === 'CreateSecret') return this.#create(target, body);
    if (rpc === 'ListSecrets') return this.#list(target);
    const key = `projects/${target.project}/secrets/${target.secret}`;
    const full = fullName(target.secret);
    const secret = this.secrets.get(key);
    if (secret === undefined)
      throw new Refusal('NOT_FOUND', `Secret [projects/123/secrets/${target.secret}] not found.`);
    switch (rpc) {
      case 'GetSecret':
        return shown(full, secret);
      case 'UpdateSecret':
        return update(full, secret, target.query.get('updateMask') ?? '', body);
      case 'DeleteSecret':
        assertEtag(secret.etag, target.query.get('etag') ?? undefined);
        this.secrets.delete(key);
        return {};
      case 'AddSecretVersion':
        return addVersion(full, secret, body);
      case 'ListSecretVersions':
        return listVersions(full, secret, target.query);
      default:
        return onVersion(rpc, { full, secret, wanted: target.version }, body);
    }
  }

  #create({ project, query }: Target, body: Body): unknown {
    const name = query.get('secretId') ?? '';
    if (!/^[A-Za-z0-9_-]{1,255}$/.test(name))
      throw invalid(`The provided Secret ID [${name}] does not match the expected format`);
    const key = `projects/${project}/secrets/${name}`;
    if (this.secrets.has(key))
      throw new Refusal('ALREADY_EXISTS', `Secret [${fullName(name)}] already exists.`);
    assertFields(body);
    if (body['replication'] === undefined) throw invalid('replication is missing');
    const labels = mapOf(body['labels']);
    assertLabels(labels);
    const annotations = mapOf(body['annotations']);
    const createTime = new Date().toISOString();
    return shown(
      fullName(name),
      this.put(key, { labels, annotations, replication: body['replication'], etag: 1, createTime }),
    );
  }

  #list({ project, query }: Target): unknown {
    const all = [...this.secrets]
      .filter(([key]) => key.startsWith(`projects/${project}/secrets/`))
      .toReversed();
    const { page, nextPageToken } = paged(all, query);
    const secrets = page.map(([key, secret]) => shown(fullName(key.slice(key.lastIndexOf('/') + 1)), secret));
    return { secrets, totalSize: all.length, ...nextPageToken };
  }
}

function invalid(message: string): Refusal {
  return new Refusal('INVALID_ARGUMENT', message);
}

function fullName(secret: string): string {
  return `projects/${PROJECT_NUMBER}/secrets/${secret}`;
}

function mapOf(value: unknown): Record<string, string> {
  return { ...(value as Record<string, string> | undefined) };
}

/** The transcoder in front of the service refuses what it does not know. */
function assertFields(body: Body): void {
  const unknown = Object.keys(body).find((key) => !SECRET_FIELDS.includes(key));
  if (unknown !== undefined) {
    throw invalid(`Invalid JSON payload received. Unknown name "${unknown}" at 'secret': Cannot find field.`);
  }
}

function assertLabels(labels: Readonly<Record<string, string>>): void {
  if (Object.keys(labels).length > 64) throw invalid('No more than 64 labels are allowed.');
  for (const [key, value] of Object.entries(labels)) {
    if (!/^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$/u.test(key)) throw invalid(`Invalid label key ${key}`);
    if (!/^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$/u.test(value)) throw invalid(`Invalid label value ${value}`);
  }
}

function assertEtag(present: number, etag: unknown): void {
  if (etag !== undefined && etag !== '' && etag !== `"${present}"`) {
    throw new Refusal(
      'FAILED_PRECONDITION',
      'The etag provided does not match the current etag of the resource.',
    );
  }
}

function shown(name: string, secret: StoredSecret): unknown {
  const {
    labels,
    annotations,
    replication,
    etag,
    versionAliases,
    createTime = '2026-01-01T00:00:00Z',
  } = secret;
  const aliases = versionAliases === undefined ? {} : { versionAliases };
  return { name, labels, annotations, replication, ...aliases, etag: `"${etag}"`, createTime };
}

function update(name: string, secret: StoredSecret, mask: string, body: Body): unknown {
  assertFields(body);
  assertEtag(secret.etag, body['etag']);
  for (const field of mask.split(',')) {
    if (
      field !== 'labels' &&
      field !== 'annotations' &&
      field !== 'versionAliases' &&
      field !== 'version_aliases'
    ) {
      throw invalid(`The field ${field} cannot be updated.`);
    }
    if (field === 'labels') assertLabels(mapOf(body['labels']));
    secret[field === 'version_aliases' ? 'versionAliases' : field] = mapOf(
      body[field === 'version_aliases' ? 'versionAliases' : field],
    );
  }
  // Also when nothing has changed.
  secret.etag += 1;
  return shown(name, secret);
}

function addVersion(name: string, secret: StoredSecret, body: Body): unknown {
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
    state,
    replicationStatus: { automatic: {} },
    etag: `"${etag}"`,
    ...(checksum ? { clientSpecifiedPayloadChecksum: true } : {}),
  };
}

/** Newest first. */
function listVersions(name: string, secret: StoredSecret, query: URLSearchParams): unknown {
  const filter = query.get('filter') ?? '';
  const state = /^state[:=](ENABLED|DISABLED|DESTROYED)$/.exec(filter)?.[1];
  if (filter !== '' && state === undefined) throw invalid(`Invalid filter ${filter}`);
  const all = secret.versions
    .map((version, index) => shownVersion(`${name}/versions/${index + 1}`, version))
    .filter((version) => state === undefined || version['state'] === state)
    .toReversed();
  const { page, nextPageToken } = paged(all, query);
  return { versions: page, totalSize: state === undefined ? all.length : 0, ...nextPageToken };
}

function paged<T>(
  all: readonly T[],
  query: URLSearchParams,
): { page: readonly T[]; nextPageToken: { nextPageToken?: string } } {
  const size = Number(query.get('pageSize') ?? 0) || DEFAULT_PAGE;
  const token = query.get('pageToken') ?? '';
  if (!/^(p\d+)?$/.test(token)) throw invalid('The page token is not valid.');
  const from = token === '' ? 0 : Number(token.slice(1));
  const end = from + size;
  return { page: all.slice(from, end), nextPageToken: end < all.length ? { nextPageToken: `p${end}` } : {} };
}

interface OneVersion {
  readonly full: string;
  readonly secret: StoredSecret;
  /** A number, `latest` (the one made last, whatever its state), or an alias. */
  readonly wanted: string;
}

function onVersion(rpc: string, { full, secret, wanted }: OneVersion, body: Body): unknown {
  const number =
    wanted === 'latest' ? secret.versions.length : Number(secret.versionAliases?.[wanted] ?? wanted);
  const version = secret.versions[number - 1];
  const name = `${full}/versions/${number}`;
  if (version === undefined) {
    throw new Refusal(
      'NOT_FOUND',
      `Secret Version [${full}/versions/${wanted}] not found or has no versions.`,
    );
  }
  if (rpc === 'GetSecretVersion') return shownVersion(name, version);
  if (rpc === 'AccessSecretVersion') return accessed(name, version);
  assertEtag(version.etag ?? 1, body['etag']);
  assertNot(version, name, ['DESTROYED']);
  const states: Readonly<Record<string, VersionState>> = {
    DisableSecretVersion: 'DISABLED',
    EnableSecretVersion: 'ENABLED',
    DestroySecretVersion: 'DESTROYED',
  };
  const state = states[rpc];
  if (state === undefined) throw new Refusal('UNIMPLEMENTED', rpc);
  version.state = state;
  version.etag = (version.etag ?? 1) + 1;
  if (state === 'DESTROYED') {
    version.destroyTime = new Date().toISOString();
    version.data = Buffer.alloc(0);
  }
  return shownVersion(name, version);
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
