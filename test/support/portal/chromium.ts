import { type Browser, chromium } from 'playwright-core'
import { missing } from '../peers.ts'

/** The browser without a window of its own does the same with a third of the work; the whole one will do. */
const programs = ['chromium-headless-shell', 'chromium']

const program = programs.find((name) => missing(name) === '')
const reason = program === undefined ? missing('chromium-headless-shell') : ''

/** Why tests that need the browser are skipped; empty: they are not. A machine of the CI has to have it. */
export const lacking = process.env['CI'] ? '' : reason.trim()

/** Debian's Chromium without a window. It reaches this machine and nothing else, by whatever name. */
export function launchChromium(): Promise<Browser> {
  if (reason !== '') throw new Error('This machine has no chromium, which the tests of the portal drive.')
  return chromium.launch({
    executablePath: `/usr/bin/${program}`,
    // The sandbox of Chromium does not start for root.
    chromiumSandbox: process.getuid?.() !== 0,
    args: ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost'],
  })
}

let ofWorker: Browser | undefined

/** The one of this process, which all test files have that run in it: it ends with the process. One that has died is replaced. */
export async function chromiumOfWorker(): Promise<Browser> {
  if (!ofWorker?.isConnected()) ofWorker = await launchChromium()
  return ofWorker
}
