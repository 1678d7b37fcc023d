import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sources } from '../../scripts/source.ts'
import { freePorts } from '../support/free-ports.ts'
import { PlatformProcess } from '../support/platform.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { runJourneys } from './journeys.ts'
import { all, type Effort, type Figure, type Part } from './part.ts'
import { coverageOf } from './strength/coverage.ts'
import { allFailpoints, unstruckFailpoints } from './strength/failpoints.ts'
import { runSuite } from './suite.ts'

/** Those that ask by requests, as callers do: functions, or a whole platform. */
const files = [
  'test/functions/',
  ...asking('test/core/'),
  ...['first-run', 'update'].map((name) => `test/journey/${name}.`),
]

/** Tests of the code behind the functions that ask a function as well. */
function asking(folder: string): string[] {
  const asks = /support\/(?:asked|event)\.ts'/
  const tests = sources().filter(
    ({ path, text }) => path.startsWith(folder) && path.endsWith('.test.ts') && asks.test(text),
  )
  return tests.map(({ path }) => path)
}

/** The journeys of the conformance suite on a platform of their own, which note what they are answered. */
async function journeysNoting(gathered: string, { say }: Effort): Promise<Figure> {
  const receivers = (await freePorts(2)).map((port) => `127.0.0.1:${port}`).join()
  await using platform = await PlatformProcess.start({ PLAT_OUTBOUND_ALLOW: receivers })
  const environment = { PLAT_OUTBOUND_ALLOW: receivers, PLAT_SEEN_RESPONSES: gathered }
  const { passed, total } = await runJourneys(platform, { environment, say })
  return all('journeys that pass', passed, total)
}

export const part: Part = {
  title: 'What the tests of the functions meet',
  how:
    'The tests and journeys that send requests note each answer. Of every operation of the OpenAPI document there has to be a success, ' +
    'and each failure that the document has for that operation alone.',
  run: async (effort) => {
    await using folder = await temporaryFolder()
    const gathered = join(folder.path, 'answers')
    const figures = await runSuite('tests that pass', { files, environment: { PLAT_SEEN_RESPONSES: gathered } }, effort)
    const journeys = await journeysNoting(gathered, effort)
    const coverage = coverageOf(await readFile(gathered, 'utf8'))
    const [places, unstruck] = [allFailpoints(), unstruckFailpoints()]
    for (const line of [...coverage.withoutSuccess, ...coverage.unmet, ...unstruck]) effort.say(`not met: ${line}`)
    return [
      ...figures,
      journeys,
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
