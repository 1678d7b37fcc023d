import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { root } from '../../../scripts/source.ts'
import type { PlatformProcess } from '../../support/platform.ts'

interface Options {
  /** Test files; all by default. */
  only?: readonly string[]
  baseUrl?: string
  environment?: Readonly<Record<string, string>>
}

/** Runs the conformance journeys against a platform. Returns whether all of them pass. */
export async function runJourneys(
  { url, dataDir }: PlatformProcess,
  { only, baseUrl = url, environment }: Options,
): Promise<boolean> {
  const selection = only === undefined ? [] : ['--only', only.join()]
  const child = spawn(process.execPath, ['test/conformance/main.ts', '--base-url', baseUrl, ...selection], {
    cwd: root,
    env: {
      ...process.env,
      VITEST: undefined,
      NO_COLOR: '1',
      PLAT_DATA_DIR: dataDir,
      // Only a sample of the malformed requests, because rate limits would delay all of them for minutes.
      PLAT_TEST_LONG: '0',
      ...environment,
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const [exitCode] = await once(child, 'close')
  return exitCode === 0
}
