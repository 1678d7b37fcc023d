import { environmentNames as names } from './protocol.ts'

/** Settings of a module's process, read from environment variables. */
export interface ModuleEnvironment {
  /** The deployment's token; empty if it is not set. */
  token: string
  organisationId: string
  /** Id of the module in the manifest, if the runtime provides it. */
  expectedId: string | undefined
  startsItself: boolean
  /** File to write the module's description to, instead of serving the module. */
  describeFile: string | undefined
  /** `host:port` of the Lambda Runtime API; undefined outside of Lambda. */
  runtimeApi: string | undefined
  /** Address to listen on outside of Lambda. */
  address: { path: string } | { port: number; host: string }
}

/** Reads the environment. Throws `RangeError` if no socket is set and `PORT` is not a port number. */
export function readEnvironment(env: NodeJS.ProcessEnv): ModuleEnvironment {
  const socket = env[names.socket]
  return {
    token: env[names.token] ?? '',
    organisationId: env[names.organisation] ?? '',
    expectedId: env[names.module],
    startsItself: env[names.startsItself] === '1',
    describeFile: env[names.describe],
    runtimeApi: env['AWS_LAMBDA_RUNTIME_API'],
    address: socket ? { path: socket } : { port: portOf(env['PORT'] ?? '3000'), host: env['HOST'] ?? '127.0.0.1' },
  }
}

function portOf(text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535) throw new RangeError(`PORT is ${text}, which is not a port number.`)
  return port
}
