/**
 * `verify` of 500 images, 16 at once, against a real registry with htpasswd on loopback, beside a bare client that does the same
 * requests over kept connections: what we add to what the registry takes.
 */
import { rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { redact } from '../runtime/core/redacted.ts';
import { verifyAll } from '../runtime/registry/probe.ts';
import { credentialsOf } from '../runtime/registry/token.ts';
import { RegistryTransport } from '../runtime/registry/transport.ts';
import {
  missingTool,
  ociLayout,
  push,
  scratch,
  startRegistry,
  USER,
} from '../test/registry/docker-registry.ts';
import { interleaved, ms, printTable, ratio } from './measure.ts';

const IMAGES = 500;
const AT_ONCE = 16;
// Few: pushing blocks this process, which reads the log of the registry, whose pipe must not fill up.
const REPOSITORIES = 3;
const ROUNDS = 3;

const missing = missingTool();
if (missing !== undefined) {
  process.stdout.write(`\n### verify\n\nnot measured: ${missing} is not installed\n`);
} else {
  const folder = scratch();
  const registry = await startRegistry(folder, 'bench');
  const layout = ociLayout(`${folder}/layout`, { 'a.txt': 'a' });
  for (let at = 0; at < REPOSITORIES; at += 1) push(layout, registry, `team/app-${at}:1`, folder);
  // Many images of a cluster are in few repositories; tags that are not there cost the registry as much.
  const images = Array.from(
    { length: IMAGES },
    (_, at) => `team/app-${at % REPOSITORIES}:${Math.floor(at / REPOSITORIES) === 0 ? 1 : at}`,
  );
  const credential = credentialsOf({ username: USER, password: redact(registry.password) });
  const authorization = `Basic ${Buffer.from(`${USER}:${registry.password}`).toString('base64')}`;
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });

  const head = (path: string, headers: Record<string, string>): Promise<number> =>
    new Promise((resolve, reject) => {
      const [host = '', port] = registry.host.split(':');
      const call = request({ host, port, path, method: 'HEAD', headers, agent }, (answer) => {
        answer.resume();
        answer.once('end', () => resolve(answer.statusCode ?? 0));
      });
      call.once('error', reject);
      call.end();
    });

  const bare = async (): Promise<void> => {
    const rest = images.values();
    const worker = async (): Promise<void> => {
      for (const image of rest) {
        const path = `/v2/${image.replace(':', '/manifests/')}`;
        if ((await head(path, {})) === 401) await head(path, { authorization });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  };

  const ours = async (): Promise<void> => {
    const transport = new RegistryTransport({ plainHosts: [registry.host] });
    await verifyAll(
      images.map((image) => ({ reference: `${registry.host}/${image}`, credential })),
      { transport, concurrency: AT_ONCE },
    );
    transport.close();
  };

  const times = await interleaved({ bare, ours }, ROUNDS);
  printTable(`verify: ${IMAGES} images, ${AT_ONCE} at once, Basic`, [
    {
      'bare client ms': ms(times.bare.median),
      'verify ms': ms(times.ours.median),
      'verify / bare client': ratio(times.ours.median, times.bare.median),
    },
  ]);
  agent.destroy();
  registry.stop();
  rmSync(folder, { recursive: true, force: true });
}
