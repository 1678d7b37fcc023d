import { join } from 'node:path'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { isLong } from './test/support/long.ts'
import { useMemoryForTemporaryFolders } from './test/support/memory-folder.ts'

/** Tests that run the code of the platform in their own process, against emulators with a table for each file. */
const storeTests = [
  'test/core/**/*.test.ts',
  'test/functions/**/*.test.ts',
  'test/worker/{modules,updates}/**/*.test.ts',
]
const deploymentTests = ['test/infra/**/*.test.ts']
const portalTests = ['test/portal/**/*.test.ts']
const conformanceTests = ['test/conformance/**/*.test.ts']
const longTests = isLong ? [] : ['test/**/*.long.test.ts']

/** Files share processes to save start time (see test/support/reset-modules.ts). Long runs isolate them. */
const isolate = isLong

/** Ends tests that hang. The limits are generous, because machines may be slow. */
const timeoutMs = isLong ? 900_000 : 180_000

/** `npm run verify` sets PLAT_VERIFY. */
const isVerification = process.env['PLAT_VERIFY'] !== undefined

if (!isLong && !isVerification) useMemoryForTemporaryFolders()

const verification: TestProjectInlineConfiguration = {
  extends: true,
  test: {
    name: 'verification',
    include: ['test/verification/*.verify.ts'],
    testTimeout: 4 * 3_600_000,
    hookTimeout: 3_600_000,
    globalSetup: ['test/support/assets.ts'],
    setupFiles: ['test/support/without-rate-limits.ts', 'test/support/emulators.ts', 'test/support/table-per-file.ts'],
    sequence: { setupFiles: 'list' },
  },
}

export default defineConfig({
  test: {
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    expect: { poll: { timeout: 30_000 } },
    reporters: ['./test/support/summary-reporter.ts'],
    // Verifications print their figures. Other tests print only when they fail.
    silent: isVerification ? false : 'passed-only',
    // More workers than cores, because tests spend much of their time waiting.
    maxWorkers: 6,
    // With larger young generations, V8 collects garbage less often. On one thread, this needs less CPU time.
    execArgv: ['--single-threaded-gc', '--min-semi-space-size=32', '--max-semi-space-size=32'],
    maxConcurrency: 3,
    // Platforms under test share the compile cache.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/compiled') },
    projects: [
      ...(isVerification ? [verification] : []),
      {
        extends: true,
        test: {
          name: 'plain',
          include: ['test/**/*.test.ts'],
          // `npm run verify -- clients` installs packages, some of which contain tests.
          exclude: [
            '**/node_modules/**',
            ...storeTests,
            ...deploymentTests,
            ...portalTests,
            ...conformanceTests,
            ...longTests,
          ],
          isolate,
          setupFiles: ['test/support/reset-modules.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'portal',
          include: portalTests,
          exclude: longTests,
          // The files of a worker share its browser.
          isolate: false,
          setupFiles: ['test/support/portal/own-file.ts'],
          expect: { poll: { timeout: 60_000 } },
          globalSetup: ['test/support/portal/shared-start.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'conformance',
          include: conformanceTests,
          isolate: false,
          globalSetup: ['test/conformance/support/global-setup.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'deployment',
          include: deploymentTests,
          exclude: longTests,
          isolate,
          globalSetup: ['test/support/components.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'store',
          include: storeTests,
          exclude: longTests,
          isolate,
          globalSetup: ['test/support/assets.ts'],
          // The name of the table must be set before core is imported.
          setupFiles: [
            'test/support/reset-modules.ts',
            ...(isLong ? [] : ['test/support/cheap-hashes.ts']),
            'test/support/emulators.ts',
            'test/support/table-per-file.ts',
          ],
          sequence: { setupFiles: 'list' },
        },
      },
    ],
  },
})
