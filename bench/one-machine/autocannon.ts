import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** One request that is sent again and again, on several connections at once. */
export interface Volley {
  url: string
  method?: string
  headers: Record<string, string>
  /** A file that holds the body. */
  bodyFile?: string
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
export async function fire({ url, method = 'GET', headers, bodyFile, connections, seconds }: Volley): Promise<Fired> {
  const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}=${value}`])
  const body = bodyFile === undefined ? [] : ['-i', bodyFile]
  const options = ['--json', '--no-progress', '-c', String(connections), '-d', String(seconds), '-m', method]
  const command = [program, ...options, ...given, ...body, url]
  return JSON.parse((await promisify(execFile)(process.execPath, command)).stdout)
}
