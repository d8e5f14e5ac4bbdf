/** What an import is made of. */
import { describeObject, type KubeObject } from '../kubernetes/object.ts';

/** A PullSecretProfile of the section `pull-secret-injection`. */
export interface ImportedProfile {
  readonly name: string;
  readonly spec: {
    readonly namespaceSelector: object;
    readonly selector?: object;
    readonly mode: 'Inject' | 'Distribute' | 'InjectAndDistribute';
    readonly suspend?: true;
    readonly secrets: readonly {
      readonly name: string;
      readonly sources?: readonly { readonly namespace: string; readonly name: string }[];
    }[];
  };
}

/** The consent that the owner of a Secret gives by an annotation; it is not given here. */
export interface ImportedGrant {
  readonly namespace: string;
  readonly name: string;
  /** Value of `pullwright.dev/grant-namespaces`. */
  readonly to: string;
}

/** What became of an object. */
export interface ImportNote {
  /** `kept`: it goes on working where it stands. */
  readonly outcome: 'carried' | 'changed' | 'kept' | 'dropped';
  readonly subject: string;
  readonly message: string;
}

/** What one tool's objects become. */
export interface ImportedPart {
  readonly profiles?: readonly ImportedProfile[];
  readonly grants?: readonly ImportedGrant[];
  readonly notes: readonly ImportNote[];
  /** Sections of the cluster. */
  readonly systems?: Readonly<Record<string, unknown>>;
  /** Hosted clusters that the cluster manages. */
  readonly hosted?: readonly { readonly namespace: string; readonly name: string }[];
}

export interface Imported {
  /** A fleet file, as `synth --fleet` reads it. */
  readonly fleet: Readonly<Record<string, unknown>>;
  readonly grants: readonly ImportedGrant[];
  readonly notes: readonly ImportNote[];
  /** How many objects of each kind have nothing to do with any of it. */
  readonly others: Readonly<Record<string, number>>;
}

/** `Secret/hub/pull` */
export function subjectOf({ kind, metadata }: KubeObject): string {
  return describeObject({ kind, namespace: metadata.namespace, name: metadata.name });
}
