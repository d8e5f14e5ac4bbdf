/**
 * What a report is made of. There is no place for a value in it: of a credential it has the registry's key, where it stands, and
 * when it ends; no password, no token, no user name.
 */

/** `broken`: pods or nodes go without. `unknown`: nothing has shown that it is in order. */
export type ReportVerdict = 'broken' | 'attention' | 'unknown' | 'ok';

/** The systems, and `pulls`: whether pods get their images. */
export const REPORT_SYSTEMS = [
  'pulls',
  'global-pull-secret',
  'pull-secret-injection',
  'registry-overrides',
  'credential-provider',
  'pull-secret-adapter',
] as const;

export type ReportSystemName = (typeof REPORT_SYSTEMS)[number];

export interface Report {
  /** Of this shape; another number is another shape. */
  readonly version: 1;
  /** RFC 3339. */
  readonly madeAt: string;
  /** The folder or context that was looked at. */
  readonly source: string;
  /** The worst first. */
  readonly clusters: readonly ReportCluster[];
  /** The worst first. */
  readonly problems: readonly ReportCause[];
  /** What could not be read. */
  readonly unread: readonly string[];
  /** Differences to an earlier report; absent when none was given. */
  readonly changes?: ReportChanges;
}

export interface ReportCluster {
  readonly name: string;
  readonly verdict: ReportVerdict;
  /** Of those that are in use. */
  readonly systems: readonly ReportSystem[];
  readonly nodes: ReportNodes;
  /** Container runtimes that its Nodes name, sorted: `containerd`, `cri-o`; empty where none says so. */
  readonly runtimes: readonly string[];
  readonly keys: readonly ReportKey[];
  readonly pulls: readonly ReportPull[];
  /** Pulls in order that are left out, so that the report stays small enough to open. */
  readonly pullsLeftOut: number;
  readonly namespaces: readonly ReportNamespace[];
  readonly mirrors: ReportMirrors;
}

export interface ReportSystem {
  readonly system: ReportSystemName;
  readonly verdict: ReportVerdict;
  /** One sentence. */
  readonly summary: string;
}

export type ReportNodeState = 'in-sync' | 'out-of-sync' | 'ineligible' | 'unknown';

export interface ReportNodes {
  readonly total: number;
  /** Carry the label, whatever they report. */
  readonly eligible: number;
  readonly inSync: number;
  readonly outOfSync: number;
  readonly ineligible: number;
  readonly unknown: number;
  readonly list: readonly { readonly name: string; readonly state: ReportNodeState; readonly why?: string }[];
}

/** An entry of the pull secrets that nodes get. */
export interface ReportKey {
  /** As it is written. */
  readonly key: string;
  /** `Secret/kube-system/additional-pull-secret` */
  readonly source: string;
  readonly state: 'used' | 'last-good' | 'shadowed' | 'rejected';
  /** Of one that is not used: the key and Secret that are used in its place. */
  readonly winner?: { readonly key: string; readonly source: string };
  readonly why?: string;
  /** RFC 3339. */
  readonly expiresAt?: string;
  readonly ends?: 'ended' | 'soon';
  /** Nodes that are known to have it. */
  readonly onNodes: number;
}

/** One image of one workload or pod. */
export interface ReportPull {
  /** Unique in the report: what a permalink names. */
  readonly id: string;
  readonly namespace: string;
  /** `Deployment/shop/web` */
  readonly object: string;
  /** Pods like it, where it stands for several. */
  readonly pods: number;
  readonly image: string;
  readonly verdict: ReportVerdict;
  readonly secrets: readonly { readonly name: string; readonly listedBy: string; readonly state: string }[];
  readonly kubelet: ReportKubelet;
  /** In the order in which CRI-O asks them. */
  readonly places: readonly ReportPlace[];
  /** What containerd sends, to whatever host it asks: it chooses hosts by files of the node that no API server has. */
  readonly containerd: 'kubelet' | 'nothing' | 'failure';
  readonly skipped: readonly { readonly reference: string; readonly from?: string; readonly why: string }[];
  readonly findings: readonly {
    readonly severity: string;
    readonly message: string;
    readonly fix?: string;
  }[];
}

export interface EntryOfPull {
  readonly key: string;
  /** The Secret that it comes from, else the file. */
  readonly source: string;
}

export interface ReportKubelet {
  readonly blocked?: string;
  readonly tried: readonly EntryOfPull[];
  readonly lost: readonly (EntryOfPull & { readonly why: string })[];
  /** Entries for other registries. */
  readonly others: number;
}

export interface ReportPlace {
  readonly reference: string;
  readonly kind: 'mirror' | 'source';
  readonly from?: string;
  /** What is sent: the kubelet's credential, an entry, a helper's answer, nothing; `failure` when it comes to none of it. */
  readonly sent: 'kubelet' | 'entry' | 'helper' | 'nothing' | 'failure';
  readonly entry?: EntryOfPull;
  readonly why?: string;
}

export interface ReportNamespace {
  readonly name: string;
  readonly secrets: readonly ReportSecret[];
  readonly grants: readonly {
    readonly name: string;
    readonly secrets: readonly string[];
    readonly profiles: readonly string[];
    readonly to: readonly string[];
    readonly problems: readonly string[];
  }[];
  /** Images of its workloads. */
  readonly pulls: number;
  readonly verdict: ReportVerdict;
}

export interface ReportSecret {
  readonly name: string;
  readonly type: string;
  readonly keys: readonly string[];
  readonly fault?: string;
  /** Of a copy: the profile that brings it, and the Secrets that it is made of. */
  readonly copy?: { readonly profile: string; readonly of: string };
}

export interface ReportMirrors {
  readonly state: 'rendered' | 'kept' | 'unknown';
  readonly summary: string;
  /** In the order of the file that the operator writes. */
  readonly rules: readonly ReportMirrorRule[];
  readonly refusals: readonly ReportRefusal[];
}

export interface ReportMirrorRule {
  readonly source: string;
  readonly blocked: boolean;
  readonly from: readonly string[];
  readonly mirrors: readonly {
    readonly location: string;
    readonly pullFrom: string;
    readonly from?: string;
  }[];
}

export interface ReportRefusal {
  readonly severity: 'error' | 'warning';
  readonly code: string;
  readonly object: string;
  readonly message: string;
}

/** Problems of one cause. */
export interface ReportCause {
  /** Stable. */
  readonly cause: string;
  readonly system: ReportSystemName;
  readonly verdict: ReportVerdict;
  readonly title: string;
  readonly clusters: readonly string[];
  readonly cases: readonly ReportCase[];
}

export interface ReportCase {
  readonly cluster: string;
  readonly object: string;
  readonly message: string;
  /** What to do, in one sentence. */
  readonly advice?: string;
  /** To be applied with `kubectl apply --server-side`. */
  readonly fix?: string;
  /** The pull that shows it. */
  readonly pull?: string;
}

export interface ReportChanges {
  readonly since: string;
  readonly list: readonly ReportChange[];
}

export interface ReportChange {
  readonly what: 'problem' | 'cluster' | 'verdict' | 'key' | 'nodes' | 'mirrors';
  readonly change: 'new' | 'gone' | 'changed';
  readonly cluster: string;
  readonly subject: string;
  readonly before?: string;
  readonly after?: string;
}
