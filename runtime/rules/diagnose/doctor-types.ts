/** What an examination is asked with and made of. */
import type { KubeObject } from '../kubernetes/object.ts';
import type { Explanation } from './explain.ts';
import type { PullCause, PullFailure } from './pull-failure.ts';

export const LINKS = [
  'image',
  'places',
  'service-account',
  'injection',
  'secrets-there',
  'secrets-readable',
  'credential',
  'mirror-credential',
  'distribution',
  'node',
  'registry',
] as const;

/** What is looked at. Empty lists where nothing is known. */
export interface DoctorInput {
  readonly namespace: string;
  /** `Pod/web/shop-1` */
  readonly pod: string;
  /** A pod that exists cannot be changed; a template can. */
  readonly isPod: boolean;
  /** The names come from the pod or template itself, and not from its ServiceAccount. */
  readonly ownList: boolean;
  /** Made by a kubelet from a file of its node: it cannot list a Secret. */
  readonly isStatic: boolean;
  /** The template as it is, for a change of it. */
  readonly template: KubeObject;
  readonly account: {
    readonly name: string;
    readonly object: KubeObject | undefined;
    readonly known: boolean;
  };
  readonly images: readonly DoctorImage[];
  /** Names that profiles and SidecarSets would give a pod like this one, and the pod does not have. */
  readonly notInjected: readonly {
    readonly secret: string;
    readonly by: string;
    /** The pod of a template that lacks it, where its next one would not. */
    readonly pod?: string;
    /** How to get another pod in place of one that exists. */
    readonly remedy?: string;
    /** Why a new pod would lack it too, as the profile says. */
    readonly hindrance?: string;
  }[];
  /** Names that profiles and SidecarSets of the namespace have, and that this pod does not get. @default none is known */
  readonly notGiven?: readonly {
    readonly secret: string;
    /** `PullSecretProfile/team` */
    readonly by: string;
    readonly why: string;
  }[];
  /** Profiles that give such pods a name and bring its Secret, each with what its `Ready` says unless it is True. */
  readonly givers: readonly { readonly secret: string; readonly by: string; readonly says?: string }[];
  /** What reports trouble in this namespace or on the node: `PullStatus/web/...`. */
  readonly troubles: readonly {
    readonly object: string;
    readonly message: string;
    readonly onNode: boolean;
  }[];
  readonly provider: {
    readonly matchImages: readonly string[];
    readonly present: boolean;
    readonly mayRead: boolean;
    /** What its last run for this pod failed with, as the installer of the node says. */
    readonly failure?: string;
  };
  /** How many pods were looked at: the pod itself, or those that a template has made. */
  readonly pods: number;
  /** What the kubelet says of the pull of a container; of a template, of one of its pods. */
  readonly failure?: PodFailure;
  /** Of a pod whose images are pulled with what is brought to its node. */
  readonly node?: NodeEvidence;
  /** What could not be read, each with the right that is missing. */
  readonly unread: readonly string[];
}

/** The failing pull of a container. */
export interface PodFailure extends PullFailure {
  readonly container: string;
  readonly pod: string;
  readonly node?: string;
}

/** What is known of a node that takes part in the global pull secret. */
export interface NodeEvidence {
  readonly name: string;
  /** `unknown`: neither the DaemonSet nor a pod of it is among the objects of a folder. */
  readonly agent: 'ready' | 'not-ready' | 'absent' | 'no-daemon-set' | 'unknown';
  /** Of an agent that is there and not ready: its pod, and what it waits for. */
  readonly agentSays?: string;
  /** Whether the agent's report has the digest of the Secret that is there; undefined where agents do not report. */
  readonly behind?: { readonly reason: string; readonly why: string } | 'none';
}

export interface Link {
  readonly link: LinkName;
  readonly state: 'ok' | 'broken' | 'unknown';
  readonly message: string;
  /** To be applied with `kubectl apply --server-side`. */
  readonly fix?: readonly KubeObject[];
  /** What else to do, in one sentence. */
  readonly advice?: string;
  /** What it is about, by which pods that fail alike are found: a host, a Secret, a profile, a node. */
  readonly about?: string;
  /** Of a failing pull: why, as far as the kubelet says it. */
  readonly cause?: PullCause;
  /** The registry, token service or proxy that refused or was not reached. */
  readonly host?: string;
  /** The pull sources in the order in which they were tried, as far as the kubelet says it. */
  readonly sources?: readonly { readonly source: string; readonly cause: PullCause }[];
  /** What the kubelet said. */
  readonly evidence?: string;
}

/** What is wrong with a link. */
export type Fault = Omit<Link, 'link' | 'state'>;

/** In the order in which they depend on each other. */
export type LinkName = (typeof LINKS)[number];

export interface DoctorImage {
  readonly text: string;
  /** Absent when the image cannot be read; then `fault`. */
  readonly explanation?: Explanation;
  readonly fault?: string;
  /** Secrets of the namespace that the pod does not list, and that hold a credential for the image. */
  readonly elsewhere: readonly string[];
  /** Mirrors without a credential for which a Secret of the namespace has one. */
  readonly mirrors: readonly string[];
  /** The node of the pod, when it lacks the pull secret of the cluster and that has a credential for the image. */
  readonly leftOutNode?: string;
}
