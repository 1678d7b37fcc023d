import { sources } from '../scripts/source.ts'
import { files as crashes } from './crashes.ts'
import type { Part } from './part.ts'
import { files as portal } from './portal.ts'
import { runSuite, workers } from './suite.ts'
import { files as updates } from './updates.ts'

/** What other parts run, and their own short versions. */
const elsewhere = [...crashes, ...updates, ...portal, 'test/proof/']

const files = sources()
  .map(({ path }) => path)
  .filter((path) => path.endsWith('.test.ts') && !elsewhere.some((filter) => path.includes(filter)))

export const part: Part = {
  title: 'All other tests at full length',
  how:
    'What `npm test` samples or leaves out, beside the parts above: every row of every table, the command line, modules that fail in every ' +
    'way, the deployment and each grant of its roles, taken away one by one; each limit waited out.',
  run: (effort) => runSuite('tests that pass', { files, workers }, effort),
}
