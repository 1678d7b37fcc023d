import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { root } from '../../scripts/source.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { all, type Effort, type Figure, none } from './part.ts'

/** What `vitest --reporter=json` writes, as far as it is read here. */
interface Results {
  numTotalTests: number
  numPassedTests: number
  numFailedTests: number
  numPendingTests: number
  testResults: readonly {
    name: string
    message: string
    assertionResults: readonly { fullName: string; status: string; failureMessages: readonly string[] | null }[]
  }[]
}

/** How files of the test suite are run. */
export interface Suite {
  /** Paths as vitest filters them; none for all. */
  files: readonly string[]
  /** What the run's environment has beside this one's. */
  environment?: Readonly<Record<string, string>>
  /** What goes before the command, such as another namespace to run it in. */
  within?: readonly string[]
  /** How many files at once; as many as `npm test` if absent. */
  workers?: number
}

/** Runs files of the test suite with all that they can do, and answers whether each test has passed, and how many. */
export async function runSuite(claim: string, suite: Suite, { say }: Effort): Promise<Figure[]> {
  await using folder = await temporaryFolder()
  const output = join(folder.path, 'results.json')
  const exitCode = await vitest(suite, output, say)
  const results: Results = JSON.parse(await readFile(output, 'utf8'))
  for (const line of failuresOf(results)) say(line)
  const { numPassedTests: passed, numTotalTests: total, numPendingTests: skipped } = results
  const failed = results.testResults.filter(hasFailed).length
  return [
    // Where everything is skipped nothing is shown.
    all(`${claim} (${skipped} are skipped)`, passed, Math.max(1, total - skipped)),
    // A file that cannot even be loaded has no test that fails.
    none('files of tests that fail', failed, `${results.testResults.length}`),
    none('errors outside of tests', exitCode === 0 || failed > 0 ? 0 : 1),
  ]
}

/** Answers the exit code. */
async function vitest(
  { files, environment, within = [], workers }: Suite,
  output: string,
  say: Effort['say'],
): Promise<number> {
  const command = [...within, process.execPath, join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...files]
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${output}`]
  const limits = workers === undefined ? [] : [`--maxWorkers=${workers}`]
  const [program = '', ...rest] = [...command, ...reporters, ...limits]
  const child = spawn(program, rest, {
    cwd: root,
    env: { ...process.env, CI: '1', PLAT_TEST_LONG: '1', NO_COLOR: '1', ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  for await (const line of createInterface(child.stdout)) if (/^ [✓❯×] /.test(line)) say(line.trim())
  const [exitCode] = await closed
  return exitCode
}

const hasFailed = ({ assertionResults, message }: Results['testResults'][number]): boolean =>
  message !== '' || assertionResults.some(({ status }) => status === 'failed')

const failuresOf = ({ testResults }: Results): string[] =>
  testResults.filter(hasFailed).map(({ name, message, assertionResults }) => {
    const failed = assertionResults.filter(({ status }) => status === 'failed')
    const told = failed.map(({ fullName, failureMessages }) => `\n  ${fullName}: ${failureMessages?.join('\n') ?? ''}`)
    return `${name} ${message}${told.join('')}`
  })
