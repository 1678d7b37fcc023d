import { isCode, sources } from '../../scripts/source.ts'

/** Every place in some code of the platform that a test may strike (CONTRIBUTING.md), by name. */
export const failpointsIn = (...folders: readonly string[]): readonly string[] =>
  sources()
    .filter((file) => isCode(file) && folders.some((folder) => file.path.startsWith(`${folder}/`)))
    .flatMap(({ text }) => [...text.matchAll(/await failpoint\('([\w.-]+)'\)/g)].map(([, name = '']) => name))
    .toSorted()

/** Struck by tests of their own: no job leads there. */
const elsewhere = /^(?:keys|oidc|operation)\./

/** Those on the way of jobs and batches. */
export const failpoints: readonly string[] = failpointsIn('packages/core', 'packages/http', 'functions').filter(
  (name) => !elsewhere.test(name),
)
