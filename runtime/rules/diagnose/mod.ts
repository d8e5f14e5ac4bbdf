/**
 * Answers for people: explain, doctor, verify, status and expectations.
 *
 * - `doctor-fix.ts`: The YAML that fixes a link
 * - `doctor-links.ts`: What breaks each link of the chain from an image to its credential, and what fixes it
 * - `doctor-types.ts`: What an examination is asked with and made of
 * - `doctor.ts`: The chain from an image's name to a credential that a registry takes, link by link
 * - `expectations.ts`: Expectations about pull credentials
 * - `explain-findings.ts`: What stands in the way of a pull, what will surprise, and what to change
 * - `explain-mismatch.ts`: Why the kubelet does not use an entry for an image, in words
 * - `explain-text.ts`: An explanation as a tree for people, and as a mermaid picture of the way from pod to
 *   registry
 * - `explain-types.ts`: What an explanation is asked with and made of
 * - `explain.ts`: Which credentials are tried for an image, in which order, at every place that it is pulled
 *   from
 * - `pull-complaint.ts`: What a kubelet's event about a failing pull means
 * - `status-table.ts`: The state of every part of the product in one cluster, as rows
 * - `verify-report.ts`: What asking the registries comes to
 * - `verify-status.ts`: A verification as a PullStatus about the CronJob that made it, with events for those
 *   who own the credentials
 * - `verify-text.ts`: A verification for people
 *
 * @module
 */
export {};
