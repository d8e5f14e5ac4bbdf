/**
 * What is wrong in a fleet, where, and what to do: the data of a report and its forms.
 *
 * - `causes.ts`: Every problem of a cluster with its cause, and problems of one cause together
 * - `diff.ts`: What is different between two reports
 * - `failing-pods.ts`: Pods that fail to pull, those that fail for one cause together, and what fixes each cause
 * - `html.ts`: A report as one page that needs nothing else
 * - `keys.ts`: The registry keys of the pull secrets that nodes get: which entry wins, which lose, and when each ends
 * - `markdown.ts`: A report as Markdown
 * - `mirror-sets.ts`: The mirror sets of a cluster as its nodes follow them
 * - `namespaces.ts`: Namespaces with their pull secrets, what they grant and claim, and which Secrets are copies
 * - `nodes.ts`: Which nodes have the pull secret that is meant for them
 * - `page.ts`: The script and style of the page, bundled
 * - `pulls.ts`: The way of an image from a pod to a registry
 * - `report.ts`: The report of a fleet, out of what was found of each cluster
 * - `text.ts`: A report on a terminal
 * - `types.ts`: What a report is made of
 * - `verdict.ts`: Which of several verdicts is the worst, and what people are told of them
 *
 * @module
 */
export {};
