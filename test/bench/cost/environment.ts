import { type TestServer, startServer } from '../../support/http-server.ts'
import { type Emulators, startEmulators } from '../support/emulators.ts'

export interface BenchEnvironment extends AsyncDisposable {
  emulators: Emulators
  webhookReceiver: TestServer
}

/** Starts emulators, a module registry and a webhook receiver for this process. Import core only after this call. */
export async function startEnvironment(settings: Record<string, string>): Promise<BenchEnvironment> {
  await using starting = new AsyncDisposableStack()
  const emulators = starting.use(await startEmulators())
  const webhookReceiver = starting.use(await startServer(() => ({ status: 204 })))
  Object.assign(process.env, emulators.environment, settings, { PLAT_WEBHOOK_ALLOW: webhookReceiver.host })
  const { moduleWorld } = await import('../../functions/module-world.ts')
  starting.use(moduleWorld)
  const started = starting.move()
  return { emulators, webhookReceiver, [Symbol.asyncDispose]: () => started.disposeAsync() }
}
