import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '../test/support/temporary-folder.ts'
import { all, type Part } from './part.ts'
import { coverageOf } from './strength/coverage.ts'
import { expectedCodes } from './strength/expected.ts'
import { allFailpoints, unstruckFailpoints } from './strength/failpoints.ts'
import { runSuite } from './suite.ts'

/** Those that ask functions by requests, as callers do. */
const files = ['test/functions/', 'test/core/ldap/routes']

/** Of `POST /api/v1/sites site_name_taken`. */
const codeOf = (pair: string): string => pair.split(' ').at(-1) ?? ''

export const part: Part = {
  title: 'What the tests of the functions meet',
  how:
    'The tests that send requests to functions note each answer. Of every operation of the OpenAPI document there has to be a success, ' +
    'and each failure that the document has for that operation alone; where a test meets it behind the function only, it is counted apart.',
  run: async (effort) => {
    await using folder = await temporaryFolder()
    const gathered = join(folder.path, 'answers')
    const figures = await runSuite('tests that pass', { files, environment: { PLAT_SEEN_ANSWERS: gathered } }, effort)
    const coverage = coverageOf(await readFile(gathered, 'utf8'))
    const [places, unstruck] = [allFailpoints(), unstruckFailpoints()]
    const expected = expectedCodes(coverage.unmet.map(codeOf))
    const unexpected = coverage.unmet.filter((pair) => !expected.has(codeOf(pair)))
    for (const line of [...coverage.withoutSuccess, ...unexpected, ...unstruck]) effort.say(`not met: ${line}`)
    return [
      ...figures,
      all('operations that succeed', coverage.operations - coverage.withoutSuccess.length, coverage.operations),
      all(
        'failures of an operation that it has answered',
        coverage.failures - coverage.unmet.length,
        coverage.failures,
      ),
      all('failpoints that a test strikes', places.length - unstruck.length, places.length),
    ]
  },
}
