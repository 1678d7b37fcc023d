import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { lambdaFlags } from '../../simulator/lambda/node-program.ts'
import type { FirstEvent } from './events.ts'

/** A process from its start to its first answer. */
export interface Start {
  wallMs: number
  cpuMs: number
  /** What it has in memory by then, with the pages that it shares with others. */
  residentBytes: number
}

const driver = join(import.meta.dirname, 'driver.mjs')

/** Refusals that are first answers all the same: that setup is complete, or that no module answers, the store has told. */
const refusals: Record<string, string> = { setup: '403', 'gateway/modules': '404' }

/** Has a fresh process answer one event; throws where it refuses that. */
export async function startOnce(
  { name, path, event }: { name: string; path: string; event: FirstEvent },
  environment: Record<string, string>,
): Promise<Start> {
  const text = JSON.stringify(await event())
  const startedAtMs = performance.now()
  const child = spawn(process.execPath, [...lambdaFlags, driver, path, text], {
    env: { ...process.env, PLAT_LOG_LEVEL: 'info', ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    const [, status, cpuMicroseconds, bytes] = /\nanswered (\d+) after (\d+) µs in (\d+) bytes\n/.exec(chunk) ?? []
    if (status === undefined) continue
    const wallMs = performance.now() - startedAtMs
    if (Number(status) >= 300 && status !== refusals[name]) throw new Error(`${name} answered ${status} at first.`)
    await exit
    return { wallMs, cpuMs: Number(cpuMicroseconds) / 1000, residentBytes: Number(bytes) }
  }
  throw new Error(`${name} answered nothing.`)
}
