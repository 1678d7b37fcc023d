import type { Options } from './platform.ts'

/** Environment variable with the URL of the global setup's `Options`. */
export const optionsUrlVariable = 'PLAT_CONFORMANCE_OPTIONS_URL'

export interface Target extends Options {
  /** The platform runs on this machine, so its command can retrieve the initial admin token. */
  isLocal: boolean
  initialAdminToken: string | undefined
  tokenCommand: string | undefined
}

const loopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/
const documentedPassword = 'correct horse battery'

/**
 * Reads PLAT_CONFORMANCE_*; undefined if no platform is configured. Throws if the password of a remote platform is
 * missing.
 */
export function readTarget(environment: NodeJS.ProcessEnv): Target | undefined {
  const url = environment['PLAT_CONFORMANCE_URL']
  if (url === undefined) return undefined
  const isLocal = loopback.test(new URL(url).hostname)
  const password = environment['PLAT_CONFORMANCE_PASSWORD'] ?? (isLocal ? documentedPassword : undefined)
  if (password === undefined) throw new Error('Set PLAT_CONFORMANCE_PASSWORD: the platform is on another machine.')
  return {
    baseUrl: url.replace(/\/+$/, ''),
    isLocal,
    username: environment['PLAT_CONFORMANCE_USERNAME'] ?? 'admin',
    password,
    receivers: isLocal ? loopbackTargets(environment['PLAT_OUTBOUND_ALLOW']) : [],
    initialAdminToken: environment['PLAT_INITIAL_ADMIN_TOKEN'],
    tokenCommand: environment['PLAT_CONFORMANCE_TOKEN_COMMAND'],
  }
}

const loopbackTargets = (allowed = ''): string[] =>
  allowed
    .split(',')
    .map((target) => target.trim())
    .filter((target) => loopback.test(target.replace(/:\d+$/, '')))
