import type { Instance } from '../../support/hostile-module.ts'
import type { Line } from './lines.ts'

/** Where requests have arrived that were answered with success. */
export interface Arrivals {
  /** Requests that were sent. */
  sent: number
  /** Those that arrived elsewhere than they may. */
  foreign: string[]
  /** Those that a module received with something that is not its business. */
  leaked: string[]
}

export const newArrivals = (): Arrivals => ({ sent: 0, foreign: [], leaked: [] })

const isSuccess = (status: number): boolean => status >= 200 && status < 400

/** Notes where a request has arrived: at a function of the platform that did it, or in the module. */
export function note(
  { method, target, may }: Omit<Line, 'may'> & { may: string },
  { status, functionName, byModule }: { status: number; functionName: string; byModule: number },
  how: string,
  arrivals: Arrivals,
): void {
  arrivals.sent++
  const destination: string = byModule > 0 ? 'module' : isSuccess(status) ? functionName : 'nowhere'
  // To be refused does no harm.
  if (destination === 'nowhere' || destination === may) return
  arrivals.foreign.push(`${how}: ${method} ${target} reached ${destination}`)
}

const secretHeaders = [
  'authorization',
  'proxy-authorization',
  'cookie',
  'x-api-key',
  'forwarded',
  'x-forwarded-for',
  'x-real-ip',
]

/** What a module was told that it must not know, or was asked that is not below its paths. */
export function judgeModule(
  { requests: asked, api, moduleId }: Instance,
  secrets: readonly string[],
  arrivals: Arrivals,
): void {
  const prefixes = [api, `/modules/${moduleId}`]
  for (const { url, headers } of asked.splice(0)) {
    const { pathname } = new URL(url, 'http://module')
    const isBelow = prefixes.some((prefix) => pathname === prefix || pathname.startsWith(`${prefix}/`))
    if (!isBelow || !prefixes.some((prefix) => url.startsWith(prefix)))
      arrivals.foreign.push(`the module was asked for ${url}`)
    const known = secretHeaders.filter((name) => name in headers)
    const text = JSON.stringify(headers)
    const forged = secrets.filter((secret) => text.includes(secret))
    if (known.length > 0 || forged.length > 0) arrivals.leaked.push(`${url}: ${known.join()} ${forged.length} secrets`)
  }
}
