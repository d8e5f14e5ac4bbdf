// deadline: 480 s
// needs: Go
/** Pub/Sub over lines that break: `broken-broker.ts`. */
import { startPubSub } from '../brokers/pubsub-node.ts';
import { executable } from '../support/executable.ts';
import { test } from '../support/suite.ts';
import { brokenBroker } from './broken-broker.ts';
import { NODE } from './container.ts';

brokenBroker(test, async () => {
  const server = await startPubSub();
  return {
    address: server.host,
    at: (host) => ({
      flags: ['--broker', 'pubsub', '--gcp-project', 'proj', '--create-topics'],
      env: { PUBSUB_EMULATOR_HOST: host },
    }),
    stop: () => server.stop(),
    first: [await executable()],
    second: NODE,
  };
});
