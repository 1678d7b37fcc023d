import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { exitCodes, FatalError } from './exit-codes.ts'
import { codeOf, get, RetryableError } from './http.ts'
import { loadIdentity } from './identity.ts'
import { isJsonObject, parseJsonObject } from './json.ts'
import type { Options } from './options.ts'
import { isAlive, stampOf } from './process-group.ts'
import { proxyFor, proxyName } from './proxy.ts'

const limitMs = 15_000

/** How a running relay learns of work. `--check` reads it, because a second connection would disturb the first one. */
export class ModeFile {
  readonly #path: string

  constructor(stateFolder: string) {
    this.#path = join(stateFolder, 'mode.json')
  }

  write(isChannelOpen: boolean): void {
    const relay = { pid: process.pid, stamp: stampOf(process.pid) }
    try {
      writeFileSync(this.#path, JSON.stringify({ relay, isChannelOpen }), { mode: 0o600 })
    } catch {
      // Only `--check` needs it.
    }
  }

  remove(): void {
    rmSync(this.#path, { force: true })
  }

  read(): string {
    const { relay, isChannelOpen } = parseJsonObject(textOf(this.#path)) ?? {}
    if (!isJsonObject(relay) || typeof relay.pid !== 'number' || typeof relay.stamp !== 'string')
      return 'no relay is running'
    if (!isAlive({ pid: relay.pid, stamp: relay.stamp })) return 'no relay is running'
    return isChannelOpen === true ? 'channel: work starts at once' : 'polling: the control channel is not open'
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Prints whether the platform responds, through which proxy, and how the running relay learns of work. */
export async function check({ server, stateFolder }: Options): Promise<number> {
  const address = server ?? loadIdentity(stateFolder)?.server
  if (address === undefined)
    throw new FatalError('usage', 'Set --server, or --state-dir to the folder of an enrolled relay.')
  const proxy = proxyFor(new URL(address))
  process.stdout.write(`Proxy: ${proxy ? proxyName(proxy) : 'none'}\n`)
  const startedMs = performance.now()
  try {
    const response = await get(`${address}/health/live`, limitMs)
    if (response.status !== 200) throw new RetryableError(`its response was ${codeOf(response)}`)
  } catch (error) {
    if (!(error instanceof RetryableError)) throw error
    process.stdout.write(`Platform: ${address} does not respond: ${error.message}\n`)
    return exitCodes.unreachable
  }
  process.stdout.write(`Platform: ${address} responds (${Math.round(performance.now() - startedMs)} ms)\n`)
  process.stdout.write(`Mode: ${new ModeFile(stateFolder).read()}\n`)
  return exitCodes.stopped
}
