/** Constructs for what makes Argo CD and Flux sync a folder. */
import type { Construct } from 'constructs';
import { ObjectGroup } from '../shared/object-group.ts';
import { type ArgoApplicationInput, argoApplication, argoHealthPatch } from './argo-cd.ts';
import { type FluxKustomizationInput, type FluxSourceInput, fluxKustomization, fluxSource } from './flux.ts';

/** An Argo CD Application: see {@link argoApplication}. */
export class ArgoApplication extends ObjectGroup {
  constructor(scope: Construct, id: string, props: ArgoApplicationInput) {
    super(scope, id, [argoApplication(props)]);
  }
}

/** The health of our kinds for Argo CD: see {@link argoHealthPatch}. */
export class ArgoHealth extends ObjectGroup {
  constructor(scope: Construct, id: string, props: { readonly namespace?: string } = {}) {
    super(scope, id, [argoHealthPatch(props.namespace)]);
  }
}

/** A Flux Kustomization: see {@link fluxKustomization}. */
export class FluxKustomization extends ObjectGroup {
  constructor(scope: Construct, id: string, props: FluxKustomizationInput) {
    super(scope, id, [fluxKustomization(props)]);
  }
}

/** A Flux GitRepository: see {@link fluxSource}. */
export class FluxSource extends ObjectGroup {
  constructor(scope: Construct, id: string, props: FluxSourceInput) {
    super(scope, id, [fluxSource(props)]);
  }
}
