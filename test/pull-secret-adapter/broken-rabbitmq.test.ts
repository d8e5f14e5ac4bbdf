// deadline: 480 s
// needs: RabbitMQ
/** RabbitMQ over lines that break: `broken-broker.ts`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startRabbitMq } from '../brokers/rabbitmq-node.ts';
import { executable } from '../support/executable.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { brokenBroker } from './broken-broker.ts';
import { NODE } from './container.ts';

brokenBroker(test, async () => {
  const rabbit = await startRabbitMq();
  const folder = tempFolder();
  const { host } = new URL(rabbit.url);
  return {
    address: host,
    at: (line) => {
      const file = join(folder, line);
      writeFileSync(file, rabbit.url.replace(host, line), { mode: 0o600 });
      return { flags: ['--broker-url-file', file], env: {} };
    },
    stop: async () => {
      await rabbit.stop();
    },
    first: NODE,
    second: [await executable()],
  };
});
