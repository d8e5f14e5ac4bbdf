/** `npm run control-plane`: starts a control plane for a person and prints how to use it; Ctrl-C stops it. `--build` only builds. */
import { parseArgs } from 'node:util';
import { controlPlaneBinaries } from './build.ts';
import { startControlPlane } from './control-plane.ts';

const { values } = parseArgs({
  options: {
    build: { type: 'boolean', default: false },
    'controller-manager': { type: 'boolean', default: true },
  },
  allowNegative: true,
});

if (values.build) await controlPlaneBinaries();
else await runForPerson();

async function runForPerson(): Promise<void> {
  const plane = await startControlPlane({ controllerManager: values['controller-manager'], crds: 'all' });
  const { kubectl } = await controlPlaneBinaries();
  process.stdout.write(
    [
      `export KUBECONFIG=${plane.kubeconfig}`,
      `alias kubectl=${kubectl}`,
      '',
      `The API server listens on ${plane.server}; logs are in ${plane.folder}. Ctrl-C stops it.`,
      '',
    ].join('\n'),
  );
  const keepAlive = setInterval(() => undefined, 60_000);
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      clearInterval(keepAlive);
      void plane.stop();
    });
}
