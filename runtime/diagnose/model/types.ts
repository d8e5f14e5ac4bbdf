/** What checks find, and how an explanation of a pull reads. Of a credential it has the registry's key and the user name, no password. */

import type { AuthSource } from '../../core/docker-config/pull-secret.ts';
import type { ImageReference } from '../../core/image-reference.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import type { MirrorRule } from '../../core/mirrors/resolve.ts';
import { counted, type TextPosition } from '../../core/text.ts';
import type { PolicyDocument } from '../../registry-overrides/machine-config/render.ts';
import type { MirrorFix } from '../../registry-overrides/mirror-sets/fix.ts';
import type { PullCause } from './pull-failure.ts';

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

/** Findings of one cause. */
export interface Cause {
  /** That of its findings. */
  readonly check: string;
  readonly system: ReportSystemName;
  readonly verdict: ReportVerdict;
  /** In our words. */
  readonly title: string;
  /** What it is about, in the words of others: a host, a Secret, a profile, a node. */
  readonly about?: string;
  readonly clusters: readonly string[];
  /** That fail for it; none where it is not about pods. */
  readonly pods: number;
  readonly cases: readonly FoundIn[];
}

/** A finding of one of several clusters. */
export interface FoundIn extends Finding {
  readonly cluster: string;
  /** Pods that the subject stands for. @default {none: it is not about pods} */
  readonly pods?: number;
  /** The pull that shows it. */
  readonly pull?: string | undefined;
}

/** `unknown`: nothing has shown that it is in order. */
export type Severity = 'error' | 'warning' | 'unknown' | 'info' | 'ok';

/** What a check found: the same object in the JSON of every command. */
export interface Finding {
  /** The check: stable, for programs. */
  readonly check: string;
  readonly severity: Severity;
  /** The object: `Pod/web/shop-1`; empty where it is the cluster or the file as a whole. */
  readonly subject: string;
  readonly message: string;
  /** What keeps mirrors from being tried. */
  readonly code?: MirrorFix['code'];
  /** The system that it concerns, where a check serves several. */
  readonly system?: ReportSystemName;
  /** What it is about, by which findings of one cause are grouped: a host, a Secret, a profile, a node. */
  readonly about?: string | undefined;
  /** What to do, in one sentence. */
  readonly advice?: string | undefined;
  /** To be applied with `kubectl apply --server-side --field-manager=pullwright-fix`. */
  readonly fix?: readonly KubeObject[] | undefined;
  /** To be run, as it is. */
  readonly commands?: readonly string[];
  /** Of a failing pull: why, as far as the kubelet says it. */
  readonly cause?: PullCause;
  /** The registry, token service or proxy that refused or was not reached. */
  readonly host?: string | undefined;
  /** The pull sources in the order in which they were tried, as far as the kubelet says it. */
  readonly sources?: readonly { readonly source: string; readonly cause: PullCause }[] | undefined;
  /** What the kubelet said. */
  readonly evidence?: string | undefined;
  /** Of what a file says: the file, the place in its text, and the field of the object. */
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
  readonly path?: string;
}

// Input and output of an explanation.

/** What is known about the pull of an image. */
export interface ExplainInput {
  /** In the order of the pod. */
  readonly secrets: readonly ListedSecret[];
  /** The node's file, which the kubelet and CRI-O both read. */
  readonly node?: AuthSource | undefined;
  /** Of a file that was merged. */
  readonly merge?:
    | {
        /** Key in the file to the Secret that it came from. */
        readonly origins: ReadonlyMap<string, string>;
        /** On the entries of the additional secret. */
        readonly verdicts: readonly EntryStatus[];
        /** Name of the additional secret. */
        readonly additional: string;
      }
    | undefined;
  readonly mirrors: readonly MirrorRule[];
  /** Which images nodes may pull at all. @default {all} */
  readonly policy?: PolicyDocument | undefined;
  /** Versions of the node that pulls. @default {they are not known} */
  readonly versions?: NodeVersions;
  /** Whether the nodes are those of a hosted cluster, which have no mirror sets of their own. @default {false} */
  readonly hosted?: boolean;
  readonly image: ImageReference;
  /** As the pod names it; a name without a registry means something else to CRI-O than to everybody else. */
  readonly written?: string | undefined;
  readonly pullFile?: PullFile | undefined;
  /**
   * Entries for other registries, and more than a few for this one, are only counted: a thousand pods may each list a thousand of them.
   *
   * @default {false}
   */
  readonly brief?: boolean | undefined;
  /** Time of the pull. @default {expiry is not checked} */
  readonly now?: Date;
}

export interface ExplainedPlace {
  readonly reference: string;
  readonly kind: 'mirror' | 'source';
  /** The object and field that names the place. */
  readonly from?: string;
  readonly crio: Sent;
}

export interface KubeletView {
  /** One unreadable Secret fails the pod for every image. */
  readonly blockedBy?: { readonly source: string; readonly why: string };
  readonly tried: readonly ExplainedCredential[];
  readonly unused: readonly UnusedEntry[];
  /** Entries that are omitted from `unused`. @default {none} */
  readonly others?: number;
  /** Whether an attempt without credential is made. */
  readonly anonymous: boolean;
}

/** A Secret that the pod lists, found or not. */
export interface ListedSecret {
  readonly name: string;
  /** Who lists it: `Pod/web/shop`, `ServiceAccount/web/default`. */
  readonly listedBy: string;
  /**
   * `ignored`: of another type, or without data. `encrypted`: by SOPS. `pending`: an object of the input creates it. `unknown`: not all could be read, so it may be there or not.
   */
  readonly state: 'found' | 'missing' | 'ignored' | 'encrypted' | 'pending' | 'unknown';
  /** For `found`. */
  readonly source?: AuthSource;
  /** For `ignored`, and for `missing` where another namespace has it. */
  readonly why?: string;
  /** For `ignored`: the key of its data that holds a docker config, and the type and key that it needs. */
  readonly retype?: { readonly from: string; readonly type: string; readonly key: string };
}

/** The file that the credential provider writes for one pull; CRI-O reads it in place of the node's. */
export interface PullFile {
  readonly source: AuthSource;
  /** Key in the file to the Secret of the namespace that it came from. */
  readonly origins: ReadonlyMap<string, string>;
}

/** A credential that the kubelet tries. */
export interface ExplainedCredential extends EntryPlace {
  readonly username: string;
  readonly by: 'match' | 'hub';
  /** Neither user nor password: it is tried all the same. */
  readonly empty: boolean;
  /** Why a registry will refuse it, as far as the entry itself says so. */
  readonly doubt?: string;
}

/** An entry that is not used for the image. */
export interface UnusedEntry extends EntryPlace {
  readonly why: string;
  /** About the same registry: worth showing first. */
  readonly near: boolean;
}

/** What is sent to one place. */
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
  | { readonly what: 'nothing'; readonly why: string }
  | { readonly what: 'failure'; readonly why: string };

/** An entry, by where it stands. No password, ever. */
export interface EntryPlace {
  readonly source: string;
  readonly key: string;
  /** For an entry of a merged file, the Secret that it came from. */
  readonly origin?: string;
  /** In the decoded document. */
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
  /** Of the pod's node; undefined: not known. */
  readonly runtime?: NodeVersions['runtime'];
  readonly kubelet: KubeletView;
  /** In the order in which CRI-O tries them. */
  readonly places: readonly ExplainedPlace[];
  readonly skipped: readonly SkippedPlace[];
  readonly containerd: Sent;
  readonly verification: string;
  /** What is wrong where no mirror is tried although there are some. */
  readonly mirrorFix?: MirrorFix;
  readonly findings: readonly Finding[];
}

// The order of verdicts by severity, and their descriptions.

/** A cause in one line. */
export function causeText({ title, about }: Pick<Cause, 'title' | 'about'>): string {
  return about === undefined ? title : `${title}: ${about}`;
}

const WORST_FIRST: readonly ReportVerdict[] = ['broken', 'attention', 'unknown', 'ok'];

/**
 * Orders verdicts, the worst first.
 */
export function byVerdict(a: ReportVerdict, b: ReportVerdict): number {
  return WORST_FIRST.indexOf(a) - WORST_FIRST.indexOf(b);
}

/**
 * The worst; `otherwise` where there is none.
 */
export function worstOf(verdicts: Iterable<ReportVerdict>, otherwise: ReportVerdict): ReportVerdict {
  let worst: ReportVerdict | undefined;
  for (const verdict of verdicts) if (worst === undefined || byVerdict(verdict, worst) < 0) worst = verdict;
  return worst ?? otherwise;
}

/** One sentence: how many problems there are, and in how many clusters. */
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
  const unknown = clusters.filter(({ verdict }) => verdict === 'unknown').length;
  return unknown === 0
    ? `Nothing is wrong in ${all}`
    : `No problem is known in ${all}; of ${unknown} nothing has shown that they are in order`;
}

/** What a verdict is called where people read it. */
export const VERDICT_WORDS: Readonly<Record<ReportVerdict, string>> = {
  broken: 'Broken',
  attention: 'Attention',
  unknown: 'Not known',
  ok: 'In order',
};

/** From the Node's status: `1.35.1`; undefined for a runtime other than CRI-O. */
export interface NodeVersions {
  readonly runtime?: 'CRI-O' | 'containerd';
  readonly crio?: string;
  readonly kubelet?: string;
}
