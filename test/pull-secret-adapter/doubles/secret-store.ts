/** The rules of Secret Manager v1 over secrets in memory: names, labels, etags, masks. Speaks in bodies and refusals; knows nothing of HTTP. */
import { assertEtag, invalid, Refusal } from './refusal.ts';
import {
  addVersion,
  type Body,
  destroyDue,
  listVersions,
  onVersion,
  type StoredSecret,
} from './secret-versions.ts';

/** The parts of a call's address. */
export interface Target {
  readonly project: string;
  /** Empty: the secret is one that Google replicates. */
  readonly location: string;
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

export class SecretStore {
  /** By `projects/<id as it was called>/secrets/<name>`. */
  readonly secrets: Map<string, StoredSecret> = new Map();

  passTime(until: number): void {
    for (const { versions } of this.secrets.values())
      for (const version of versions) destroyDue(version, until);
  }

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
    const key = pathOf(target);
    const full = fullName(target, target.secret);
    const secret = this.secrets.get(key);
    if (secret === undefined)
      throw new Refusal('NOT_FOUND', `Secret [${pathOf({ ...target, project: '123' })}] not found.`);
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

  #create(target: Target, body: Body): unknown {
    const name = target.query.get('secretId') ?? '';
    if (!/^[A-Za-z0-9_-]{1,255}$/.test(name))
      throw invalid(`The provided Secret ID [${name}] does not match the expected format`);
    const key = pathOf({ ...target, secret: name });
    const full = fullName(target, name);
    if (this.secrets.has(key)) throw new Refusal('ALREADY_EXISTS', `Secret [${full}] already exists.`);
    assertFields(body);
    assertKeeping(target.location, body);
    const labels = mapOf(body['labels']);
    assertLabels(labels);
    const annotations = mapOf(body['annotations']);
    const createTime = new Date().toISOString();
    const kept = target.location === '' ? { replication: body['replication'] } : { replication: undefined };
    const made = this.put(key, { labels, annotations, ...kept, etag: 1, createTime });
    if (body['customerManagedEncryption'] !== undefined) made.key = body['customerManagedEncryption'];
    if (body['versionDestroyTtl'] !== undefined) made.versionDestroyTtl = destroyTtl(body);
    return shown(full, made);
  }
}

/** The name as it was called. */
export function pathOf({
  project,
  location,
  secret,
}: Pick<Target, 'project' | 'location' | 'secret'>): string {
  return `projects/${project}${location === '' ? '' : `/locations/${location}`}/secrets/${secret}`;
}

function fullName({ location }: Target, secret: string): string {
  return pathOf({ project: PROJECT_NUMBER, location, secret });
}

/** Replication is for secrets without a location, and a key has to be where the content is. */
function assertKeeping(location: string, body: Body): void {
  const { replication } = body as { readonly replication?: Replicated };
  if (location !== '') {
    if (replication !== undefined) throw invalid('replication cannot be set for a regional secret');
    assertKey(body['customerManagedEncryption'], location);
    return;
  }
  if (replication === undefined) throw invalid('replication is missing');
  if (body['customerManagedEncryption'] !== undefined)
    throw invalid('customerManagedEncryption is for regional secrets');
  assertKey(replication.automatic?.customerManagedEncryption, 'global');
  for (const replica of replication.userManaged?.replicas ?? [])
    assertKey(replica.customerManagedEncryption, replica.location);
}

interface Replicated {
  readonly automatic?: { readonly customerManagedEncryption?: unknown };
  readonly userManaged?: {
    readonly replicas: readonly { readonly location: string; readonly customerManagedEncryption?: unknown }[];
  };
}

function assertKey(encryption: unknown, location: string): void {
  if (encryption === undefined || encryption === null) return;
  const { kmsKeyName = '' } = encryption as { readonly kmsKeyName?: string };
  const found = /^projects\/[^/]+\/locations\/([^/]+)\/keyRings\/[^/]+\/cryptoKeys\/[^/]+$/.exec(kmsKeyName);
  if (found === null) throw invalid(`The KMS key name [${kmsKeyName}] does not match the expected format`);
  if (found[1] !== location)
    throw invalid(`The KMS key [${kmsKeyName}] must be in the location [${location}]`);
}

/** 24 hours to 1000 days. */
function destroyTtl(body: Body): string {
  const text = String(body['versionDestroyTtl']);
  const seconds = Number(/^(\d+)s$/.exec(text)?.[1] ?? Number.NaN);
  if (!(seconds >= 86_400 && seconds <= 86_400_000)) throw invalid(`Invalid version_destroy_ttl ${text}`);
  return text;
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

function shown(name: string, secret: StoredSecret): unknown {
  const {
    labels,
    annotations,
    replication,
    etag,
    versionAliases,
    createTime = '2026-01-01T00:00:00Z',
  } = secret;
  const rest = {
    ...(replication === undefined ? {} : { replication }),
    ...(secret.key === undefined ? {} : { customerManagedEncryption: secret.key }),
    ...(secret.versionDestroyTtl === undefined ? {} : { versionDestroyTtl: secret.versionDestroyTtl }),
    ...(versionAliases === undefined ? {} : { versionAliases }),
  };
  return { name, labels, annotations, ...rest, etag: `"${etag}"`, createTime };
}

function update(name: string, secret: StoredSecret, mask: string, body: Body): unknown {
  assertFields(body);
  assertEtag(secret.etag, body['etag']);
  for (const field of mask.split(',')) {
    if (field === 'versionDestroyTtl' || field === 'version_destroy_ttl') {
      if (body['versionDestroyTtl'] === undefined) delete secret.versionDestroyTtl;
      else secret.versionDestroyTtl = destroyTtl(body);
      continue;
    }
    if (field !== 'labels' && field !== 'annotations') throw invalid(`The field ${field} cannot be updated.`);
    if (field === 'labels') assertLabels(mapOf(body['labels']));
    secret[field] = mapOf(body[field]);
  }
  // The etag changes even if the update changes nothing.
  secret.etag += 1;
  return shown(name, secret);
}
