/**
 * The fleet that `synth` renders when it is given none: one stand-alone cluster with the global pull secret. Its tree is
 * committed in `dist/manifests`, and applies to any cluster. The other systems are a line each; they are omitted because each
 * grants the reconciler more than this one needs.
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
        // The namespace is OpenShift's own; rendered here, so that the tree also applies where it is missing.
        'global-pull-secret': { createConfigNamespace: true },
      },
    },
  ],
});
