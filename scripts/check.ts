import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { delimiter, join } from 'node:path'
import { root } from './source.ts'

/**
 * `npm run check`: all checks that need no running platform, in parallel. Other long checks have a lower priority than
 * the two longest.
 */
const tsc = 'node node_modules/typescript-native/bin/tsc --noEmit --singleThreaded'
const checks: Record<string, string> = {
  types: `${tsc} -p .`,
  lint: 'oxlint --format=unix .',
  'types of the portal': `nice ${tsc} -p packages/portal`,
  format: 'oxfmt --check .',
  'unused code': 'nice knip --no-progress',
  'import boundaries': 'nice depcruise --config .dependency-cruiser.mjs packages functions infra',
  'repository rules': 'node scripts/check-repository.ts',
  dependencies: 'node scripts/check-dependencies.ts',
  'openapi.json is current': 'node scripts/openapi.ts --check',
  'API types are current': 'nice npm run -s api-types -w @platform/contract -- --check',
  'icons.ts is current': 'node scripts/icons.ts --check',
  'openapi.json is valid': 'nice redocly lint platform --format=stylish',
}

const environment = {
  ...process.env,
  PATH: [join(root, 'node_modules/.bin'), process.env['PATH']].join(delimiter),
  REDOCLY_TELEMETRY: 'off',
  REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
  NO_COLOR: '1',
  // The compiler and the type-aware linter are Go programs. On one thread, the linter checks no type twice. Both
  // collect garbage only near the memory limit.
  GOMAXPROCS: '1',
  GOGC: 'off',
  GOMEMLIMIT: '3GiB',
}

interface Result {
  name: string
  isPassed: boolean
  output: string
}

async function run(name: string, command: string): Promise<Result> {
  const startedAtMs = performance.now()
  const child = spawn(`${command} 2>&1 < /dev/null`, { shell: true, cwd: root, env: environment })
  const [output, [exitCode]] = await Promise.all([text(child.stdout), once(child, 'close')])
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
  const isPassed = exitCode === 0
  console.log(`${isPassed ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`)
  return { name, isPassed, output: output.trim() }
}

// Warnings do not fail the check, but are printed.
const warningsOf = ({ output }: Result): string[] => output.split('\n').filter((line) => line.includes('[Warning/'))

const results = await Promise.all(Object.entries(checks).map(([name, command]) => run(name, command)))
const failedResults = results.filter(({ isPassed }) => !isPassed)
for (const { name, output } of failedResults) console.log(`\n${name}\n${output}`)
for (const warning of results.filter(({ isPassed }) => isPassed).flatMap(warningsOf)) console.log(warning)
process.exitCode = failedResults.length > 0 ? 1 : 0
