/** Types of findings and pull explanations. Of a credential they contain the registry key and the user name, no password. */

import type { FileFinding } from '../../cli/findings.ts';
import type { AuthSource } from '../../core/docker-config/pull-secret.ts';
import type { ImageReference } from '../../core/image-reference.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import type { Candidate, MirrorRule } from '../../core/mirrors/resolve.ts';
import { counted, type TextPosition } from '../../core/text.ts';
import type { PolicyDocument } from '../../registry-overrides/machine-config/render.ts';
import type { MirrorFix } from '../../registry-overrides/mirror-sets/fix.ts';
import type { PullCause } from './pull-failure.ts';

/** `broken`: pods lack images or nodes lack credentials. `unknown`: no evidence that all is well. */
export type ReportVerdict = 'broken' | 'attention' | 'unknown' | 'ok';

/** The systems, and `pulls` for the image pulls of pods. */
export const REPORT_SYSTEMS = [
  'pulls',
  'global-pull-secret',
  'pull-secret-injection',
  'registry-overrides',
  'credential-provider',
  'pull-secret-adapter',
] as const;

export type ReportSystemName = (typeof REPORT_SYSTEMS)[number];

/** Findings with the same cause. */
export interface Cause {
  /** Check ID of the findings. */
  readonly check: string;
  readonly system: ReportSystemName;
  readonly verdict: ReportVerdict;
  /** Description without names of objects. */
  readonly title: string;
  /** The affected host, Secret, profile or node. */
  readonly about?: string;
  readonly clusters: readonly string[];
  /** Number of pods that fail for this cause; 0 if it does not affect pods. */
  readonly pods: number;
  readonly cases: readonly FoundIn[];
}

/** A finding with its cluster. */
export interface FoundIn extends Finding {
  readonly cluster: string;
  /** Number of pods grouped under this finding. @default {none: the finding is not about pods} */
  readonly pods?: number;
  /** ID of the affected {@link ReportPull}. */
  readonly pull?: string | undefined;
}

/** `unknown`: no evidence that all is well. */
export type Severity = 'error' | 'warning' | 'unknown' | 'info' | 'ok';

/** Result of a check, with the same JSON in every command. */
export interface Finding extends FileFinding {
  readonly severity: Severity;
  /** Why no mirror is tried. */
  readonly code?: MirrorFix['code'];
  /** The affected system, if a check serves several. */
  readonly system?: ReportSystemName;
  /** The affected host, Secret, profile or node, by which findings are grouped. */
  readonly about?: string | undefined;
  /** What to do, in one sentence. */
  readonly advice?: string | undefined;
  /** Objects to apply with `kubectl apply --server-side --field-manager=pullwright-fix`. */
  readonly fix?: readonly KubeObject[] | undefined;
  /** Complete commands to run. */
  readonly commands?: readonly string[];
  /** Cause of a failing pull, if the kubelet reports one. */
  readonly cause?: PullCause;
  /** The registry, token service or proxy that denied access or was unreachable. */
  readonly host?: string | undefined;
  /** Pull sources in the order tried, as far as the kubelet reports them. */
  readonly sources?: readonly { readonly source: string; readonly cause: PullCause }[] | undefined;
  /** The kubelet's message. */
  readonly evidence?: string | undefined;
}

// Input and output of an explanation.

/** Facts about the pull of an image. */
export interface ExplainInput {
  /** In the order of the pod's imagePullSecrets. */
  readonly secrets: readonly ListedSecret[];
  /** The node's file, which the kubelet and CRI-O both read. */
  readonly node?: AuthSource | undefined;
  /** Result of the reconciler's merge, if `node` is a merged file. */
  readonly merge?:
    | {
        /** Key in the file to its source Secret. */
        readonly origins: ReadonlyMap<string, string>;
        /** Verdicts on the entries of the additional secret. */
        readonly verdicts: readonly EntryStatus[];
        /** Name of the additional secret. */
        readonly additional: string;
      }
    | undefined;
  readonly mirrors: readonly MirrorRule[];
  /** Images that the nodes' policy admits. @default {all} */
  readonly policy?: PolicyDocument | undefined;
  /** Versions of the pulling node. @default {unknown} */
  readonly versions?: NodeVersions;
  /** True for nodes of a hosted cluster, whose mirror sets come from the HostedCluster. @default {false} */
  readonly hosted?: boolean;
  readonly image: ImageReference;
  /** Registries that CRI-O searches for a short name. @default {those of the node, which are not known} */
  readonly search?: readonly string[] | undefined;
  /** The image as written in the pod. CRI-O resolves a short name differently from the kubelet and containerd. */
  readonly written?: string | undefined;
  readonly pullFile?: PullFile | undefined;
  /**
   * Only count entries for other registries, and all but a few for this one: a thousand pods may each list a thousand entries.
   *
   * @default {false}
   */
  readonly brief?: boolean | undefined;
  /** Time of the pull. @default {expiry is not checked} */
  readonly now?: Date;
}

export interface ExplainedPlace extends Pick<Candidate, 'reference' | 'kind'> {
  /** The object and field that names the pull source. */
  readonly from?: string;
  readonly crio: Sent;
}

export interface KubeletView {
  /** One unreadable Secret fails the pod for every image. */
  readonly blockedBy?: { readonly source: string; readonly why: string };
  readonly tried: readonly ExplainedCredential[];
  readonly unused: readonly UnusedEntry[];
  /** Number of entries omitted from `unused`. @default {none} */
  readonly others?: number;
  /** True if the kubelet pulls without a credential. */
  readonly anonymous: boolean;
  /** If no readable credential matches: why a listed Secret may still have one. */
  readonly unknown?: string;
}

/** A Secret in the pod's imagePullSecrets, found or not. */
export interface ListedSecret {
  readonly name: string;
  /** The object that lists it: `Pod/web/shop`, `ServiceAccount/web/default`. */
  readonly listedBy: string;
  /**
   * `ignored`: unsupported type or no data. `encrypted`: by SOPS. `pending`: created by an object of the input. `unknown`: some
   * objects are unreadable, so it may exist.
   */
  readonly state: 'found' | 'missing' | 'ignored' | 'encrypted' | 'pending' | 'unknown';
  /** For `found`. */
  readonly source?: AuthSource;
  /** For `ignored` and `pending`, and for `missing` if another namespace has it. */
  readonly why?: string;
  /** For `ignored`: the object that writes the Secret, such as `ExternalSecret/robot`. */
  readonly maker?: string;
  /** For `ignored`: the data key with a docker config, and the required type and key. */
  readonly retype?: { readonly from: string; readonly type: string; readonly key: string };
}

/** The auth file that the credential provider writes for one pull. CRI-O reads it instead of the node's file. */
export interface PullFile {
  readonly source: AuthSource;
  /** Key in the file to its source Secret in the namespace. */
  readonly origins: ReadonlyMap<string, string>;
}

/** A credential that the kubelet tries. */
export interface ExplainedCredential extends EntryPlace {
  readonly username: string;
  readonly by: 'match' | 'hub';
  /** True without user name and password: the kubelet tries the entry anyway. */
  readonly empty: boolean;
  /** Why a registry will reject it, if the entry itself shows that. */
  readonly doubt?: string;
}

/** An entry that is not used for the image. */
export interface UnusedEntry extends EntryPlace {
  readonly why: string;
  /** True for an entry of the same registry, which is shown first. */
  readonly near: boolean;
}

/** Credential sent to a pull source. */
export type Sent =
  /** The kubelet's credentials, one after the other. */
  | { readonly what: 'kubelet' }
  | {
      readonly what: 'entry';
      readonly entry: EntryPlace;
      readonly username: string;
      readonly rivals: readonly string[];
    }
  | { readonly what: 'helper'; readonly source: string; readonly helper: string }
  | { readonly what: 'nothing' | 'failure'; readonly why: string }
  | { readonly what: 'unknown'; readonly why: string };

/** Location of an entry. Never contains a password. */
export interface EntryPlace {
  readonly source: string;
  readonly key: string;
  /** For an entry of a merged file, its source Secret. */
  readonly origin?: string;
  /** Position in the decoded document. */
  readonly position: TextPosition;
}

export interface SkippedPlace extends Omit<ExplainedPlace, 'crio'> {
  readonly why: string;
}

export interface Explanation {
  readonly image: string;
  readonly repository: string;
  readonly secrets: readonly Omit<ListedSecret, 'source'>[];
  readonly node?: string;
  /** Runtime of the pod's node; undefined if unknown. */
  readonly runtime?: NodeVersions['runtime'];
  readonly kubelet: KubeletView;
  /** In the order in which CRI-O tries them. */
  readonly places: readonly ExplainedPlace[];
  readonly skipped: readonly SkippedPlace[];
  readonly containerd: Sent;
  readonly verification: string;
  /** Set if the image has mirrors, but none is tried. */
  readonly mirrorFix?: MirrorFix;
  readonly findings: readonly Finding[];
}

// The order of verdicts by severity, and their descriptions.

/** Formats a cause as one line. */
export function causeText({ title, about }: Pick<Cause, 'title' | 'about'>): string {
  return about === undefined ? title : `${title}: ${about}`;
}

/** Compares verdicts, to sort the worst first. */
export function byVerdict(a: ReportVerdict, b: ReportVerdict): number {
  return REPORT_VERDICTS.indexOf(a) - REPORT_VERDICTS.indexOf(b);
}

/** Returns the worst verdict, or `otherwise` if there is none. */
export function worstOf(verdicts: Iterable<ReportVerdict>, otherwise: ReportVerdict): ReportVerdict {
  return [...verdicts].toSorted(byVerdict)[0] ?? otherwise;
}

/** Returns one sentence with the number of problems and of affected clusters. */
export function headline({
  problems,
  clusters,
}: {
  readonly problems: readonly { readonly clusters: readonly string[]; readonly cases: readonly unknown[] }[];
  readonly clusters: readonly { readonly verdict: ReportVerdict }[];
}): string {
  const count = problems.reduce((sum, { cases }) => sum + cases.length, 0);
  const where = new Set(problems.flatMap((problem) => problem.clusters)).size;
  const all = counted(clusters.length, 'cluster');
  if (count > 0) return `${counted(count, 'problem')} in ${where} of ${all}`;
  const unsure = clusters.filter(({ verdict }) => verdict !== 'ok').length;
  return unsure === 0
    ? `Nothing is wrong in ${all}`
    : `No problem found in ${all}, but ${unsure} not confirmed healthy`;
}

/** Always shown with the color, for readers who cannot see it. */
export const VERDICT_SIGNS = { broken: '✕', attention: '!', unknown: '?', ok: '✓' } as const;

/** Display names of verdicts, the worst first. */
export const VERDICT_WORDS: Readonly<Record<ReportVerdict, string>> = {
  broken: 'Broken',
  attention: 'Attention',
  unknown: 'Unknown',
  ok: 'Healthy',
};

/** The verdicts, the worst first. */
export const REPORT_VERDICTS = Object.keys(VERDICT_WORDS) as readonly ReportVerdict[];

/** Versions in the Node's status, such as `1.35.1`; `crio` is undefined for other runtimes. */
export interface NodeVersions {
  readonly runtime?: 'CRI-O' | 'containerd';
  readonly crio?: string;
  readonly kubelet?: string;
}
