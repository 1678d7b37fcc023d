import { join } from 'node:path'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { isLong } from './test/support/long.ts'

/** Suites that call the platform's own code need the stand-ins and a table of their own; the others need neither. */
const withStore = [
  'test/core/**/*.test.ts',
  'test/functions/**/*.test.ts',
  'test/worker/{modules,updates}/**/*.test.ts',
]

/** Those about the deployment need the components that it is made of. */
const ofDeployment = ['test/infra/**/*.test.ts']

/** Those about the portal drive a browser through it. */
const ofPortal = ['test/portal/**/*.test.ts']

/** The black-box tests share one platform, or run against the one that PLAT_CONFORMANCE_URL names. */
const ofConformance = ['test/conformance/**/*.test.ts']

/** Files that are for the long runs alone: what they show is shown from another side, or in part, by others. */
const long = isLong ? [] : ['test/**/*.long.test.ts']

/**
 * What the code shows is shown faster by files that share a process (test/support/reset-modules.ts). In the long runs each has one of its
 * own: what one file has left behind shall not be the finding of another.
 */
const isolate = isLong

/** Nobody waits for it: it ends what hangs. A machine may be slow, and busy with much else. */
const limitMs = isLong ? 900_000 : 180_000

/** `npm run verify` alone runs these. They set faults of the shared emulators: one file at a time. */
const isVerification = process.env['PLAT_VERIFY'] !== undefined
const verification: TestProjectInlineConfiguration = {
  extends: true,
  test: {
    name: 'verification',
    include: ['test/verification/*.verify.ts'],
    testTimeout: 4 * 3_600_000,
    hookTimeout: 3_600_000,
    globalSetup: ['test/support/emulators.ts'],
    setupFiles: ['test/support/without-rate-limits.ts', 'test/support/table-per-file.ts'],
    sequence: { setupFiles: 'list' },
  },
}

export default defineConfig({
  test: {
    testTimeout: limitMs,
    hookTimeout: limitMs,
    // What is waited for comes later on a busy machine; vitest itself would give up after a second.
    expect: { poll: { timeout: 30_000 } },
    reporters: ['./test/support/summary-reporter.ts'],
    // Twice the cores: tests wait for much of their time.
    maxWorkers: 4,
    maxConcurrency: 3,
    // What one of the platforms that tests start has compiled, the next ones need not compile again.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/compiled') },
    projects: [
      ...(isVerification ? [verification] : []),
      {
        extends: true,
        test: {
          name: 'plain',
          include: ['test/**/*.test.ts'],
          exclude: [...withStore, ...ofDeployment, ...ofPortal, ...ofConformance, ...long],
          isolate,
          setupFiles: ['test/support/reset-modules.ts'],
        },
      },
      // A browser and a platform share the machine with another of each.
      {
        extends: true,
        test: {
          name: 'portal',
          include: ofPortal,
          exclude: long,
          // A worker has one browser, and compiles once what all files need; each file has a world of its own by its fixtures.
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
          include: ofConformance,
          isolate: false,
          globalSetup: ['test/conformance/support/global-setup.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'deployment',
          include: ofDeployment,
          exclude: long,
          globalSetup: ['test/support/components.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'store',
          include: withStore,
          exclude: long,
          isolate,
          globalSetup: ['test/support/emulators.ts'],
          setupFiles: ['test/support/reset-modules.ts', 'test/support/table-per-file.ts'],
          // In this order: what names the table imports what reads its name.
          sequence: { setupFiles: 'list' },
        },
      },
    ],
  },
})
