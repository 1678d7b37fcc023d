import { parseArgs } from 'node:util'
import { findRehearsal, folderOf } from '../../simulator/state.ts'

/** What a run is told. */
export interface Options {
  /** Where the platform answers, without a slash at the end. */
  baseUrl: string
  /** The platform runs on this machine: its commands can be run, and well-known credentials do no harm. */
  isLocal: boolean
  username: string
  password: string
  /** Completes setup; retrieved by a command where the platform runs on this machine. */
  initialAdminToken: string | undefined
  /** The command that prints it, if not the one that the platform names. */
  howToRetrieve?: string
  /** Addresses of this machine that the platform may call: `host:port`. */
  receivers?: readonly string[]
  /** The areas whose journeys run; all of them, if absent. */
  only?: readonly string[]
}

/** Thrown with a line for whoever typed the command. */
export class UsageError extends Error {}

export const help = `npm run conformance [-- --base-url URL] [--token TOKEN] [--only AREA,AREA]

Runs black-box journeys over HTTP against a running platform. Exits with 1 when the platform breaks a promise.

  --base-url URL  where the platform answers, such as http://127.0.0.1:8080; without it the rehearsal of the deployment that
                  npm run deploy:rehearsal has begun
  --token TOKEN   the initial admin token of a platform that is not set up; better in PLAT_INITIAL_ADMIN_TOKEN,
                  where other users of the machine do not see it
  --only AREAS    only the journeys of these areas, such as Setup,Clusters,Jobs

A platform that is not set up is set up. On this machine the initial admin token is retrieved with the command that the
platform names; run this in the project's folder, in the environment that the platform was started in (PLAT_DATA_DIR).
A platform that is set up is signed in to as its administrator.

  PLAT_CONFORMANCE_USERNAME  the administrator; default admin, as in the README
  PLAT_CONFORMANCE_PASSWORD  its password; on this machine it defaults to the one of the README
  PLAT_OUTBOUND_ALLOW        as the platform has it: deliveries of webhooks are tried where it names a port of this machine;
                             a rehearsal tells by itself

Each run uses names of its own and removes what it made; ended jobs go with their clusters. What no platform can remove
stays: the audit trail, and one organisation without users, which the next run uses again.
`

const loopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

/** Reads the command line; `undefined` asks for the help text. Throws `UsageError`. */
export function readOptions(args: string[], environment: NodeJS.ProcessEnv): Options | undefined {
  const flags = parse(args)
  if (flags.help) return undefined
  const target = flags['base-url'] === undefined ? rehearsal(environment) : named(flags['base-url'], environment)
  const { origin, pathname, hostname } = new URL(target.url)
  const isLocal = loopback.test(hostname)
  const password = environment['PLAT_CONFORMANCE_PASSWORD'] ?? (isLocal ? 'correct horse battery' : undefined)
  if (password === undefined) throw new UsageError('Set PLAT_CONFORMANCE_PASSWORD: the platform is on another machine.')
  return {
    baseUrl: `${origin}${pathname}`.replace(/\/+$/, ''),
    isLocal,
    username: environment['PLAT_CONFORMANCE_USERNAME'] ?? 'admin',
    password,
    initialAdminToken: flags.token ?? environment['PLAT_INITIAL_ADMIN_TOKEN'],
    ...(target.howToRetrieve !== undefined && { howToRetrieve: target.howToRetrieve }),
    receivers: isLocal ? loopbackTargets(target.outboundAllow) : [],
    ...(flags.only !== undefined && { only: flags.only.split(',') }),
  }
}

/** Where the platform is, and what whoever runs it has told of it. */
interface Target {
  url: string
  outboundAllow: string | undefined
  howToRetrieve?: string
}

function named(url: string, environment: NodeJS.ProcessEnv): Target {
  if (!URL.canParse(url) || !/^https?:/.test(url)) throw new UsageError(`--base-url: "${url}" is no http or https URL.`)
  return { url, outboundAllow: environment['PLAT_OUTBOUND_ALLOW'] }
}

/** What a rehearsed deployment says of its token is meant for AWS. */
const tokenOfRehearsal = 'npm run -s deploy:rehearsal -- --token'

function rehearsal(environment: NodeJS.ProcessEnv): Target {
  const found = findRehearsal(folderOf(environment))
  if (found?.ready !== undefined) return { ...found.ready, howToRetrieve: tokenOfRehearsal }
  const why =
    found === undefined ? 'No rehearsal of the deployment runs' : 'The rehearsal of the deployment is not ready'
  throw new UsageError(`${why}: npm run deploy:rehearsal begins one. Or name another platform with --base-url URL.`)
}

const loopbackTargets = (allowed = ''): string[] =>
  allowed
    .split(',')
    .map((target) => target.trim())
    .filter((target) => loopback.test(target.replace(/:\d+$/, '')))

function parse(args: string[]) {
  try {
    const text = { type: 'string' } as const
    const options = { 'base-url': text, token: text, only: text, help: { type: 'boolean' } } as const
    return parseArgs({ args, options }).values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}
