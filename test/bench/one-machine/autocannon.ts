import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { peerPackages } from '../support/peers.ts'

/** A request that is sent again and again, on several connections at once. */
interface Volley {
  url: string
  method?: string
  headers: Record<string, string>
  body?: string
  connections: number
  seconds: number
  /** Requests a second of all connections together; as many as are answered if not said. */
  perSecond?: number
}

/** What came back. Latencies of a given rate count from when a request was due. */
export interface Fired {
  requests: { average: number }
  latency: { p50: number; p99: number; max: number }
  '2xx': number
  non2xx: number
  errors: number
}

const program = join(peerPackages, '.bin/autocannon')

/** Fires from a process of its own; throws unless everything was answered with success. */
export async function fire(volley: Volley): Promise<Fired> {
  const { url, method = 'GET', headers, body, connections, seconds, perSecond } = volley
  const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}=${value}`])
  const sent = [...(body === undefined ? [] : ['-b', body]), ...(perSecond === undefined ? [] : ['-R', `${perSecond}`])]
  const options = [
    '--json',
    '--no-progress',
    '-c',
    `${connections}`,
    '-d',
    `${seconds}`,
    '-m',
    method,
    ...sent,
    ...given,
  ]
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...options, url])
  const fired: Fired = JSON.parse(stdout)
  if (fired.non2xx === 0 && fired.errors === 0 && fired['2xx'] > 0) return fired
  throw new Error(
    `${method} ${url}: ${fired.non2xx} refusals and ${fired.errors} errors beside ${fired['2xx']} answers.`,
  )
}
