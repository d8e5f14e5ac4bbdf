/** What a page has not: a cluster to ask, a registry, a disk to write to, a chart to render. Nobody gets here by what the page offers. */
import { UsageError } from '../../../runtime/core/errors.ts';

function absent(): never {
  throw new UsageError(
    'This page has files only: no cluster, no registry and no disk. Use the program for that',
  );
}

export {
  absent as ApiObject,
  absent as Construct,
  absent as HttpKubeClient,
  absent as askWorld,
  absent as contextNamespace,
  absent as hostedSecrets,
  absent as isNetwork,
  absent as loadConnection,
  absent as ownPullSecret,
  absent as probeAll,
  absent as readAuthFile,
  absent as registryClient,
  absent as setTimeout,
  absent as writeObjects,
};

/** The flags stay, so that the tables are those of the program. */
export const ACCESS_FLAGS = {};
export const REACH_FLAGS = {};
