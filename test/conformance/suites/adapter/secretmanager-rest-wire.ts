/* oxlint-disable complexity -- one branch for each table of the case file */
import { crc32c } from '../../../../runtime/pull-secret-adapter/job/secret-manager.ts';
import { SecretManagerDouble } from '../../../pull-secret-adapter/doubles/secret-manager.ts';
import type { ConformanceCase, ConformanceSuite } from '../../suite.ts';

interface Request {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: unknown;
}

interface File {
  readonly requests: readonly Request[];
  readonly error_body_example: unknown;
  readonly crc32c: readonly { data: string; crc32c: number }[];
}

type Input = { kind: 'request'; request: Request } | { kind: 'crc'; data: string };

export const suite: ConformanceSuite<Input> = {
  cases(document) {
    const file = document as File;
    const requests = file.requests.map((request): ConformanceCase<Input> => {
      const missing = new URL(request.url, 'http://x').pathname.includes('/missing');
      return {
        name: `${request.method} ${request.url}`,
        input: { kind: 'request', request },
        expected: missing ? { status: 404, body: file.error_body_example } : { status: 200, named: true },
      };
    });
    const sums = file.crc32c.map(
      (one): ConformanceCase<Input> => ({
        name: `crc32c ${one.data}`,
        input: { kind: 'crc', data: one.data },
        expected: one.crc32c,
      }),
    );
    return [...requests, ...sums];
  },
  async answer(input) {
    if (input.kind === 'crc') return crc32c(Buffer.from(input.data));
    const { request } = input;
    const url = new URL(request.url, 'http://x');
    const [, project = '', name = ''] =
      /^\/v1\/projects\/([^/]+)\/secrets\/?([^/:]*)/.exec(url.pathname) ?? [];
    const double = await SecretManagerDouble.start();
    double.authenticates = false;
    try {
      // The secret is as the request supposes it: with its etag, and a first version.
      const etag =
        (request.body as { etag?: string } | null)?.etag ?? url.searchParams.get('etag') ?? '"161"';
      if (name !== '' && name !== 'missing') {
        double.put(`projects/${project}/secrets/${name}`, {
          etag: Number(etag.replaceAll('"', '')),
          versions: [{ state: 'ENABLED', data: Buffer.from('x') }],
        });
      }
      const answer = await fetch(`${double.url}${request.url}`, {
        method: request.method,
        headers: { ...request.headers, authorization: 'Bearer x' },
        ...(request.body === null ? {} : { body: JSON.stringify(request.body) }),
      });
      const body = (await answer.json()) as Record<string, unknown>;
      if (!answer.ok) return { status: answer.status, body };
      const named = 'name' in body || 'versions' in body || request.method === 'DELETE';
      return { status: answer.status, named };
    } finally {
      await double.close();
    }
  },
  mutation: {
    file: 'runtime/pull-secret-adapter/job/secret-manager.ts',
    replace: '0x82f63b78',
    by: '0xedb88320',
  },
};
