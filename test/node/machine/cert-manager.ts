/** Stand-in for cert-manager, which cannot be built here: the Secret of a Certificate, and CA injection for the webhook. */
import assert from 'node:assert/strict';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import { eventually } from '../../control-plane/eventually.ts';
import type { TestObject } from '../../control-plane/resource-path.ts';
import { Authority } from '../../control-plane/x509.ts';
import { meta } from '../../support/meta.ts';

const GROUP = 'cert-manager.io';
const CRD: TestObject = {
  ...meta('apiextensions.k8s.io/v1 CustomResourceDefinition', { name: `certificates.${GROUP}` }),
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { kind: 'Certificate', plural: 'certificates', singular: 'certificate' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

interface CertificateSpec {
  readonly secretName: string;
  readonly dnsNames: readonly string[];
}

export class CertManager {
  readonly #plane: ControlPlane;
  readonly #authority = new Authority('cert-manager');

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  async install(): Promise<void> {
    await this.#plane.apply(CRD);
    await eventually(async () => {
      const { status } = await this.#plane.client.request('GET', `/apis/${GROUP}/v1/certificates`);
      assert.equal(status, 200);
    });
  }

  /** Source: cert-manager 1.18, controller of Certificates (`tls.crt`, `tls.key`, `ca.crt`) and the CA injector's annotation. */
  async issue(namespace: string, name: string): Promise<void> {
    const plane = this.#plane;
    const object = await plane.get(meta(`${GROUP}/v1 Certificate`, { namespace, name }));
    assert.ok(object !== undefined, `there is no Certificate ${name}`);
    const { secretName, dnsNames } = object['spec'] as CertificateSpec;
    const { certificate, key } = this.#authority.issue({ commonName: dnsNames[0] ?? '', hosts: dnsNames });
    const data = {
      'tls.crt': btoa(certificate),
      'tls.key': btoa(key),
      'ca.crt': btoa(this.#authority.certificate),
    };
    await plane.apply(
      {
        apiVersion: 'v1',
        kind: 'Secret',
        type: 'kubernetes.io/tls',
        metadata: { namespace, name: secretName, annotations: { [`${GROUP}/certificate-name`]: name } },
        data,
      },
      'cert-manager-certificates-issuing',
    );
    await this.#inject(`${namespace}/${name}`);
  }

  /** Injects the CA into every entry of each configuration with its annotation. */
  async #inject(from: string): Promise<void> {
    const path = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
    const { body } = await this.#plane.client.request('GET', path);
    const asked = ((body['items'] ?? []) as readonly Configuration[]).filter(
      ({ metadata }) => metadata.annotations?.[`${GROUP}/inject-ca-from`] === from,
    );
    assert.notEqual(asked.length, 0, `no configuration asks for the CA of ${from}`);
    for (const { metadata, webhooks = [] } of asked) {
      const patch = webhooks.map((_, index) => ({
        op: 'add',
        path: `/webhooks/${index}/clientConfig/caBundle`,
        value: btoa(this.#authority.certificate),
      }));
      const type = 'application/json-patch+json';
      const { status } = await this.#plane.client.request('PATCH', `${path}/${metadata.name}`, patch, type);
      assert.equal(status, 200);
    }
  }
}

interface Configuration {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly webhooks?: readonly unknown[];
}
