import { isCode, sources } from '../../scripts/source.ts'

export const failpointsIn = (...folders: readonly string[]): readonly string[] =>
  sources()
    .filter((file) => isCode(file) && folders.some((folder) => file.path.startsWith(`${folder}/`)))
    .flatMap(({ text }) => [...text.matchAll(/await failpoint\('([\w.-]+)'\)/g)].map(([, name = '']) => name))
    .toSorted()

/** Tests outside of the job suites cover these failpoints. */
const failpointsTestedElsewhere = /^(?:keys|oidc|operation|statement-key)\./

export const failpoints: readonly string[] = failpointsIn('packages/core', 'packages/http', 'functions').filter(
  (name) => !failpointsTestedElsewhere.test(name),
)
