import { type Browser, chromium } from 'playwright-core'
import { missingPrograms } from '../installed-programs.ts'

/** The headless shell needs fewer resources; the full browser works too. */
const programs = ['chromium-headless-shell', 'chromium']

const program = programs.find((name) => missingPrograms(name) === '')
const reason = program === undefined ? missingPrograms('chromium-headless-shell') : ''

/**
 * The reason for skipping browser tests. Empty if a browser is installed, and in CI, where tests without a browser
 * fail.
 */
export const skipReason = process.env['CI'] ? '' : reason.trim()

/** Launches a browser that can reach only this machine. */
export function launchChromium(): Promise<Browser> {
  if (reason !== '') throw new Error('Install chromium-headless-shell to run the portal tests.')
  return chromium.launch({
    executablePath: `/usr/bin/${program}`,
    // Chromium's sandbox does not start for root.
    chromiumSandbox: process.getuid?.() !== 0,
    args: ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost'],
  })
}

let workerBrowser: Browser | undefined

export async function chromiumOfWorker(): Promise<Browser> {
  if (!workerBrowser?.isConnected()) workerBrowser = await launchChromium()
  return workerBrowser
}
