/** A private RabbitMQ node on loopback, with a name, a cookie, ports and a folder of its own. */
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Daemon, startWatchdog } from '../control-plane/daemon.ts';
import { freePort } from '../support/loopback.ts';
import { killIfThere } from '../support/process.ts';
import { tempFolder } from '../support/temp-folder.ts';

const BIN = '/usr/lib/rabbitmq/bin';

/** Why there is no RabbitMQ here, or undefined. */
export function missingRabbitMq(): string | undefined {
  return existsSync(`${BIN}/rabbitmq-server`)
    ? undefined
    : 'RabbitMQ is not installed (Debian package rabbitmq-server)';
}

export interface RabbitMqNode {
  readonly url: string;
  /** Simulates a power loss, and restarts with the same data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export async function startRabbitMq(): Promise<RabbitMqNode> {
  const folder = tempFolder();
  // Ends everything when the test is killed.
  const watchdog = startWatchdog(folder);
  const [port, distribution, names] = [await freePort(), await freePort(), await freePort()];
  writeFileSync(join(folder, 'enabled_plugins'), '[].\n');
  writeFileSync(
    join(folder, 'rabbitmq.conf'),
    `listeners.tcp.1 = 127.0.0.1:${port}\nlog.console = true\nlog.console.level = warning\n`,
  );
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    RABBITMQ_NODENAME: `pullwright-${port}@localhost`,
    RABBITMQ_DIST_PORT: String(distribution),
    ERL_EPMD_PORT: String(names),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_MNESIA_BASE: join(folder, 'data'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_LOGS: '-',
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '+S 1:1',
    // Files that a killed Erlang leaves stay in the node's own folder: this one, and MnesiaCore.* in its working folder.
    ERL_CRASH_DUMP: join(folder, 'erl_crash.dump'),
  };
  const settings = Object.entries(env).map(([key, value]) => `${key}=${value ?? ''}`);
  const daemon = new Daemon({
    name: 'rabbitmq',
    folder,
    command: ['env', '-i', '-C', folder, ...settings, `${BIN}/rabbitmq-server`],
    ready: () => speaksAmqp(port),
  });
  // In the foreground, so that it can be ended like the node; the node would start one of its own and leave it behind.
  const portMapper = new Daemon({
    name: 'epmd',
    folder,
    command: ['env', '-C', folder, 'epmd', '-port', String(names), '-address', '127.0.0.1'],
    ready: () => answers(names),
  });
  await portMapper.start();
  await daemon.start(120_000);
  const marker = `RABBITMQ_NODENAME=${env.RABBITMQ_NODENAME}`;
  const list = (): void => {
    for (const pid of processesOf(marker)) appendFileSync(join(folder, 'pids'), `${pid}\n`);
  };
  list();
  return {
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    restart: async () => {
      await endAll(marker);
      await daemon.terminate();
      await daemon.start(120_000);
      list();
    },
    stop: async () => {
      await endAll(marker);
      await daemon.terminate();
      await portMapper.terminate();
      await watchdog.finish();
    },
  };
}

/** The start script is not the node: both, and whatever they started, carry the node's name in their environment. */
function processesOf(marker: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(marker);
      } catch {
        return false;
      }
    });
}

/** Ends them, and waits until they are gone: a port or a lock file of theirs would stop the next start. */
async function endAll(marker: string): Promise<void> {
  for (let left = processesOf(marker); left.length > 0; left = processesOf(marker)) {
    for (const pid of left) killIfThere(pid, 'SIGKILL');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

/** Ready is: answers the protocol header with a frame. */
function speaksAmqp(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(1000, () => end(false));
    socket.once('error', () => end(false));
    socket.once('connect', () => socket.write(Buffer.from('AMQP\0\0\x09\x01', 'latin1')));
    socket.once('data', () => end(true));
  });
}
