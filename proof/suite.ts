import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { root } from '../scripts/source.ts'
import { temporaryFolder } from '../test/support/temporary-folder.ts'
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
}

/** Runs files of the test suite with all that they can do, and answers whether each test has passed, and how many. */
export async function runSuite(claim: string, suite: Suite, { say }: Effort): Promise<Figure[]> {
  await using folder = await temporaryFolder()
  const output = join(folder.path, 'results.json')
  await vitest(suite, output, say)
  const results: Results = JSON.parse(await readFile(output, 'utf8'))
  for (const line of failuresOf(results)) say(line)
  return [
    all(claim, results.numPassedTests, results.numTotalTests - results.numPendingTests),
    // A file that cannot even be loaded has no test that fails.
    none('files of tests that fail', results.testResults.filter(hasFailed).length, `${results.testResults.length}`),
  ]
}

async function vitest({ files, environment, within = [] }: Suite, output: string, say: Effort['say']): Promise<void> {
  const command = [...within, process.execPath, join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...files]
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${output}`]
  const [program = '', ...rest] = [...command, ...reporters]
  const child = spawn(program, rest, {
    cwd: root,
    env: { ...process.env, PLAT_TEST_LONG: '1', NO_COLOR: '1', ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  for await (const line of createInterface(child.stdout)) if (/^ [✓❯×] /.test(line)) say(line.trim())
  await closed
}

const hasFailed = ({ assertionResults, message }: Results['testResults'][number]): boolean =>
  message !== '' || assertionResults.some(({ status }) => status === 'failed')

const failuresOf = ({ testResults }: Results): string[] =>
  testResults.filter(hasFailed).map(({ name, message, assertionResults }) => {
    const failed = assertionResults.filter(({ status }) => status === 'failed')
    const told = failed.map(({ fullName, failureMessages }) => `\n  ${fullName}: ${failureMessages?.join('\n') ?? ''}`)
    return `${name} ${message}${told.join('')}`
  })
