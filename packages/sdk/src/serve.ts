import { writeFile } from 'node:fs/promises'
import type { ModuleDefinition } from './definition.ts'
import { describe } from './describe.ts'
import { type ModuleEnvironment, readEnvironment } from './environment.ts'
import { type Logger, loggerOf } from './logger.ts'
import { environmentNames } from './protocol.ts'
import { RuntimeApi } from './runtime-api.ts'
import { serveHttp } from './serve-http.ts'
import { serveLambda } from './serve-lambda.ts'

/**
 * Serves a module. Call it on the last line of the module's main file. The same image runs on every runtime: as a
 * Lambda function, or as a process that listens on a Unix socket (`PLATFORM_SOCKET`) or on `HOST` (127.0.0.1) and
 * `PORT` (3000).
 *
 * To run a module without a platform, build it, set any token and let the module start itself:
 *
 *     PLATFORM_MODULE_TOKEN=try PLATFORM_STARTS_ITSELF=1 node dist/main.mjs
 *     curl -H 'x-platform-token: try' http://127.0.0.1:3000/api/hello
 *
 * The process exits with 1 if there is no token, it cannot listen, a start by itself fails, or module code throws
 * outside of a hook. It exits with 0 after SIGTERM or SIGINT, once `stop` and `dispose` have ended.
 */
export async function serve(definition: ModuleDefinition): Promise<void> {
  const log = loggerOf(definition, 'lifecycle')
  process.on('uncaughtException', (error) => {
    log.error('The module crashed', { error })
    process.exit(1)
  })
  const environment = withStartPolicy(definition, readEnvironment(process.env), log)
  if (environment.describeFile !== undefined) {
    await writeFile(environment.describeFile, JSON.stringify(describe(definition)))
    process.exit(0)
  }
  if (environment.token === '')
    throw new Error(`${environmentNames.token} is not set, so no request could be authenticated.`)
  const { runtimeApi } = environment
  if (runtimeApi === undefined) await serveHttp(definition, environment)
  else await serveLambda(definition, environment, new RuntimeApi(runtimeApi))
}

// On Lambda, instances start themselves, unless the module id differs from the manifest (PLAT-MOD-5001).
function withStartPolicy({ id }: ModuleDefinition, environment: ModuleEnvironment, log: Logger): ModuleEnvironment {
  const { expectedId = id, runtimeApi } = environment
  const isExpected = id === expectedId
  if (!isExpected) log.error('The id in the code differs from the manifest', { code: 'PLAT-MOD-5001', expectedId })
  return { ...environment, startsItself: isExpected && (environment.startsItself || runtimeApi !== undefined) }
}
