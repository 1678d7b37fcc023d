import { isCode, sources } from '../../scripts/source.ts'

/** The names of all failpoints in these folders. */
export const failpointsIn = (...folders: readonly string[]): readonly string[] =>
  sources()
    .filter((file) => isCode(file) && folders.some((folder) => file.path.startsWith(`${folder}/`)))
    .flatMap(({ text }) => [...text.matchAll(/await failpoint\('([\w.-]+)'\)/g)].map(([, name = '']) => name))
    .toSorted()

/** Failpoints outside of jobs and batches, with tests of their own. */
const elsewhere = /^(?:keys|oidc|operation)\./

/** Failpoints of jobs and batches. */
export const failpoints: readonly string[] = failpointsIn('packages/core', 'packages/http', 'functions').filter(
  (name) => !elsewhere.test(name),
)
