import { type RequestHandler, requestHandlerOf } from './request-handler.ts'
import type { ModuleDefinition } from './definition.ts'
import type { ModuleEnvironment } from './environment.ts'
import { ModuleHost } from './host.ts'
import { requestOf, resultOf } from './lambda-event.ts'
import { messageOf } from './message.ts'
import type { Invocation, RuntimeApi } from './runtime-api.ts'
import { onTermination } from './termination.ts'

// This is shorter than the 10 seconds that Lambda gives an instance to initialise.
const initTimeoutMs = 9000
// Lambda kills an instance 500 ms after SIGTERM, which Lambda sends only if an extension is registered.
const graceMs = 300

/** Serves a module on Lambda, one event at a time, until Lambda ends the instance. */
export async function serveLambda(
  definition: ModuleDefinition,
  environment: ModuleEnvironment,
  api: RuntimeApi,
): Promise<never> {
  const host = new ModuleHost(definition, { ...environment, isPersistent: false })
  onTermination(async () => {
    await host.stop(graceMs).catch(() => {})
    await host.dispose().catch(() => {})
  })
  if (environment.startsItself) await host.configure(initTimeoutMs).catch((error) => failInit(api, error))
  const handle = requestHandlerOf(host, environment.token)
  for (;;) await processInvocation(api, handle, await api.next())
}

async function failInit(api: RuntimeApi, error: unknown): Promise<never> {
  await api.failInit('PLAT-MOD-5004', messageOf(error))
  process.exit(1)
}

async function processInvocation(api: RuntimeApi, handle: RequestHandler, { id, event }: Invocation): Promise<void> {
  const request = requestOf(event)
  if (!request) return api.fail(id, 'InvalidEvent', 'Only API Gateway events of format 2.0 are supported.')
  try {
    await api.respond(id, await resultOf(await handle(request)))
  } catch (error) {
    await api.fail(id, 'Unhandled', messageOf(error))
  }
}
