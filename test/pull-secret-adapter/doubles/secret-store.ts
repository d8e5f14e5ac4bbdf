/** The rules of Secret Manager v1 over secrets in memory: names, labels, etags, masks. Speaks in bodies and refusals; knows nothing of HTTP. */
import { paged } from './page.ts';
import { assertEtag, invalid, Refusal } from './refusal.ts';
import { addVersion, type Body, listVersions, onVersion, type StoredSecret } from './secret-versions.ts';

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
