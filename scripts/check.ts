import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { delimiter, join } from 'node:path'
import { root } from './source.ts'

/**
 * `npm run check`: everything about the code that a program can tell without running it. All checks run at once, so that
 * none of them gains by threads of its own.
 */
const checks: Record<string, string> = {
  types: 'tsc -p . --noEmit --singleThreaded',
  'types of the portal': 'tsc -p packages/portal --noEmit --singleThreaded',
  'types of the peers in the benchmark': 'tsc -p bench/peers --noEmit --singleThreaded',
  lint: 'oxlint --format=unix .',
  format: 'oxfmt --check .',
  'dead code': 'knip --no-progress',
  boundaries: 'node scripts/boundaries.ts',
  'house rules': 'node scripts/house-rules.ts',
  'openapi.json is current': 'node scripts/openapi.ts --check',
  'icons.ts is current': 'node scripts/icons.ts --check',
  'dependencies are as listed': 'node scripts/dependencies.ts --check',
  'API types are current': 'npm run -s api-types -w @platform/contract -- --check',
  'openapi.json by redocly': 'redocly lint platform --format=stylish',
  'openapi.json by spectral': 'spectral lint packages/contract/openapi.json --fail-severity=warn',
}

const environment = {
  ...process.env,
  PATH: [join(root, 'node_modules/.bin'), process.env['PATH']].join(delimiter),
  REDOCLY_TELEMETRY: 'off',
  REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
  NO_COLOR: '1',
}

interface Result {
  name: string
  isPassed: boolean
  output: string
}

async function run(name: string, command: string): Promise<Result> {
  const startedAtMs = performance.now()
  const child = spawn(`${command} 2>&1`, {
    shell: true,
    cwd: root,
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [output, [exitCode]] = await Promise.all([text(child.stdout), once(child, 'close')])
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
  const isPassed = exitCode === 0
  console.log(`${isPassed ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`)
  return { name, isPassed, output: output.trim() }
}

// Warnings do not fail the check, and should not go unseen either.
const warningsOf = ({ output }: Result): string[] => output.split('\n').filter((line) => line.includes('[Warning/'))

const results = await Promise.all(Object.entries(checks).map(([name, command]) => run(name, command)))
const failed = results.filter(({ isPassed }) => !isPassed)
for (const { name, output } of failed) console.log(`\n${name}\n${output}`)
for (const warning of results.filter(({ isPassed }) => isPassed).flatMap(warningsOf)) console.log(warning)
process.exitCode = failed.length > 0 ? 1 : 0
