/**
 * The default fleet of `synth`: one stand-alone cluster with the global pull secret. Its tree is committed in `dist/manifests`
 * and applies to any cluster. Other systems take one line each. They are off because each grants the reconciler further rights.
 */
import { DEFAULT_IMAGE } from '../runtime/core/version.ts';
import { defineFleet } from './fleet.ts';
import type { FleetInput } from './fleet-schema.ts';

export const defaultFleet: FleetInput = defineFleet({
  image: DEFAULT_IMAGE,
  clusters: [
    {
      name: 'default',
      path: '.',
      systems: {
        // OpenShift's own namespace; rendered so that the tree also applies to clusters without it.
        'global-pull-secret': { createConfigNamespace: true },
      },
    },
  ],
});
