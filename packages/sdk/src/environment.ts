import { environmentNames as names } from './protocol.ts'

/** What a module's process is told by its environment. */
export interface ModuleEnvironment {
  /** Empty where it is missing. */
  token: string
  organisationId: string
  /** The id in the manifest, where the runtime tells it. */
  expectedId: string | undefined
  startsItself: boolean
  /** Where to write what the module says of itself, instead of serving it. */
  describeFile: string | undefined
  /** `host:port` of Lambda's Runtime API, where there is one. */
  runtimeApi: string | undefined
  /** Where to listen without it. */
  address: { path: string } | { port: number; host: string }
}

/** Reads the environment; throws where the port is no port. */
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
  if (!/^\d+$/.test(text) || port > 65_535) throw new RangeError(`PORT is ${text}, which is no port.`)
  return port
}
