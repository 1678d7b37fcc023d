import { requestHandlerOf } from './request-handler.ts'
import type { ModuleDefinition } from './definition.ts'
import type { ModuleEnvironment } from './environment.ts'
import { defaultHookMs, drainMs, ModuleHost } from './host.ts'
import { listen } from './server.ts'
import { onTermination } from './termination.ts'

/** Serves a module over HTTP until the process receives SIGTERM or SIGINT. */
export async function serveHttp(definition: ModuleDefinition, environment: ModuleEnvironment): Promise<void> {
  const host = new ModuleHost(definition, { ...environment, isPersistent: true })
  const log = host.context.getLogger('lifecycle')
  // Signal handlers are registered before listening, because an unhandled signal would end the process during a
  // request.
  const serverPromise = Promise.resolve().then(() =>
    listen(requestHandlerOf(host, environment.token), environment.address, log),
  )
  onTermination(async () => {
    const server = await serverPromise
    const drained = server.drain()
    const timer = setTimeout(() => server.closeConnections(), drainMs)
    await host.stop(defaultHookMs).catch(() => {})
    await drained
    clearTimeout(timer)
    await host.dispose().catch(() => {})
  })
  const { address } = await serverPromise
  log.info('The module listens', { address })

  if (!environment.startsItself) return
  await host.whenStarted().catch(async () => {
    // A termination during the start is not a failure.
    if (host.stopSignal.aborted) return
    await host.dispose().catch(() => {})
    process.exit(1)
  })
}
