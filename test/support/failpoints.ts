import { isCode, sources } from '../../scripts/source.ts'

/** Every place in the platform's code that a test may strike (house rule 20), by name. */
export const failpoints: readonly string[] = sources()
  .filter((file) => isCode(file) && /^(packages\/core|packages\/http|functions)\//.test(file.path))
  .flatMap(({ text }) => [...text.matchAll(/await failpoint\('([\w.-]+)'\)/g)].map(([, name = '']) => name))
  .toSorted()
