/** What an explanation is asked with and made of. */
import type { ImageReference } from '../auth-lookup/image-reference.ts';
import type { AuthSource } from '../auth-lookup/kubelet.ts';
import type { KubeObject } from '../kubernetes/object.ts';
import type { Verdict } from '../kubernetes/pull-status.ts';
import type { MirrorRule } from '../mirrors/mirrors.ts';
import type { TextPosition } from '../text/position.ts';

export interface ExplainInput {
  readonly image: ImageReference;
  /** As the pod names it; a name without a registry means something else to CRI-O than to everybody else. */
  readonly written?: string;
  /** In the order of the pod. */
  readonly secrets: readonly ListedSecret[];
  /** The node's file, which the kubelet and CRI-O both read. */
  readonly node?: AuthSource;
  readonly merge?: NodeMerge;
  readonly pullFile?: PullFile;
  readonly mirrors: readonly MirrorRule[];
  /** Whether the nodes are those of a hosted cluster, which have no mirror sets of their own. @default {false} */
  readonly hosted?: boolean;
  /**
   * Entries for other registries are counted alone: for whoever looks at a thousand pods, of which each may list a thousand of them.
   *
   * @default {false}
   */
  readonly brief?: boolean;
  /** When the pull is. @default {no end of a credential is judged} */
  readonly now?: Date;
}

export interface ExplainedPlace {
  readonly reference: string;
  readonly kind: 'mirror' | 'source';
  /** The object and field that names the place. */
  readonly from?: string;
  readonly crio: Sent;
}

/** Something to know or to fix. */
export interface Finding {
  readonly severity: 'error' | 'warning' | 'info';
  readonly message: string;
  /** What to change, and where. */
  readonly fix?: string;
  /** An object to apply. */
  readonly object?: KubeObject;
}

export interface KubeletView {
  /** One unreadable Secret fails the pod for every image. */
  readonly blockedBy?: { readonly source: string; readonly why: string };
  readonly tried: readonly ExplainedCredential[];
  readonly unused: readonly UnusedEntry[];
  /** Entries for other registries that are left out of `unused`. @default {none is left out} */
  readonly others?: number;
  /** Whether an attempt without credential is made. */
  readonly anonymous: boolean;
}

/** A Secret that the pod lists, found or not. */
export interface ListedSecret {
  readonly name: string;
  /** Who lists it: `Pod/web/shop`, `ServiceAccount/web/default`. */
  readonly listedBy: string;
  /** `ignored`: of another type, or without data. `unknown`: not all could be read, so it may be there or not. */
  readonly state: 'found' | 'missing' | 'ignored' | 'unknown';
  /** For `found`. */
  readonly source?: AuthSource;
}

/** What is known about a node's file that was merged. */
export interface NodeMerge {
  /** Key in the file to the Secret that it came from. */
  readonly origins: ReadonlyMap<string, string>;
  /** On the entries of the additional secret. */
  readonly verdicts: readonly Verdict[];
  /** Name of the additional secret. */
  readonly additional: string;
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
