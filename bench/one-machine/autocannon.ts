import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** A GET that is sent again and again, on several connections at once. */
interface Volley {
  url: string
  headers: Record<string, string>
  connections: number
  seconds: number
}

/** What came back. */
export interface Fired {
  requests: { average: number }
  latency: { p50: number; p99: number }
  '2xx': number
  non2xx: number
  errors: number
}

const program = join(import.meta.dirname, '../../node_modules/.bin/autocannon')

/** Fires from a process of its own. */
export async function fire({ url, headers, connections, seconds }: Volley): Promise<Fired> {
  const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}=${value}`])
  const options = ['--json', '--no-progress', '-c', String(connections), '-d', String(seconds), ...given, url]
  return JSON.parse((await promisify(execFile)(process.execPath, [program, ...options])).stdout)
}
