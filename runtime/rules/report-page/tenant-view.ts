/**
 * What the owner of one namespace may see of a cluster's report: a new report, into which only fields on a list are copied. What
 * is not named here is not in it, whatever a report will hold one day; texts are kept only where nothing but the namespace itself
 * can have a part in them.
 */
import type { LinkName } from '../diagnose/doctor-types.ts';
import type {
  EntryOfPull,
  Report,
  ReportCase,
  ReportCause,
  ReportCluster,
  ReportNamespace,
  ReportPlace,
  ReportPull,
} from '../report/types.ts';
import { worstOf } from '../report/verdict.ts';

/** What stands for everything that is not the tenant's own. */
const PLATFORM = 'the platform';

/**
 * The report of one namespace of the cluster that `report` is about.
 *
 * @param report of one cluster; of several, only the first is looked at
 * @example
 * ```ts
 * import { tenantView } from './tenant-view.ts';
 * import assert from 'node:assert/strict';
 *
 * const view = tenantView({ version: 1, madeAt: '2026-01-01T00:00:00Z', source: 'prod', clusters: [], problems: [], unread: [] }, 'shop');
 * assert.equal(view.namespace, 'shop');
 * assert.equal(view.source, 'namespace shop');
 * assert.equal(view.clusters[0]?.verdict, 'ok');
 * ```
 */
export function tenantView(report: Report, namespace: string): Report {
  const [cluster] = report.clusters;
  const name = cluster?.name ?? 'cluster';
  const pulls = (cluster?.pulls ?? []).filter((pull) => pull.namespace === namespace).map(pullOf);
  const own = cluster?.namespaces.find((one) => one.name === namespace);
  const problems = report.problems.flatMap((cause) => causeOf(cause, { name, namespace, pulls }));
  const verdicts = [
    ...problems.map(({ verdict }) => verdict),
    ...pulls.map(({ verdict }) => verdict),
    ...(own === undefined ? [] : [own.verdict]),
  ];
  return {
    version: 1,
    madeAt: report.madeAt,
    namespace,
    source: `namespace ${namespace}`,
    clusters: [clusterOf(cluster, { name, pulls, own, verdict: worstOf(verdicts, 'ok') })],
    problems,
    unread: report.unread.length === 0 ? [] : [`Not all of the cluster could be read: ask ${PLATFORM} why`],
  };
}

interface Own extends Pick<ReportCluster, 'name' | 'pulls' | 'verdict'> {
  readonly own: ReportNamespace | undefined;
}

function clusterOf(cluster: ReportCluster | undefined, { name, pulls, own, verdict }: Own): ReportCluster {
  return {
    name,
    verdict,
    systems: [],
    nodes: { total: 0, eligible: 0, inSync: 0, outOfSync: 0, ineligible: 0, unknown: 0, list: [] },
    // Which of two runtimes the nodes have: how the path of an image is drawn.
    runtimes: cluster?.runtimes ?? [],
    keys: [],
    pulls,
    pullsLeftOut: 0,
    namespaces: own === undefined ? [] : [namespaceOf(own)],
    mirrors: { state: 'unknown', summary: '', rules: [], refusals: [] },
  };
}

function namespaceOf({ name, secrets, grants, pulls, verdict }: ReportNamespace): ReportNamespace {
  return {
    name,
    secrets: secrets.map(({ name: secret, type, keys, fault, copy }) => ({
      name: secret,
      type,
      keys,
      ...(fault === undefined ? {} : { fault }),
      ...(copy === undefined ? {} : { copy: { profile: copy.profile, of: PLATFORM } }),
    })),
    grants: grants.map(({ name: grant, secrets: granted, profiles, to, problems }) => ({
      name: grant,
      secrets: granted,
      profiles,
      to,
      problems,
    })),
    pulls,
    verdict,
  };
}

/** What is sent to each place is known by its kind; entries are told only where the tenant's own Secret holds them. */
function pullOf(pull: ReportPull): ReportPull {
  const { id, namespace, object, pods, image, verdict, secrets, kubelet, places, containerd, skipped } = pull;
  const isOwn = ({ source }: EntryOfPull): boolean => source.startsWith(`Secret/${namespace}/`);
  const entryOf = (entry: EntryOfPull): EntryOfPull =>
    isOwn(entry) ? { key: entry.key, source: entry.source } : { key: hostOf(image), source: PLATFORM };
  return {
    id,
    namespace,
    object,
    pods,
    image,
    verdict,
    secrets: secrets.map(({ name, listedBy, state }) => ({
      name,
      listedBy: isIn(namespace, listedBy) ? listedBy : PLATFORM,
      state,
    })),
    kubelet: {
      ...(kubelet.blocked === undefined ? {} : { blocked: 'a pull secret of the pod cannot be read' }),
      tried: kubelet.tried.map(entryOf),
      lost: kubelet.lost.filter(isOwn).map(({ key, source, why }) => ({ key, source, why })),
      others: 0,
    },
    places: places.map((place) => placeOf(place, entryOf)),
    containerd,
    skipped: skipped.map(({ reference }) => ({ reference, why: `${PLATFORM} does not have it asked` })),
    findings: [],
  };
}

function placeOf(
  { reference, kind, sent, entry }: ReportPlace,
  entryOf: (entry: EntryOfPull) => EntryOfPull,
): ReportPlace {
  const shown = entry === undefined ? {} : { entry: entryOf(entry) };
  // The entry that is sent to a mirror is one for that mirror.
  const named =
    shown.entry?.source === PLATFORM ? { entry: { key: hostOf(reference), source: PLATFORM } } : shown;
  const why = WHY[sent];
  return { reference, kind, sent, ...named, ...(why === undefined ? {} : { why }) };
}

const WHY: Readonly<Partial<Record<ReportPlace['sent'], string>>> = {
  helper: 'a helper of the node is asked',
  nothing: 'there is no credential for it',
  failure: 'it comes to no pull',
};

/** The registry of an image as it is written, or of a place. */
function hostOf(reference: string): string {
  const [first = '', ...rest] = reference.split('/');
  return rest.length > 0 && /[.:]|^localhost$/.test(first) ? first : 'docker.io';
}

/** Whether `Kind/namespace/name` names an object of the namespace. */
function isIn(namespace: string, object: string): boolean {
  const parts = object.split('/');
  return parts.length === 3 && parts[1] === namespace;
}

interface Tenant {
  readonly name: string;
  readonly namespace: string;
  readonly pulls: readonly ReportPull[];
}

/** Of pods, and of objects that report in the namespace. */
const CAUSES = /^(link|status)\//;

function causeOf(cause: ReportCause, tenant: Tenant): readonly ReportCause[] {
  if (!CAUSES.test(cause.cause)) return [];
  const cases = cause.cases
    .filter(({ cluster, object }) => cluster === tenant.name && isIn(tenant.namespace, object))
    .flatMap((one) => caseOf(cause.cause, one, tenant) ?? []);
  if (cases.length === 0) return [];
  const { system, verdict, title } = cause;
  return [{ cause: cause.cause, system, verdict, title, clusters: [tenant.name], cases }];
}

/** What is said of a case: of pods by the link that is broken, of an object that reports in the namespace by itself. */
function caseOf(cause: string, one: ReportCase, { pulls }: Tenant): ReportCase | undefined {
  const { cluster, object, message, advice, fix, pull } = one;
  const link = cause.startsWith('link/') ? (cause.slice('link/'.length) as LinkName) : undefined;
  // What a reconciler reports in a namespace is meant for its owner, who can read the object.
  const said = link === undefined ? OWN : (SAID[link] ?? OTHER);
  const shown = pulls.find(({ id }) => id === pull);
  const base = { cluster, object, ...(shown === undefined ? {} : { pull: shown.id }) };
  if (said === OWN)
    return {
      ...base,
      message,
      ...(advice === undefined ? {} : { advice }),
      ...(fix === undefined ? {} : { fix }),
    };
  return {
    ...base,
    message: said.message(shown),
    advice: said.advice,
    // It changes the ServiceAccount or the workload, by names of the namespace.
    ...(said.fixes === true && fix !== undefined ? { fix } : {}),
  };
}

/** In place of what `doctor` says, where that may name what is not the tenant's. */
interface Said {
  readonly message: (pull: ReportPull | undefined) => string;
  readonly advice: string;
  readonly fixes?: true;
}

const OWN = 'own';

const OTHER: Said = {
  message: () => 'something of the platform is not in order',
  advice: `Ask ${PLATFORM}`,
};

/** `own`: the text of this link comes from the pod, its ServiceAccount, its Events and Secrets of the namespace alone. */
const SAID: Readonly<Record<LinkName, Said | typeof OWN>> = {
  image: OWN,
  'service-account': OWN,
  registry: OWN,
  distribution: OWN,
  places: {
    message: (pull) => `${imageOf(pull)} may be pulled from nowhere: every place is blocked or refused`,
    advice: `Ask ${PLATFORM} to allow a place for it`,
  },
  injection: {
    message: () => 'the pod does not list a Secret that a profile gives such pods',
    advice: `If it was made before, delete it: the pod that follows gets the Secret. Else ask ${PLATFORM}`,
  },
  'secrets-there': {
    message: (pull) => `${secretsOf(pull, 'missing')} does not exist`,
    advice: 'Create it, or take it out of the list',
    fixes: true,
  },
  'secrets-readable': {
    message: (pull) => `${secretsOf(pull, 'ignored')} cannot be read as a pull secret`,
    advice: 'Create it again as kubernetes.io/dockerconfigjson',
    fixes: true,
  },
  credential: {
    message: (pull) => `no credential that is listed matches ${imageOf(pull)}`,
    advice: 'Add an entry for its registry to a Secret that the pod lists',
    fixes: true,
  },
  'mirror-credential': {
    message: (pull) => `a mirror of ${imageOf(pull)} is asked without a credential`,
    advice: `Ask ${PLATFORM} to let the credential provider serve the image`,
  },
  node: {
    message: () => 'the node of the pod lacks the pull secret that is meant for it',
    advice: `Ask ${PLATFORM}`,
  },
};

function imageOf(pull: ReportPull | undefined): string {
  return pull === undefined ? 'the image' : `"${pull.image}"`;
}

function secretsOf(pull: ReportPull | undefined, state: string): string {
  const names = (pull?.secrets ?? []).filter((one) => one.state === state).map(({ name }) => `"${name}"`);
  return names.length === 0 ? 'a Secret that the pod lists' : `Secret ${names.join(', ')} that the pod lists`;
}
