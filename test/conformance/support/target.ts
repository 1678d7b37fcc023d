import type { Options } from './platform.ts'

/** The variable with the address at which the run's global setup serves its `Options`. */
export const optionsUrlVariable = 'PLAT_CONFORMANCE_OPTIONS_URL'

/** A running platform, as the environment names it. */
export interface Target extends Options {
  /** The platform runs on this machine: the command that it names can retrieve its initial admin token. */
  isLocal: boolean
  initialAdminToken: string | undefined
  /** Prints the token, if not the command that the platform names. */
  tokenCommand: string | undefined
}

const loopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/
const documentedPassword = 'correct horse battery'

/** Reads PLAT_CONFORMANCE_*; undefined where they name no platform. Throws without a password for a remote platform. */
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
