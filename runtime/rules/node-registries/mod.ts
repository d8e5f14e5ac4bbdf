/**
 * What the Machine Config Operator writes for the nodes of a cluster, or refuses to write.
 *
 * - `admission.ts`: What the API server refuses of mirror sets and of the Image object, so that it never comes to the
 *   operator
 * - `clusters.ts`: The clusters that a set of objects is about, each with the objects that its nodes go by
 * - `disruption.ts`: What a change of the files does to nodes: nothing, a reload of CRI-O, a drain, or a drain and a
 *   reboot
 * - `entries.ts`: The `[[registry]]` tables that the operator makes of mirror sets, insecure and blocked scopes, in
 *   the order of the file
 * - `faults.ts`: What makes the operator refuse everything that a cluster asks for, in the order in which it finds it
 * - `ignition-text.ts`: Text of one file of a MachineConfig
 * - `input.ts`: What the operator reads: the mirror sets as they are written, the registries of
 *   `image.config.openshift.io/cluster`, and the release image of the ClusterVersion
 * - `load.ts`: Whether the runtime can load what the operator wrote
 * - `node-mirrors.ts`: What the nodes of a cluster follow: what the operator renders from its objects, or what they
 *   keep because it refuses to
 * - `payload.ts`: Which of the blocked registries are really blocked: a cluster must be able to pull its own release
 * - `policy.ts`: `/etc/containers/policy.json`: which registries may be pulled from at all
 * - `render.ts`: One run of the operator: from the objects of a cluster to the files of its nodes, or to the refusal
 *   of all of them
 * - `scopes.ts`: Scopes of the operator, and which lie inside which
 * - `toml.ts`: The text of the operator's files, letter for letter
 *
 * @module
 */
export {};
